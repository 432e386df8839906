"""Bridge: encoder output -> the decoder's first state s_0."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt import recipe
from nmt.model.decoder import RecurrentState
from nmt.model.encoder import EncoderOutput


class Bridge(nn.Module):
    """s_0 = tanh(W_s h_1<-)   (Bahdanau et al. 2015, A.2.2), for each layer.

    Instead of h_1<-, the backward state at the first token, W_s may read the final states of the top layer or the mean annotation.
    With `copy` each layer starts from the final state of the same encoder layer (Luong et al. 2015, as Sutskever et al. 2014).
    """

    def __init__(self, config: recipe.RecurrentModelConfig) -> None:
        super().__init__()
        decoder, encoder = config.decoder, config.encoder
        self.kind, self.shape, self.has_cell = decoder.bridge, (decoder.layers, decoder.hidden), decoder.cell == "lstm"
        self.backward = encoder.hidden
        match self.kind:
            case "backward":
                self.linear = nn.Linear(encoder.hidden, decoder.layers * decoder.hidden)
            case "final":
                self.linear = nn.Linear(encoder.annotation, decoder.layers * decoder.hidden)
            case "mean":
                self.linear = nn.Linear(config.annotation, decoder.layers * decoder.hidden)
            case "copy" | "zero":
                pass
            case _:
                assert_never(self.kind)

    def forward(self, encoded: EncoderOutput) -> RecurrentState:
        """The state before the first step. An LSTM starts from the copied cell, or from zeros."""
        hidden, batch = self.hidden(encoded), len(encoded.mask)
        position = torch.zeros(batch, dtype=torch.long, device=hidden.device)
        cell = (torch.zeros_like(hidden) if encoded.cell is None else encoded.cell) if self.has_cell else None
        return RecurrentState(hidden, position, cell)

    def hidden(self, encoded: EncoderOutput) -> Float[Tensor, "B L H"]:
        """s_0 of each layer."""
        match self.kind:
            case "backward":
                summary = encoded.final[:, -1, -self.backward :]
            case "final":
                summary = encoded.final[:, -1]
            case "mean":
                summary = encoded.annotations.sum(1) / encoded.mask.sum(1, keepdim=True)
            case "copy":
                return encoded.final
            case "zero":
                return encoded.final.new_zeros(len(encoded.mask), *self.shape)
            case _:
                assert_never(self.kind)
        return torch.tanh(self.linear(summary)).view(len(summary), *self.shape)

    if TYPE_CHECKING:
        __call__ = forward
