"""Guided alignment: a cross-entropy of the attention against given links (Chen et al. 2016, 3; Mi et al. 2016, 3).

    loss = - sum_t log p(y_t)  +  w * sum_t - sum_j A_tj log alpha_tj        A_tj = L_tj / sum_k L_tk

L_tj is 1 where target piece t is linked to source piece j, so A_t is the uniform distribution over the pieces that t is
linked to. Both sums run over pieces and are divided by the same number of target pieces: a nat of attention counts w times
a nat of prediction, however the pairs are batched. A piece without a link contributes nothing.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from nmt.data.batching import Batch
from nmt.recipe import GuidedAlignment

FLOOR = 1e-9
"""The least weight that is told apart from none: what lies outside of a window costs 20.7 nats and pulls nothing."""


def guided_cross_entropy(
    alignment: Float[Tensor, "B T S"], links: Bool[Tensor, "B T S"]
) -> tuple[Float[Tensor, ""], int]:
    """sum_t - sum_j A_tj log max(alpha_tj, FLOOR), in nats, and over how many rows t: those that have a link.

    Args:
        alignment: alpha, zero where a step may not look; a row need not sum to 1 (local-p).
        links: L, arranged as the rows of the alignment are, see `links_of_rows`.
    """
    degrees = links.sum(dim=-1)
    share = links / degrees.clamp_min(1).unsqueeze(-1).to(alignment.dtype)
    total = -(share * alignment.clamp_min(FLOOR).log()).sum()
    return total, int(torch.count_nonzero(degrees))


def links_of_rows(batch: Batch, aligns: Literal["predicted", "fed"]) -> Bool[Tensor, "B T S"]:
    """The links of the word that each row of the alignment belongs to.

    Row t belongs to `target_out[t]` if the model aligns the predicted word, and to `target_in[t]` = `target_out[t - 1]` if
    it aligns the word just fed (Luong et al. 2015, footnote 14). What was fed but is not the reference's word
    (scheduled sampling) has no known link.
    """
    assert batch.links is not None
    if aligns == "predicted":
        return batch.links
    is_reference = batch.target_in[:, 1:] == batch.target_out[:, :-1]
    return functional.pad(batch.links[:, :-1] & is_reference.unsqueeze(-1), (0, 0, 1, 0))


def weight_in_epoch(chosen: GuidedAlignment, epoch: int) -> float:
    """w after so many whole epochs: weight x decay^epoch."""
    return float(chosen.weight * chosen.decay**epoch)
