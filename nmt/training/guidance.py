"""Guided alignment: cross-entropy between attention weights and word links (Chen et al. 2016, 3; Mi et al. 2016, 3).

    loss = - sum_t log p(y_t)  +  w * sum_t - sum_j A_tj log alpha_tj        A_tj = L_tj / sum_k L_tk

L_tj is 1 if target token t is linked to source token j, so A_t is uniform over the source tokens that t is linked to. A target
token without a link adds nothing. Both sums are divided by the number of target tokens of the update, so w weighs a nat of
alignment loss against a nat of prediction loss, independent of the batching.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.recipe import GuidedAlignmentConfig

FLOOR = 1e-9
"""Lower bound of the weights inside the logarithm: a link of weight 0 costs 20.7 nats and has no gradient."""


def guided_cross_entropy(
    alignment: Float[Tensor, "B T S"], links: Bool[Tensor, "B T S"]
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """The alignment loss, sum_t - sum_j A_tj log max(alpha_tj, FLOOR), in nats, and the number of linked target tokens.

    Args:
        alignment: attention weights alpha, zero outside the window or by sparsemax or entmax; a row need not sum to 1 (local-p).
        links: L. Row t of `alignment` and `links` belongs to the token that decoder step t predicts.
    """
    degrees = links.sum(dim=-1)
    target = links / degrees.clamp_min(1).unsqueeze(-1).to(alignment.dtype)
    loss = -(target * alignment.clamp_min(FLOOR).log()).sum()
    return loss, torch.count_nonzero(degrees)


def guidance_weight(config: GuidedAlignmentConfig, epoch: int) -> float:
    """The weight w in an epoch, counted from 0: weight * decay^epoch."""
    return float(config.weight * config.decay**epoch)
