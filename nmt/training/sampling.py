"""Scheduled sampling: the decoder reads some of its own tokens instead of the reference's, more of them the longer it trains.

    y~_t = y_t  with probability epsilon_u,  else  y^_t ~ p(y | y~_1 .. y~_{t-1}, x)        loss = - sum_t log p(y_t | y~_<t, x)

epsilon_u is the teacher forcing ratio at update u. Each token is decided independently and sampled from the model's distribution
after the mixed tokens before it (Bengio et al. 2015, 2.3 and 2.4). The sampled tokens have no gradient, so the mixed target is
computed first and the model is then trained on it as on any other input.
"""

from __future__ import annotations

import math
from typing import Any, assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.data.batching import Batch
from nmt.data.subwords import BOS, EOS, PAD
from nmt.model.interface import TranslationModel
from nmt.recipe import ExponentialDecayConfig, InverseSigmoidDecayConfig, LinearDecayConfig, ScheduledSamplingConfig


def teacher_forcing_ratio(config: ScheduledSamplingConfig, update: int) -> float:
    """epsilon_u: the probability that the decoder reads the reference token, after u updates (Bengio et al. 2015, 2.4)."""
    match config:
        case LinearDecayConfig():
            return min(1.0, max(config.floor, config.offset - config.slope * update))
        case ExponentialDecayConfig():
            return float(config.base**update)
        case InverseSigmoidDecayConfig():
            scaled = config.scale * math.exp(-update / config.scale)  # k / (k + exp(u / k)) without overflow
            return scaled / (scaled + 1)
        case _:
            assert_never(config)


@torch.no_grad()
def mix_target_in(model: TranslationModel[Any, Any], batch: Batch, ratio: float) -> Int[Tensor, "B T"]:
    """`target_in` with each token replaced, with probability 1 - teacher forcing ratio, by one sampled from the model.

    The model runs without dropout. BOS and padding are never replaced, and special tokens are never sampled. All random numbers
    come from torch's global generator. Decoding ends before the last replaced token, and log-probabilities are computed only
    where a token is sampled.
    """
    target_in = batch.target_in.clone()
    is_replaced = torch.rand(target_in.shape, device=target_in.device) >= ratio
    is_replaced &= (target_in != PAD) & (target_in != BOS)
    if not is_replaced.any():
        return target_in
    was_training = model.training
    model.eval()
    try:
        return _replace_tokens(model, batch, target_in, is_replaced)
    finally:
        model.train(was_training)


def _replace_tokens(
    model: TranslationModel[Any, Any], batch: Batch, target_in: Int[Tensor, "B T"], is_replaced: Bool[Tensor, "B T"]
) -> Int[Tensor, "B T"]:
    """Decode step by step, and replace tokens in place as the steps before them are known."""
    memory = model.encode(batch.source, batch.source_mask)
    state, rows = model.start(memory), torch.arange(len(target_in), device=target_in.device)
    last = int(is_replaced.any(dim=0).nonzero().max())
    for time in range(last):
        step = model.step(target_in[:, time], state, memory, rows)
        sampled, state = is_replaced[:, time + 1], step.state
        if sampled.any():
            target_in[sampled, time + 1] = _sample(step.log_probs[sampled])
    return target_in


def _sample(log_probs: Float[Tensor, "N V"]) -> Int[Tensor, " N"]:
    """One token per row, from the model's distribution without the special tokens."""
    log_probs = log_probs.float().nan_to_num()  # the loss reports diverged weights; multinomial would raise here
    log_probs[:, [PAD, BOS, EOS]] = float("-inf")
    return torch.multinomial(torch.softmax(log_probs, dim=-1), 1).squeeze(1)
