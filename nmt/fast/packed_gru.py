"""The GRU in search with packed weights: in int8 the product with the state and the gates are one kernel call."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt.fast.gru import FastGruCell, gru_gates
from nmt.fast.int8 import Int8Linear
from nmt.fast.kernels import decoding as kernels
from nmt.fast.linear import packed_linear, plain_linear
from nmt.fast.twins import as_type
from nmt.model.encoder import UnrolledLayer
from nmt.recipe import EncoderConfig


class PackedGruCell(FastGruCell):
    """One step with packed weights."""

    def forward(
        self,
        projected: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B H"],
        cell: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Float[Tensor, "B H"], None]:
        return packed_step(projected, self.recurrent, hidden), None


def pack_layer(layer: nn.GRU, dtype: torch.dtype) -> UnrolledLayer:
    """The same layer step by step, with packed weights."""
    weight, recurrent, bias, recurrent_bias = layer.all_weights[0]
    with torch.device("meta"):  # its weights are replaced
        unrolled = UnrolledLayer(EncoderConfig(cell="gru", hidden=layer.hidden_size), layer.input_size)
        unrolled.cell = as_type(PackedGruCell, unrolled.cell)
    unrolled.input = packed_linear(plain_linear(weight, bias), dtype)
    unrolled.cell.recurrent = packed_linear(plain_linear(recurrent, recurrent_bias), dtype)
    return unrolled


def pack_cell(cell: FastGruCell, _: torch.dtype) -> FastGruCell:
    """The same cell with a fused step, unless layer normalization comes between product and gates."""
    return as_type(PackedGruCell, cell) if cell.is_plain else cell


def packed_step(
    projected: Float[Tensor, "B G"], recurrent: nn.Linear, hidden: Float[Tensor, "B H"]
) -> Float[Tensor, "B H"]:
    """s' from W x, the layer of U and b, and s."""
    panels = panels_of_gates(recurrent)
    if panels is not None:
        return kernels.int8_gru_step(projected, panels, hidden)
    product = recurrent(hidden)
    return gru_gates(projected, product, hidden.to(product.dtype))


def panels_of_gates(recurrent: nn.Linear) -> kernels.Panels | None:
    """U and b as `int8_gru_step` reads them; None unless they are in int8, with states of whole panels, and there is a kernel."""
    if not isinstance(recurrent, Int8Linear) or recurrent.in_features % kernels.PANEL:
        return None
    return recurrent.panels
