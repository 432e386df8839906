"""Scheduled sampling: the decoder reads its own words instead of the reference's, the more often the longer it trains.

    y~_t = y_t  with probability epsilon_u,  else  y^_t ~ p(y | y~_1 .. y~_{t-1}, x)        loss = - sum_t log p(y_t | y~_<t, x)

(Bengio et al. 2015, 2.3 and 2.4.) A coin is thrown for every word apart, and a word is drawn from what the model makes of
the mixed words before it. No gradient flows through the choice, so the mixture is made first and then trained on as if it
had been given.
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


def gold_probability(decay: ScheduledSamplingConfig, update: int) -> float:
    """epsilon_u: how likely each word that the decoder reads is the reference's, u updates into training (2.4)."""
    match decay:
        case LinearDecayConfig():
            return min(1.0, max(decay.floor, decay.offset - decay.slope * update))
        case ExponentialDecayConfig():
            return float(decay.base**update)
        case InverseSigmoidDecayConfig():
            decayed = decay.scale * math.exp(
                -update / decay.scale
            )  # the equation times exp(-u/k), which cannot overflow
            return decayed / (decayed + 1)
        case _:
            assert_never(decay)


@torch.no_grad()
def mix(model: TranslationModel[Any, Any], batch: Batch, gold_probability: float) -> Int[Tensor, "B T"]:
    """`target_in` with some of its words replaced by ones that the model draws, rolled forward without dropout.

    BOS and padding stay. Marks are never drawn: a decoder is not fed them when it translates. Coins and words come from
    torch's global generator. Only steps before the last replaced word are computed, and logits only where one is drawn.
    """
    mixed = batch.target_in.clone()
    own = (torch.rand(mixed.shape, device=mixed.device) >= gold_probability) & (mixed != PAD) & (mixed != BOS)
    if not own.any():
        return mixed
    was_training = model.training
    model.eval()
    try:
        return _roll(model, batch, mixed, own)
    finally:
        model.train(was_training)


def _roll(
    model: TranslationModel[Any, Any], batch: Batch, mixed: Int[Tensor, "B T"], own: Bool[Tensor, "B T"]
) -> Int[Tensor, "B T"]:
    """Fill in, step by step, the places that are the model's own."""
    memory = model.encode(batch.source, batch.source_mask)
    state, rows = model.start(memory), torch.arange(len(mixed), device=mixed.device)
    last = int(own.any(dim=0).nonzero().max())
    for time in range(last):
        step = model.step(mixed[:, time], state, memory, rows)
        drawn, state = own[:, time + 1], step.state
        if drawn.any():
            mixed[drawn, time + 1] = _draw(step.log_probs[drawn])
    return mixed


def _draw(log_probs: Float[Tensor, "N V"]) -> Int[Tensor, " N"]:
    """One word a row, from the model's distribution over all but the marks."""
    log_probs = log_probs.float().nan_to_num()  # weights that have gone wrong show in the loss, and must not end here
    log_probs[:, [PAD, BOS, EOS]] = float("-inf")
    return torch.multinomial(torch.softmax(log_probs, dim=-1), 1).squeeze(1)
