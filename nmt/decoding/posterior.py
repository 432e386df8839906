"""Posterior alignment: the source token that a known target token translates, given the target token itself.

Attention alpha_tj is computed before y_t is known, and is often spread over everything that could come next. With the alignment a_t as
a latent choice of one source position, whose annotation is the context (Shankar and Sarawagi 2019):

    p(a_t = j | x, y_<=t) = alpha_tj p(y_t | y_<t, c_t = h_j) / sum_k alpha_tk p(y_t | y_<t, c_t = h_k)

The decoder states are computed as usual, with c_t = sum_j alpha_tj h_j.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.data.batching import Batch
from nmt.errors import UsageError
from nmt.model.interface import AttendsToPositions, TranslationModel
from nmt.text.subwords import PAD

MIN_WEIGHT = 1e-3
"""Least attention weight of a position that is considered; where no position has twice as much, half of the largest weight. Most have
less, and each costs an output layer."""


def posterior_alignment(model: TranslationModel[Any, Any], batch: Batch) -> Float[Tensor, "B T S"]:
    """p(a_t = j | x, y_<=t) for known targets, 0 on padding.

    A row sums to 1, or is 0 without attention (a local window beyond the end of the sentence).

    Raises:
        UsageError: the model cannot attend to a single position.
    """
    if not isinstance(model, AttendsToPositions):
        raise UsageError(f"A {type(model).__name__} has no posterior alignment: use its attention.")
    memory = model.encode(batch.source, batch.source_mask)
    state, rows = model.start(memory), torch.arange(len(batch.source), device=batch.source.device)
    alignment = []
    for tokens, gold in zip(batch.target_in.unbind(1), batch.target_out.unbind(1), strict=True):
        step = model.step(tokens, state, memory, rows)
        weights = step.weights.float()
        least = (weights.amax(dim=1, keepdim=True) / 2).clamp_max(MIN_WEIGHT)
        positions = (weights >= least) & (weights > 0) & (gold != PAD).unsqueeze(1)
        log_probs = model.position_log_probs(tokens, gold, state, memory, positions)
        joint = weights.log() + log_probs
        alignment.append(joint.softmax(dim=1).masked_fill(~positions, 0.0))
        state = step.state
    return torch.stack(alignment, dim=1)
