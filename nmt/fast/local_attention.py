"""Local windows (Luong et al. 2015, 3.2) as the kernels of additive attention read them."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from nmt.model.attention import AttentionMemory
from nmt.model.windows import Window


def windows_of(
    window: Window | None, queries: Float[Tensor, "N T H"], positions: Int[Tensor, "N T"], memory: AttentionMemory
) -> tuple[Float[Tensor, "N T 1"] | None, Int[Tensor, "N T"] | None, Float[Tensor, "N T W"] | None]:
    """The centers of T queries per row, the first position that each reads, and the factors of W positions from there on.

    Without a window all are None.
    """
    if window is None:
        return None, None, None
    center = window.center(queries, positions, memory.row_mask)
    length = memory.mask.shape[1]
    near = window.positions(center, window.size(length), length)
    return center.unsqueeze(-1), near[..., 0], window.factor(center, near)
