"""Recurrent encoder: source -> annotations, h_j = [h_j->; h_j<-] where both directions read (Bahdanau et al. 2015, 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt import recipe
from nmt.model.cells import GATES, Dropout, build_cell, orthogonal_per_gate_
from nmt.model.gathering import gathering
from nmt.model.gru import learn_gru_states


@dataclass(frozen=True)
class Encoded:
    """What the encoder made of a batch. Two directions stand side by side, left to right first."""

    annotations: Float[Tensor, "B S A"]
    mask: Bool[Tensor, "B S"]
    final: Float[Tensor, "B L A"]
    """The state of each layer that has read the whole source, [h_S->; h_1<-]."""
    cell: Float[Tensor, "B L A"] | None
    """The LSTM's second state there, where the decoder copies it."""


@dataclass(frozen=True)
class Read:
    """What a layer read: its states, and where it ended."""

    states: Float[Tensor, "B S N"]
    final: Float[Tensor, "B N"]
    cell: Float[Tensor, "B N"] | None


class UnrolledLayer(nn.Module):
    """A recurrent layer step by step, for cells that no fused kernel computes: s_j = f(s_{j-1}, W x_j)."""

    def __init__(self, chosen: recipe.EncoderConfig, width: int) -> None:
        super().__init__()
        self.cell = build_cell(chosen.cell, chosen.hidden, layer_norm=chosen.layer_norm)
        self.input = nn.Linear(width, GATES[chosen.cell] * chosen.hidden)
        self.width, self.lstm = chosen.hidden, chosen.cell == "lstm"
        nn.init.xavier_uniform_(self.input.weight)

    def forward(self, values: Float[Tensor, "B S D"]) -> tuple[Float[Tensor, "B S N"], Float[Tensor, "B S N"] | None]:
        """The states of all steps, and the LSTM's second ones."""
        hidden = values.new_zeros(len(values), self.width)
        cell = torch.zeros_like(hidden) if self.lstm else None
        states, cells = [], []
        for projected in self.input(values).unbind(1):
            hidden, cell = self.cell(projected, hidden, cell)
            states.append(hidden)
            cells.append(cell)
        return torch.stack(states, 1), torch.stack(cells, 1) if self.lstm else None

    if TYPE_CHECKING:
        __call__ = forward


