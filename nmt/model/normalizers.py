"""Normalizers: the scores e_ij of a query become weights alpha_ij, which sum to 1 over the allowed positions and are 0 at all others.

Softmax gives some weight to every allowed position. Sparsemax and entmax take a threshold tau off the scores; a position below it gets
exactly 0, and no gradient. A row without an allowed position is all 0, and a score of -inf is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from nmt import recipe

Normalizer = Callable[[Tensor, Tensor], Tensor]
"""Scores [*N S] and the mask of allowed positions [*#N S] -> weights [*N S]."""


def masked_softmax(scores: Float[Tensor, "*N S"], allowed: Bool[Tensor, "*#N S"]) -> Float[Tensor, "*N S"]:
    """alpha_ij = exp(e_ij) / sum_k exp(e_ik)   (Bahdanau et al. 2015, eq. 6; Luong et al. 2015, eq. 7)."""
    scores, allowed = _masked(scores, allowed)
    return torch.softmax(scores, dim=-1) * allowed


def masked_sparsemax(scores: Float[Tensor, "*N S"], allowed: Bool[Tensor, "*#N S"]) -> Float[Tensor, "*N S"]:
    """alpha_ij = max(e_ij - tau, 0)   (Martins and Astudillo 2016, proposition 1 and algorithm 1).

    tau = (sum of the k largest scores - 1) / k, where k is the largest one for which the k-th score lies above tau.
    """
    scores, allowed = _masked(scores, allowed)
    scores = _below_largest(scores)
    ordered, ranks = _ordered(scores)
    is_above = 1 + ranks * ordered > ordered.cumsum(-1)
    tau = (ordered.where(is_above, 0.0).sum(-1, keepdim=True) - 1) / is_above.sum(-1, keepdim=True)
    return torch.relu(scores - tau) * allowed


def masked_entmax15(scores: Float[Tensor, "*N S"], allowed: Bool[Tensor, "*#N S"]) -> Float[Tensor, "*N S"]:
    """alpha_ij = max(e_ij / 2 - tau, 0)^2, entmax with alpha = 1.5   (Peters et al. 2019, 3, algorithm 2).

    tau = m - sqrt(1 / k - v), with mean m and variance v of the k largest e_ij / 2; k is again the largest possible.
    """
    scores, allowed = _masked(scores, allowed)
    scores = _below_largest(scores / 2)
    ordered, ranks = _ordered(scores)
    means, squares = ordered.cumsum(-1) / ranks, ordered.square().cumsum(-1) / ranks
    is_above = means - (1 / ranks - squares + means.square()).clamp_min(0).sqrt() <= ordered
    count = is_above.sum(-1, keepdim=True, dtype=scores.dtype)
    mean = ordered.where(is_above, 0.0).sum(-1, keepdim=True) / count
    variance = (ordered - mean).square().where(is_above, 0.0).sum(-1, keepdim=True) / count
    return torch.relu(scores - mean + (1 / count - variance).sqrt()).square() * allowed


def _masked(
    scores: Float[Tensor, "*N S"], allowed: Bool[Tensor, "*#N S"]
) -> tuple[Float[Tensor, "*N S"], Bool[Tensor, "*N S"]]:
    """Scores, the least number there is where not allowed; and the mask."""
    allowed = allowed & (scores != float("-inf"))
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min), allowed


def _below_largest(scores: Float[Tensor, "*N S"]) -> Float[Tensor, "*N S"]:
    """Scores less the largest of the row. From -1 on they get no weight, so -2 stands for all that are less."""
    return (scores - scores.detach().amax(-1, keepdim=True)).clamp_min(-2)


def _ordered(scores: Float[Tensor, "*N S"]) -> tuple[Float[Tensor, "*N S"], Float[Tensor, " S"]]:
    """Falling scores, and their ranks from 1."""
    ranks = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
    return scores.sort(dim=-1, descending=True).values, ranks


def build_normalizer(kind: recipe.NormalizerKind) -> Normalizer:
    """The normalizer of a recipe."""
    match kind:
        case "softmax":
            return masked_softmax
        case "sparsemax":
            return masked_sparsemax
        case "entmax15":
            return masked_entmax15
        case _:
            assert_never(kind)
