"""Rows in groups of different sizes, such as the live hypotheses of each sentence, and the grid that gives each group as many places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """N rows in G groups, those of a group one after the other; a group may have none.

    On its grid [G W], W rows the largest group, each group fills the first places of its line.
    """

    group: Int[Tensor, " N"]
    """The group of each row, rising."""
    groups: int

    @classmethod
    def one_each(cls, groups: int, device: torch.device) -> Ragged:
        """One row in every group."""
        return cls(torch.arange(groups, device=device), groups)

    @property
    def is_plain(self) -> bool:
        """Whether there is one row in every group."""
        return len(self.group) == self.groups and self.width == 1

    @cached_property
    def width(self) -> int:
        """W."""
        return int(self.sizes.max()) if self.groups else 0

    @cached_property
    def within(self) -> Int[Tensor, " N"]:
        """The number of each row in its group."""
        first = self.sizes.cumsum(0) - self.sizes
        return torch.arange(len(self.group), device=self.group.device) - first[self.group]

    @cached_property
    def fill(self) -> float:
        """Share of the grid that is not empty."""
        return len(self.group) / max(self.groups * self.width, 1)

    @cached_property
    def sizes(self) -> Int[Tensor, " G"]:
        """The number of rows of each group."""
        return torch.bincount(self.group, minlength=self.groups)

    @cached_property
    def _place(self) -> Int[Tensor, " N"]:
        """Where each row stands on the flattened grid."""
        return self.group * self.width + self.within

    def spread(self, values: Tensor, fill: float = 0.0) -> Tensor:
        """The rows [N ...] on the grid [G W ...], with a number in its empty places."""
        shape = (self.groups, self.width, *values.shape[1:])
        if self.fill == 1:
            return values.reshape(shape)
        grid = values.new_full((self.groups * self.width, *values.shape[1:]), fill)
        return grid.index_copy_(0, self._place, values).view(shape)

    def collect(self, grid: Tensor) -> Tensor:
        """The rows [N ...] of a grid [G W ...]: what `spread` undoes."""
        flat = grid.flatten(0, 1)
        return flat if self.fill == 1 else flat.index_select(0, self._place)

    def at(self, column: Int[Tensor, "G K"]) -> Int[Tensor, "G K"]:
        """The number of the row at some places of each line; 0 for an empty place."""
        line = torch.arange(self.groups, device=column.device).unsqueeze(1) * self.width
        numbers = self.spread(torch.arange(len(self.group), device=column.device))
        return numbers.flatten()[line + column]