class Encoder(nn.Module):
    """Layers of a GRU or LSTM over embedded words, in both directions or in one.

    The backward direction reads every sentence reversed within its own length, so padding comes after the words for both
    and changes nothing. `keeps_cells` asks for the LSTM's second state as well.
    """

    def __init__(
        self, chosen: recipe.EncoderConfig, *, embedding: int, dropout: recipe.DropoutConfig, keeps_cells: bool = False
    ) -> None:
        super().__init__()
        widths = [embedding, *[chosen.annotation] * (chosen.layers - 1)]
        rightward = widths if chosen.direction != "reversed" else []
        leftward = widths if chosen.direction != "forward" else []
        self.rightward = nn.ModuleList(build_layer(chosen, width) for width in rightward)
        self.leftward = nn.ModuleList(build_layer(chosen, width) for width in leftward)
        self.layers, self.residual, self.keeps_cells = chosen.layers, chosen.residual, keeps_cells
        self.between = Dropout(dropout.layers, variational=dropout.variational)
        self.dropout = Dropout(dropout.annotations, variational=dropout.variational)

    def forward(self, embedded: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Encoded:
        lengths = mask.sum(1)
        backwards = reversal(lengths, mask.shape[1])
        values, layers = embedded, []
        for depth in range(self.layers):
            read = self._layer(depth, self.between(values) if depth else values, lengths, backwards)
            values = read.states + values if self.residual and depth else read.states
            layers.append(read)
        annotations = self.dropout(values * mask.unsqueeze(-1))
        cells = [layer.cell for layer in layers if layer.cell is not None]
        final = torch.stack([layer.final for layer in layers], 1)
        return Encoded(annotations, mask, final, torch.stack(cells, 1) if cells else None)

    def _layer(self, depth: int, values: Tensor, lengths: Tensor, backwards: Tensor) -> Read:
        """One layer, its directions side by side."""
        sides = []
        if len(self.rightward):
            sides.append(self._read(self.rightward[depth], values, lengths))
        if len(self.leftward):
            side = self._read(self.leftward[depth], take(values, backwards), lengths)
            sides.append(replace(side, states=take(side.states, backwards)))
        return side_by_side(sides)

    def _read(self, layer: nn.Module, values: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"]) -> Read:
        """One direction of one layer. The fused LSTM shows its second state at a sentence's end only to packed sentences."""
        ends = torch.arange(len(lengths), device=lengths.device), lengths - 1
        if self.keeps_cells and isinstance(layer, nn.LSTM):
            packed = pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)
            packed_states, (final, cell) = layer(packed)
            states, _ = pad_packed_sequence(packed_states, batch_first=True, total_length=values.shape[1])
            return Read(states, final[0], cell[0])
        if _learns_on_cpu(layer):
            states = gru_steps(layer, values)
            return Read(states, states[ends], None)
        states, cells = layer(values)
        kept = cells[ends] if self.keeps_cells and isinstance(layer, UnrolledLayer) else None
        return Read(states, states[ends], kept)

    if TYPE_CHECKING:
        __call__ = forward


def side_by_side(sides: Sequence[Read]) -> Read:
    """The directions of a layer as one."""
    if len(sides) == 1:
        return sides[0]
    cells = [side.cell for side in sides if side.cell is not None]
    states, final = torch.cat([side.states for side in sides], -1), torch.cat([side.final for side in sides], -1)
    return Read(states, final, torch.cat(cells, -1) if cells else None)


def reversal(lengths: Int[Tensor, " B"], width: int) -> Int[Tensor, "B S"]:
    """For every position j of a sentence of length n the position n - 1 - j; padding stays in place."""
    positions = torch.arange(width, device=lengths.device).unsqueeze(0)
    mirrored = lengths.unsqueeze(1) - 1 - positions
    return torch.where(mirrored >= 0, mirrored, positions)


def take(values: Float[Tensor, "N S D"], positions: Int[Tensor, "N W"]) -> Float[Tensor, "N W D"]:
    """The values at the given positions of each sentence."""
    return values.gather(1, positions.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def gru_steps(layer: nn.GRU, values: Float[Tensor, "B S D"]) -> Float[Tensor, "B S N"]:
    """The states of all steps, as the layer itself gives them, but with gradients that are formed as `gathering` describes."""
    reading, recurring, read_bias, recurrent_bias = layer.all_weights[0]
    projected = functional.linear(values, reading, read_bias)
    with gathering():
        return learn_gru_states(
            projected, recurring, recurrent_bias, projected.new_zeros(len(values), layer.hidden_size)
        )


def _learns_on_cpu(layer: nn.Module) -> TypeGuard[nn.GRU]:
    """Whether its steps one by one are faster than the layer: in training, where no kernel computes all of them in one go."""
    return isinstance(layer, nn.GRU) and torch.is_grad_enabled() and layer.all_weights[0][0].device.type == "cpu"


def build_layer(chosen: recipe.EncoderConfig, width: int) -> UnrolledLayer | nn.GRU | nn.LSTM:
    """One direction of one layer that reads values of the given width; a fused kernel wherever there is one."""
    if chosen.layer_norm:
        return UnrolledLayer(chosen, width)
    layer = (nn.GRU if chosen.cell == "gru" else nn.LSTM)(width, chosen.hidden, batch_first=True)
    weights = dict(layer.named_parameters())
    orthogonal_per_gate_(weights["weight_hh_l0"])
    nn.init.xavier_uniform_(weights["weight_ih_l0"])
    return layer
