"""Which source piece a known target piece was read from, in the light of the target piece itself.

Attention alpha_tj is decided before y_t is known; often it is spread over all that could come next. The piece that did come tells
more. With alignment a_t as a latent choice of one source position, whose annotation is the context (Shankar and Sarawagi 2019):

    p(a_t = j | x, y_<=t) = alpha_tj p(y_t | y_<t, c_t = h_j) / sum_k alpha_tk p(y_t | y_<t, c_t = h_k)

The states go on as ever, with c_t = sum_j alpha_tj h_j.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from nmt.data.batching import Batch
from nmt.data.subwords import PAD
from nmt.model.seq2seq import Seq2Seq

LEAST = 1e-3
"""Attention below which a position is left out, whatever it might have said: most are, and each costs an output layer."""
_LOGITS_AT_ONCE = 2**20


def posterior_alignment(model: Seq2Seq, batch: Batch) -> Float[Tensor, "B T S"]:
    """p(a_t = j | x, y_<=t) for known targets, 0 on padding.

    A row sums to 1, or is 0 where attention was nowhere (a local window beyond the sentence's end).
    """
    memory, state = model.encode(batch.source, batch.source_mask)
    rows = []
    for fed, wanted in zip(batch.target_in.unbind(1), batch.target_out.unbind(1), strict=True):
        readouts = model.decoder.read_each(model.target_embedding(fed), state, memory)
        _, weights, state = model.step(fed, state, memory)
        weights = weights.float()
        looked = (weights >= LEAST) & (wanted != PAD).unsqueeze(1)
        rows.append(_posterior(weights, looked, _chances(model, readouts, looked, wanted)))
    return torch.stack(rows, dim=1)


def _chances(
    model: Seq2Seq, readouts: Float[Tensor, "B S R"], looked: Bool[Tensor, "B S"], wanted: Int[Tensor, " B"]
) -> Float[Tensor, "B S"]:
    """log p(y_t | y_<t, c_t = h_j) where it is asked for, -inf elsewhere; for some positions at a time."""
    asked, gold = readouts[looked], wanted.unsqueeze(1).expand_as(looked)[looked]
    at_once = max(_LOGITS_AT_ONCE // model.output.out_features, 1)
    parts = [
        -cross_entropy(model.logits(some).float(), one, reduction="none")
        for some, one in zip(torch.split(asked, at_once), torch.split(gold, at_once), strict=True)
    ]
    chances = torch.full(looked.shape, float("-inf"), device=looked.device)
    chances[looked] = torch.cat(parts)
    return chances


def _posterior(
    weights: Float[Tensor, "B S"], looked: Bool[Tensor, "B S"], chances: Float[Tensor, "B S"]
) -> Float[Tensor, "B S"]:
    """alpha_tj p(y_t | c_t = h_j), scaled to sum to 1 over the positions looked at."""
    joint = (weights.clamp_min(LEAST).log() + chances).masked_fill(~looked, float("-inf"))
    return joint.softmax(dim=1).masked_fill(~looked, 0.0)
