"""Rows in segments of different lengths, such as the live hypotheses of each sentence, flat or padded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Segments:
    """N rows in G segments, one segment after the other; a segment may be empty.

    Flat, their values are [N ...]; padded, they are [G W ...], where W is the length of the longest segment.
    """

    segment_ids: Int[Tensor, " N"]
    """The segment of each row, in rising order."""
    count: int
    """G."""
    rows_each: int | None = None
    """The number of rows in every segment that has any, if it is the same. On a GPU nothing need be read back then."""

    @cached_property
    def lengths(self) -> Int[Tensor, " G"]:
        """The number of rows in each segment."""
        return torch.bincount(self.segment_ids, minlength=self.count)

    @cached_property
    def width(self) -> int:
        """W."""
        if self.rows_each is not None:
            return self.rows_each
        return int(self.lengths.max()) if self.count else 0

    @cached_property
    def positions(self) -> Int[Tensor, " N"]:
        """The position of each row in its segment."""
        numbers = torch.arange(len(self.segment_ids), device=self.segment_ids.device)
        if self.rows_each is not None:
            return numbers % self.rows_each
        starts = self.lengths.cumsum(0) - self.lengths
        return numbers - starts[self.segment_ids]

    @cached_property
    def present(self) -> Int[Tensor, " M"]:
        """The segments that have rows, in rising order."""
        if self.rows_each is not None:
            return self.segment_ids[:: self.rows_each].contiguous()
        segments: Tensor = torch.unique_consecutive(self.segment_ids)
        return segments

    @cached_property
    def _cells(self) -> Int[Tensor, " N"]:
        """The index of each row among the G * W padded ones."""
        return self.segment_ids * self.width + self.positions

    def to_padded(self, flat: Tensor, padding: float = 0.0) -> Tensor:
        """[N ...] -> [G W ...]."""
        cells, shape = self.count * self.width, (self.count, self.width, *flat.shape[1:])
        if len(flat) == cells:
            return flat.reshape(shape)
        padded = flat.new_full((cells, *flat.shape[1:]), padding)
        return padded.index_copy_(0, self._cells, flat).view(shape)

    def to_flat(self, padded: Tensor) -> Tensor:
        """[G W ...] -> [N ...]: the inverse of `to_padded`."""
        cells = padded.flatten(0, 1)
        return cells if len(cells) == len(self.segment_ids) else cells.index_select(0, self._cells)
