"""Windows: which source positions a decoder step may attend to, and how far each counts (Luong et al. 2015, 3.1, 3.2).

A window is the 2D + 1 positions around its centre p_t and a factor on each, 0 outside of it. The softmax runs over the
positions where the factor is positive and is then multiplied by it. The paper does not renormalise after the Gaussian, so
local-p weights sum to less than 1. At a sentence end the window is cut off: positions before the first and after the last
word simply do not exist. Positions are counted from 0.
"""

from __future__ import annotations

from typing import assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt import recipe
from nmt.model.gathering import StepLinear
from nmt.model.precision import at_least_fp32


class Window(nn.Module):
    """What all windows share: the positions that can lie within D of the centre."""

    def __init__(self, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width

    def center(
        self, query: Float[Tensor, "N H"], position: Int[Tensor, " N"], mask: Bool[Tensor, "N S"]
    ) -> Float[Tensor, " N"]:
        """p_t of the state that asks at step `position`."""
        raise AssertionError(f"{type(self).__name__} does not say where it looks")

    def factor(self, positions: Int[Tensor, "N W"], center: Float[Tensor, " N"]) -> Float[Tensor, "N W"]:
        """What the weights at the positions are multiplied by."""
        raise AssertionError(f"{type(self).__name__} does not say how far a position counts")

    def span(self, center: Float[Tensor, " N"], size: int) -> tuple[Int[Tensor, " N"], int]:
        """First position and number of neighbouring positions, all below `size`, that hold the whole window.

        Where the sentence is not much longer than a window these are all positions: to cut the window out would cost more.
        """
        width = 2 * self.half_width + 1
        if size <= 2 * width:
            width = size
        return torch.ceil(center.detach() - self.half_width).long().clamp(0, size - width), width


class LocalMonotonicWindow(Window):
    """p_t = t: positions within D of the step's own number (local-m). Past the source's end the last word is the centre.

    With a ratio of source to target length, p_t = round(ratio t).
    """

    def __init__(self, half_width: int, ratio: float = 1.0) -> None:
        super().__init__(half_width)
        self.ratio = ratio

    def center(
        self, query: Float[Tensor, "N H"], position: Int[Tensor, " N"], mask: Bool[Tensor, "N S"]
    ) -> Float[Tensor, " N"]:
        return torch.minimum(torch.round(self.ratio * position.to(torch.float32)), mask.sum(1) - 1.0)

    def factor(self, positions: Int[Tensor, "N W"], center: Float[Tensor, " N"]) -> Float[Tensor, "N W"]:
        return ((positions - center.unsqueeze(1)).abs() <= self.half_width).to(center.dtype)


class LocalPredictiveWindow(Window):
    """p_t = S sigmoid(v_p^T tanh(W_p h_t)); exp(-(s - p_t)^2 / (2 sigma^2)) with sigma = D/2 (local-p, eq. 9 and 10)."""

    def __init__(self, query: int, half_width: int) -> None:
        super().__init__(half_width)
        self.hidden = StepLinear(query, query, bias=False)
        self.v = StepLinear(query, 1, bias=False)

    def center(
        self, query: Float[Tensor, "N H"], position: Int[Tensor, " N"], mask: Bool[Tensor, "N S"]
    ) -> Float[Tensor, " N"]:
        """p_t, in source positions from 0 to S, the number of real ones."""
        share = torch.sigmoid(at_least_fp32(self.v(torch.tanh(self.hidden(query))).squeeze(-1)))
        return mask.sum(1) * share

    def factor(self, positions: Int[Tensor, "N W"], center: Float[Tensor, " N"]) -> Float[Tensor, "N W"]:
        away = (positions - center.unsqueeze(1)).abs()
        gaussian = torch.exp(-(away**2) / (2 * (self.half_width / 2) ** 2))
        return gaussian * (away <= self.half_width)


def build_window(chosen: recipe.WindowConfig, *, query: int) -> Window | None:
    """The window of a recipe; None is the global one, which looks everywhere."""
    match chosen:
        case recipe.GlobalWindowConfig():
            return None
        case recipe.LocalMonotonicWindowConfig():
            return LocalMonotonicWindow(chosen.half_width, chosen.ratio)
        case recipe.LocalPredictiveWindowConfig():
            return LocalPredictiveWindow(query, chosen.half_width)
        case _:
            assert_never(chosen)
