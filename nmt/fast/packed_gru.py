"""The GRU in search with packed weights: in int8 a step of a layer, products included, is one kernel call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from nmt.fast.gru import FastGruCell, gru_gates
from nmt.fast.int8 import Int8Linear, has_int8_kernel
from nmt.fast.kernels import decoding as kernels
from nmt.fast.linear import TokenTable, packed_linear, plain_linear
from nmt.fast.twins import as_type
from nmt.model.cells import GruCell
from nmt.model.decoder import Recurrence, RecurrentState


class PackedGru(nn.Module):
    """The states of a GRU layer with packed weights."""

    def __init__(self, layer: nn.GRU, dtype: torch.dtype) -> None:
        super().__init__()
        weight, recurrent, bias, recurrent_bias = layer.all_weights[0]
        self.input: nn.Linear | TokenTable = packed_linear(plain_linear(weight, bias), dtype)
        self.recurrent = packed_linear(plain_linear(recurrent, recurrent_bias), dtype)
        self._panels = panels_of_gates(self.recurrent) if has_gru_kernel(self.recurrent) else None

    def forward(self, values: Num[Tensor, "B S D"]) -> tuple[Float[Tensor, "B S N"], None]:
        """The states of all steps."""
        projected = self.input(values)
        hidden, states = projected.new_zeros(len(values), projected.shape[2] // GruCell.gates), []
        for inputs in projected.unbind(1):
            if self._panels is None:
                hidden = gru_gates(inputs, self.recurrent(hidden), hidden)
            else:
                hidden = kernels.int8_gru_step(inputs, None, None, self._panels, hidden)
            states.append(hidden)
        return torch.stack(states, 1), None

    if TYPE_CHECKING:
        __call__ = forward


class Int8Recurrence(Recurrence):
    """Layers of a GRU in int8."""

    panels_of_vector: dict[int, kernels.Panels]
    """Of each layer that reads another vector than that of the token."""
    panels_of_state: list[kernels.Panels]
    """Of each layer."""

    def project_tokens(self, embedded: Num[Tensor, "... E"]) -> Num[Tensor, "... G"]:
        """W E y, or the ids of the tokens if a table holds W E y."""
        return embedded if isinstance(self._table, TokenTable) else super().project_tokens(embedded)

    @property
    def _table(self) -> nn.Module | None:
        return getattr(self.inputs, "word", None)

    def layer(
        self,
        depth: int,
        token: Num[Tensor, "B G"] | None,
        other: Float[Tensor, "B D"] | None,
        state: RecurrentState,
    ) -> tuple[Float[Tensor, "B H"], None]:
        tokens, ids = token, None
        if token is not None and isinstance(self._table, TokenTable):
            ids = token.squeeze(-1).contiguous()
            tokens = self._table.rows_for(ids)
        factors = None if other is None else (self.panels_of_vector[depth], other)
        return kernels.int8_gru_step(tokens, ids, factors, self.panels_of_state[depth], state.hidden[:, depth]), None


def pack_recurrence(recurrence: Recurrence, _: torch.dtype) -> Recurrence:
    """The same recurrence with its layers in the layout of the kernel, if there is one for them."""
    cells = [cell for cell in recurrence.cells if isinstance(cell, FastGruCell) and cell.is_plain]
    first = 1 if recurrence.other is None else 0
    inputs = {depth: recurrence.input_of(depth) for depth in range(first, recurrence.layers)}
    if len(cells) < recurrence.layers or not has_gru_kernel(*inputs.values(), *(cell.recurrent for cell in cells)):
        return recurrence
    packed = as_type(Int8Recurrence, recurrence)
    packed.panels_of_vector = {depth: panels_of_gates(layer) for depth, layer in inputs.items()}
    packed.panels_of_state = [panels_of_gates(cell.recurrent) for cell in cells]
    return packed


def has_gru_kernel(*layers: nn.Module) -> bool:
    """Whether these layers are in int8 and the kernel for a whole step of a GRU is the fastest."""
    return has_int8_kernel() and all(isinstance(layer, Int8Linear) for layer in layers)


def panels_of_gates(layer: nn.Module) -> kernels.Panels:
    """The layout of such a layer."""
    assert isinstance(layer, Int8Linear)
    return layer.matrix.panels(GruCell.gates)
