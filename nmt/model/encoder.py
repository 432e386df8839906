"""Bidirectional recurrent encoder: source -> annotations h_j = [h_j->; h_j<-] (Bahdanau et al. 2015, 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from nmt import recipe
from nmt.model.cells import Dropout, orthogonal_per_gate_


@dataclass(frozen=True)
class Encoded:
    """The annotations of a batch and the final state of each direction, of the top layer."""

    annotations: Float[Tensor, "B S A"]
    forward_final: Float[Tensor, "B N"]
    """h_S->, having read the whole source left to right."""
    backward_final: Float[Tensor, "B N"]
    """h_1<-, having read it right to left."""


class Encoder(nn.Module):
    """Layers of a GRU or LSTM in each direction over embedded words.

    The backward direction reads every sentence reversed within its own length, so padding comes after the words for both
    and changes nothing.
    """

    def __init__(self, chosen: recipe.Encoder, *, embedding: int, dropout: recipe.Dropout) -> None:
        super().__init__()
        kind = nn.GRU if chosen.cell == "gru" else nn.LSTM
        widths = [embedding, *[2 * chosen.hidden] * (chosen.layers - 1)]
        self.rightward = nn.ModuleList(kind(width, chosen.hidden, batch_first=True) for width in widths)
        self.leftward = nn.ModuleList(kind(width, chosen.hidden, batch_first=True) for width in widths)
        self.between = Dropout(dropout.recurrent, variational=dropout.variational)
        self.dropout = Dropout(dropout.annotations, variational=dropout.variational)
        for layer in [*self.rightward, *self.leftward]:
            orthogonal_per_gate_(layer.weight_hh_l0)
            nn.init.xavier_uniform_(layer.weight_ih_l0)

    def forward(self, embedded: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Encoded:
        lengths = mask.sum(1)
        backwards = reversal(lengths, mask.shape[1])
        layer_input = embedded
        for depth, (rightward, leftward) in enumerate(zip(self.rightward, self.leftward, strict=True)):
            if depth:
                layer_input = self.between(layer_input)
            right, _ = rightward(layer_input)
            left = take(leftward(take(layer_input, backwards))[0], backwards)
            layer_input = torch.cat([right, left], dim=-1)
        annotations = self.dropout(layer_input * mask.unsqueeze(-1))
        return Encoded(annotations, right[torch.arange(len(lengths)), lengths - 1], left[:, 0])

    if TYPE_CHECKING:
        __call__ = forward


def reversal(lengths: Tensor, width: int) -> Tensor:
    """For every position j of a sentence of length n the position n - 1 - j; padding stays in place. [B S]"""
    positions = torch.arange(width, device=lengths.device).unsqueeze(0)
    mirrored = lengths.unsqueeze(1) - 1 - positions
    return torch.where(mirrored >= 0, mirrored, positions)


def take(values: Float[Tensor, "B S D"], positions: Tensor) -> Float[Tensor, "B S D"]:
    """The values at the given positions [B S] of each sentence."""
    return values.gather(1, positions.unsqueeze(-1).expand_as(values))
