"""Windows: which source positions a decoder step reads, and by what factor (Luong et al. 2015, 3.1 and 3.2).

A window has a center p_t and a factor for each source position, which is 0 outside [p_t - D, p_t + D]. The normalizer, in the paper the
softmax of eq. 7, runs over the positions with a positive factor; its result is multiplied by the factor. As in the paper, weights are
not renormalized after the Gaussian, so those of local-p sum to less than 1, and the window ends with the sentence (footnote 8).
Positions are counted from 0. A step reads no other position, so its cost does not grow with the source.
"""

from __future__ import annotations

from typing import assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt import recipe
from nmt.model.precision import at_least_fp32


class Window(nn.Module):
    """Base class of windows; D is `half_width`."""

    def __init__(self, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width

    def center(
        self, queries: Float[Tensor, "N T H"], positions: Int[Tensor, "N T"], mask: Bool[Tensor, "N S"]
    ) -> Float[Tensor, "N T"]:
        """p_t of each query; `positions` are the numbers of the decoder steps, from 0."""
        raise NotImplementedError

    def size(self, length: int) -> int:
        """The number of source positions that hold the window: min(2D + 1, S)."""
        return min(2 * self.half_width + 1, length)

    def positions(self, center: Float[Tensor, "N T"], size: int, length: int) -> Int[Tensor, "N T W"]:
        """W = `size` source positions in a row that hold the window; at an end of the source some of them lie outside of it."""
        first = torch.ceil(center - self.half_width).long().clamp(0, length - size)
        return first.unsqueeze(-1) + torch.arange(size, device=center.device)

    def factor(self, center: Float[Tensor, "N T"], positions: Int[Tensor, "N T W"]) -> Float[Tensor, "N T W"]:
        """The factor of these source positions."""
        raise NotImplementedError


class LocalMonotonicWindow(Window):
    """local-m: p_t = t, factor 1   (Luong et al. 2015, 3.2). Past the end of the source, p_t is its last token.

    With a `ratio` of source to target length, p_t = round(ratio t).
    """

    def __init__(self, half_width: int, ratio: float = 1.0) -> None:
        super().__init__(half_width)
        self.ratio = ratio

    def center(
        self, queries: Float[Tensor, "N T H"], positions: Int[Tensor, "N T"], mask: Bool[Tensor, "N S"]
    ) -> Float[Tensor, "N T"]:
        last = mask.sum(1, keepdim=True) - 1.0
        return torch.minimum(torch.round(self.ratio * positions.to(torch.float32)), last)

    def factor(self, center: Float[Tensor, "N T"], positions: Int[Tensor, "N T W"]) -> Float[Tensor, "N T W"]:
        return (distances(center, positions) <= self.half_width).to(center.dtype)


class LocalPredictiveWindow(Window):
    """local-p: a predicted center with a Gaussian around it (Luong et al. 2015, eq. 9 and 10).

        p_t = S sigmoid(v_p^T tanh(W_p h_t));   factor = exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2

    S, the length of the source, includes EOS.
    """

    def __init__(self, query: int, half_width: int) -> None:
        super().__init__(half_width)
        self.hidden = nn.Linear(query, query, bias=False)
        self.v = nn.Linear(query, 1, bias=False)

    def center(
        self, queries: Float[Tensor, "N T H"], positions: Int[Tensor, "N T"], mask: Bool[Tensor, "N S"]
    ) -> Float[Tensor, "N T"]:
        share = torch.sigmoid(at_least_fp32(self.v(torch.tanh(self.hidden(queries))).squeeze(-1)))
        return mask.sum(1, keepdim=True) * share  # eq. 9

    def factor(self, center: Float[Tensor, "N T"], positions: Int[Tensor, "N T W"]) -> Float[Tensor, "N T W"]:
        distance, sigma = distances(center, positions), self.half_width / 2
        return torch.exp(-(distance**2) / (2 * sigma**2)) * (distance <= self.half_width)  # eq. 10


def distances(center: Float[Tensor, "N T"], positions: Int[Tensor, "N T W"]) -> Float[Tensor, "N T W"]:
    """|s - p_t| of each source position s."""
    return (positions - center.unsqueeze(-1)).abs()


def build_window(config: recipe.WindowConfig, *, query: int) -> Window | None:
    """The window of a recipe for queries [N T query]; None is global attention."""
    match config:
        case recipe.GlobalWindowConfig():
            return None
        case recipe.LocalMonotonicWindowConfig():
            return LocalMonotonicWindow(config.half_width, config.ratio)
        case recipe.LocalPredictiveWindowConfig():
            return LocalPredictiveWindow(query, config.half_width)
        case _:
            assert_never(config)
