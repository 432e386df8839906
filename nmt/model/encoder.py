"""Recurrent encoder: source -> annotations h_j = [h_j->; h_j<-] (Bahdanau et al. 2015, 3.2 and eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, assert_never

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt import recipe
from nmt.model.cells import build_cell, gates_of, orthogonal_per_gate_
from nmt.model.dropout import Dropout


@dataclass(frozen=True)
class EncoderOutput:
    """Annotations and final states of a batch. The left-to-right direction comes first in the last dimension."""

    annotations: Float[Tensor, "B S A"]
    mask: Bool[Tensor, "B S"]
    final: Float[Tensor, "B L F"]
    """[h_S->; h_1<-] of each layer: the state of each direction after it has read the whole source."""
    cell: Float[Tensor, "B L F"] | None
    """The cells that belong to `final`, if the decoder copies those of an LSTM."""


@dataclass(frozen=True)
class LayerOutput:
    """The states of one layer, and its state and cell after the last token."""

    states: Float[Tensor, "B S N"]
    final: Float[Tensor, "B N"]
    cell: Float[Tensor, "B N"] | None


class UnrolledLayer(nn.Module):
    """A recurrent layer computed step by step, for cells that PyTorch has no layer for: s_j = f(s_{j-1}, W x_j)."""

    def __init__(self, config: recipe.EncoderConfig, width: int) -> None:
        super().__init__()
        self.cell = build_cell(config.cell, config.hidden, layer_norm=config.layer_norm)
        self.input = nn.Linear(width, gates_of(config.cell) * config.hidden)
        self.width, self.has_cell = config.hidden, config.cell == "lstm"
        nn.init.xavier_uniform_(self.input.weight)

    def forward(self, values: Num[Tensor, "B S D"]) -> tuple[Float[Tensor, "B S N"], Float[Tensor, "B S N"] | None]:
        """The states of all steps, and the cells of an LSTM."""
        projected: Tensor = self.input(values)
        hidden = projected.new_zeros(len(values), self.width)
        cell = torch.zeros_like(hidden) if self.has_cell else None
        states: list[Tensor] = []
        cells: list[Tensor] = []
        for step in projected.unbind(1):
            hidden, cell = self.cell(step, hidden, cell)
            states.append(hidden)
            if cell is not None:
                cells.append(cell)
        return torch.stack(states, 1), torch.stack(cells, 1) if cells else None

    if TYPE_CHECKING:
        __call__ = forward


class Encoder(nn.Module):
    """Layers of a GRU or LSTM over embedded tokens, in both directions or in one.

    The backward direction reads every sentence reversed within its own length, so padding comes last in both directions and changes
    nothing. With `keeps_cells` the output has the final cells of an LSTM, with `keeps_tokens` annotations are
    [h_j->; h_j<-; x_j], where x_j is the embedded token.
    """

    def __init__(
        self,
        config: recipe.EncoderConfig,
        *,
        embedding: int,
        dropout: recipe.DropoutConfig,
        keeps_cells: bool = False,
        keeps_tokens: bool = False,
    ) -> None:
        super().__init__()
        widths = [embedding, *[config.annotation] * (config.layers - 1)]
        rightward, leftward = reads(config.direction)
        self.rightward = nn.ModuleList(build_layer(config, width) for width in widths if rightward)
        self.leftward = nn.ModuleList(build_layer(config, width) for width in widths if leftward)
        self.layers, self.residual = config.layers, config.residual
        self.keeps_cells, self.keeps_tokens = keeps_cells, keeps_tokens
        self.between = Dropout(dropout.layers, variational=dropout.variational)
        self.dropout = Dropout(dropout.annotations, variational=dropout.variational)

    def forward(self, embedded: Num[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> EncoderOutput:
        """Annotations, 0 on padding, and final states of embedded tokens."""
        lengths = mask.sum(1)
        backwards = reversal(lengths, mask.shape[1])
        packed_lengths = lengths.cpu() if self.packs else None
        values, layers = embedded, []
        for depth in range(self.layers):
            inputs = self.between(values) if depth else values
            layer = self._layer(depth, inputs, lengths, backwards, packed_lengths)
            values = layer.states + values if self.residual and depth else layer.states
            layers.append(layer)
        annotations = self.dropout(values * mask.unsqueeze(-1))
        if self.keeps_tokens:
            annotations = torch.cat([annotations, embedded * mask.unsqueeze(-1)], -1)
        cells = [layer.cell for layer in layers if layer.cell is not None]
        final = torch.stack([layer.final for layer in layers], 1)
        return EncoderOutput(annotations, mask, final, torch.stack(cells, 1) if cells else None)

    @property
    def packs(self) -> bool:
        """Whether layers read packed sentences: PyTorch's LSTM gives the cell at the end of a sentence only for these."""
        return self.keeps_cells and any(isinstance(layer, nn.LSTM) for layer in (*self.rightward, *self.leftward))

    def _layer(
        self, depth: int, values: Tensor, lengths: Tensor, backwards: Tensor, packed_lengths: Tensor | None
    ) -> LayerOutput:
        """One layer, with its directions concatenated."""
        directions = []
        if len(self.rightward):
            directions.append(self._read(self.rightward[depth], values, lengths, packed_lengths))
        if len(self.leftward):
            reverse = self._read(self.leftward[depth], take(values, backwards), lengths, packed_lengths)
            directions.append(replace(reverse, states=take(reverse.states, backwards)))
        return side_by_side(directions)

    def _read(
        self,
        layer: nn.Module,
        values: Num[Tensor, "B S D"],
        lengths: Int[Tensor, " B"],
        packed_lengths: Int[Tensor, " B"] | None,
    ) -> LayerOutput:
        """One direction of one layer; with `packed_lengths`, which are on the CPU, of packed sentences."""
        ends = torch.arange(len(lengths), device=lengths.device), lengths - 1
        if packed_lengths is not None:
            packed = pack_padded_sequence(values, packed_lengths, batch_first=True, enforce_sorted=False)
            packed_states, (final, cell) = layer(packed)
            states, _ = pad_packed_sequence(packed_states, batch_first=True, total_length=values.shape[1])
            return LayerOutput(states, final[0], cell[0])
        states, cells = layer(values)
        cell = cells[ends] if self.keeps_cells and isinstance(layer, UnrolledLayer) else None
        return LayerOutput(states, states[ends], cell)

    if TYPE_CHECKING:
        __call__ = forward


