"""Windows: which source positions a decoder step may attend to, and how far each counts (Luong et al. 2015, 3.1, 3.2).

A window gives a factor [B S] that is 0 outside of it. The softmax runs over the positions where the factor is positive and
is then multiplied by it. The paper does not renormalise after the Gaussian, so local-p weights sum to less than 1.
At a sentence end the window is cut off: positions before the first and after the last word simply do not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt import recipe


class Window(nn.Module):
    """What all windows share: the factor of every source position, given who asks and at which step."""

    def forward(
        self, query: Float[Tensor, "B H"], position: Int[Tensor, " B"], mask: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "B S"]:
        raise AssertionError(f"{type(self).__name__} does not say where it looks")

    if TYPE_CHECKING:
        __call__ = forward


class LocalMonotonicWindow(Window):
    """p_t = t: positions within D of the step's own number (local-m). Past the source's end the last word is the centre."""

    def __init__(self, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width

    def forward(
        self, query: Float[Tensor, "B H"], position: Int[Tensor, " B"], mask: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "B S"]:
        center = torch.minimum(position, mask.sum(1) - 1)
        return (distance(center, mask) <= self.half_width).to(query.dtype)


class LocalPredictiveWindow(Window):
    """p_t = S sigmoid(v_p^T tanh(W_p h_t)); exp(-(s - p_t)^2 / (2 sigma^2)) with sigma = D/2 (local-p, eq. 9 and 10)."""

    def __init__(self, query: int, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width
        self.hidden = nn.Linear(query, query, bias=False)
        self.v = nn.Linear(query, 1, bias=False)

    def center(self, query: Float[Tensor, "B H"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, " B"]:
        """p_t, in source positions from 0 to S, the number of real ones."""
        share = torch.sigmoid(at_least_fp32(self.v(torch.tanh(self.hidden(query))).squeeze(-1)))
        return mask.sum(1) * share

    def forward(
        self, query: Float[Tensor, "B H"], position: Int[Tensor, " B"], mask: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "B S"]:
        away = distance(self.center(query, mask), mask)
        gaussian = torch.exp(-(away**2) / (2 * (self.half_width / 2) ** 2))
        return gaussian * (away <= self.half_width)


def distance(center: Int[Tensor, " B"] | Float[Tensor, " B"], mask: Bool[Tensor, "B S"]) -> Tensor:
    """|s - p_t| for every source position s, [B S]."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return (positions.unsqueeze(0) - center.unsqueeze(1)).abs()


def at_least_fp32(values: Tensor) -> Tensor:
    """Values in fp32 where they were computed in a shorter type: positions and softmaxes need the digits."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def build_window(chosen: recipe.Window, *, query: int) -> Window | None:
    """The window of a recipe; None is the global one, which looks everywhere."""
    match chosen:
        case recipe.GlobalWindow():
            return None
        case recipe.LocalMonotonicWindow():
            return LocalMonotonicWindow(chosen.half_width)
        case recipe.LocalPredictiveWindow():
            return LocalPredictiveWindow(query, chosen.half_width)
        case _:
            assert_never(chosen)
