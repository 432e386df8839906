"""Guided alignment: a cross-entropy of the attention against given links (Chen et al. 2016, 3; Mi et al. 2016, 3).

    loss = - sum_t log p(y_t)  +  w * sum_t - sum_j A_tj log alpha_tj        A_tj = L_tj / sum_k L_tk

L_tj is 1 where target piece t is linked to source piece j, so A_t is the uniform distribution over the pieces that t is
linked to. Both sums run over pieces and are divided by the same number of target pieces: a nat of attention counts w times
a nat of prediction, however the pairs are batched. A piece without a link contributes nothing.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from nmt.recipe import GuidedAlignmentConfig

FLOOR = 1e-9
"""The least weight that is told apart from none: what lies outside of a window costs 20.7 nats and pulls nothing."""


def guided_cross_entropy(
    alignment: Float[Tensor, "B T S"], links: Bool[Tensor, "B T S"]
) -> tuple[Float[Tensor, ""], int]:
    """sum_t - sum_j A_tj log max(alpha_tj, FLOOR), in nats, and over how many rows t: those that have a link.

    Args:
        alignment: alpha, zero where a step may not look; a row need not sum to 1 (local-p).
        links: L; row t of both belongs to the piece that step t predicts.
    """
    degrees = links.sum(dim=-1)
    share = links / degrees.clamp_min(1).unsqueeze(-1).to(alignment.dtype)
    total = -(share * alignment.clamp_min(FLOOR).log()).sum()
    return total, int(torch.count_nonzero(degrees))


def weight_in_epoch(chosen: GuidedAlignmentConfig, epoch: int) -> float:
    """w after so many whole epochs: weight x decay^epoch."""
    return float(chosen.weight * chosen.decay**epoch)