def side_by_side(directions: Sequence[LayerOutput]) -> LayerOutput:
    """Concatenate the directions of a layer."""
    if len(directions) == 1:
        return directions[0]
    states, final = (
        torch.cat([each.states for each in directions], -1),
        torch.cat([each.final for each in directions], -1),
    )
    cells = [each.cell for each in directions if each.cell is not None]
    return LayerOutput(states, final, torch.cat(cells, -1) if cells else None)


def reversal(lengths: Int[Tensor, " B"], width: int) -> Int[Tensor, "B S"]:
    """For every position j of a sentence of length n the position n - 1 - j; padding stays in place."""
    positions = torch.arange(width, device=lengths.device).unsqueeze(0)
    mirrored = lengths.unsqueeze(1) - 1 - positions
    return torch.where(mirrored >= 0, mirrored, positions)


def take(values: Num[Tensor, "N S D"], positions: Int[Tensor, "N W"]) -> Num[Tensor, "N W D"]:
    """The values at the given positions of each sentence."""
    return values.gather(1, positions.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def reads(direction: Literal["both", "forward", "reversed"]) -> tuple[bool, bool]:
    """Whether an encoder reads left to right, and whether right to left."""
    match direction:
        case "both":
            return True, True
        case "forward":
            return True, False
        case "reversed":
            return False, True
        case _:
            assert_never(direction)


def build_layer(config: recipe.EncoderConfig, width: int) -> UnrolledLayer | nn.GRU | nn.LSTM:
    """One direction of one layer that reads values of the given width."""
    if config.layer_norm:
        return UnrolledLayer(config, width)
    layer: nn.GRU | nn.LSTM
    match config.cell:
        case "gru-reset-before":
            return UnrolledLayer(config, width)
        case "gru":
            layer = nn.GRU(width, config.hidden, batch_first=True)
        case "lstm":
            layer = nn.LSTM(width, config.hidden, batch_first=True)
        case _:
            assert_never(config.cell)
    weights = dict(layer.named_parameters())
    orthogonal_per_gate_(weights["weight_hh_l0"])
    nn.init.xavier_uniform_(weights["weight_ih_l0"])
    return layer
