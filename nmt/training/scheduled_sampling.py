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
from nmt.model.interface import TranslationModel
from nmt.recipe import ExponentialDecayConfig, InverseSigmoidDecayConfig, LinearDecayConfig, ScheduledSamplingConfig
from nmt.text.subwords import BOS, EOS, PAD


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


def choose_replaced(batch: Batch, ratio: float) -> Bool[Tensor, "B T"]:
    """Which tokens of `target_in` are replaced: each with probability 1 - teacher forcing ratio, BOS and padding never.

    On the CPU, as the batch: so a GPU need not tell how many there are.
    """
    target_in = batch.target_in
    return (torch.rand(target_in.shape) >= ratio) & (target_in != PAD) & (target_in != BOS)


@torch.no_grad()
def mix_target_in(
    model: TranslationModel[Any, Any], batch: Batch, is_replaced: Bool[Tensor, "B T"]
) -> Int[Tensor, "B T"]:
    """`target_in` of a batch on the device of the model, with some tokens replaced by ones sampled from the model.

    The model runs without dropout. Special tokens are never sampled. All random numbers come from torch's global generators. Decoding
    ends before the last replaced token, and log-probabilities are computed only where a token is sampled.

    Args:
        is_replaced: which tokens are replaced, on the CPU.
    """
    target_in, device = batch.target_in.clone(), batch.target_in.device
    if not is_replaced.any():
        return target_in
    was_training = model.training
    model.eval()
    memory = model.encode(batch.source, batch.source_mask)
    state, rows = model.start(memory), torch.arange(len(target_in), device=device)
    for time in range(int(is_replaced.any(dim=0).nonzero().max())):
        step = model.step(target_in[:, time], state, memory, rows)
        sampled, state = is_replaced[:, time + 1].nonzero().squeeze(1), step.state
        if len(sampled):
            sampled = sampled.to(device, non_blocking=True)
            target_in[:, time + 1].index_copy_(0, sampled, _sample(step.log_probs[sampled]))
    model.train(was_training)
    return target_in


def _sample(log_probs: Float[Tensor, "N V"]) -> Int[Tensor, " N"]:
    """One token per row, from the model's distribution without the special tokens.

    With u_y exponentially distributed, the largest p_y / u_y is at each y with probability p_y. (`multinomial` does the same, but also
    reads back whether p is valid.)
    """
    log_probs = log_probs.float().nan_to_num()  # the loss reports diverged weights
    for token in (PAD, BOS, EOS):
        log_probs[:, token] = float("-inf")
    probabilities = torch.softmax(log_probs, dim=-1)
    return (probabilities / torch.empty_like(probabilities).exponential_()).argmax(dim=-1)
