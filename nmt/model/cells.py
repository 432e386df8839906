"""Recurrent cells: one step of a GRU or an LSTM.

The caller computes the product W x with the input, for all time steps at once where it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt import recipe


class GruCell(nn.Module):
    """Gated recurrent unit (Cho et al. 2014; Bahdanau et al. 2015, A.1.1).

        r, z = sigmoid(W x + U s);   n = tanh(W x + r * (U s));   s' = (1 - z) * n + z * s

    In the decoder, W x stands for W E y_{i-1} + C c_i of the paper. As in cuDNN, r multiplies U s, where the paper has U (r * s), and z
    keeps the old state, where the paper's z takes the new one. Dropout masks the s that U reads, not s itself, which would fade with
    every step (Semeniuta et al. 2016). Layer normalization acts on W x and on U s (Ba et al. 2016, eq. 20).
    """

    gates = 3

    def __init__(self, hidden: int, *, layer_norm: bool = False) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden, 3 * hidden)
        self.norm_input = build_norm(3 * hidden, layer_norm=layer_norm)
        self.norm_recurrent = build_norm(3 * hidden, layer_norm=layer_norm)
        orthogonal_per_gate_(self.recurrent.weight)

    def forward(
        self,
        projected: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B H"],
        cell: Tensor | None = None,
        mask: Float[Tensor, "B H"] | None = None,
    ) -> tuple[Float[Tensor, "B H"], None]:
        """The next state. `projected` is W x; a GRU has no `cell`."""
        reset_x, update_x, new_x = self.norm_input(projected).chunk(3, dim=-1)
        reset_s, update_s, new_s = self.norm_recurrent(self.recurrent(dropped(hidden, mask))).chunk(3, dim=-1)
        reset, update = torch.sigmoid(reset_x + reset_s), torch.sigmoid(update_x + update_s)
        new = torch.tanh(new_x + reset * new_s)
        return (1 - update) * new + update * hidden, None

    if TYPE_CHECKING:
        __call__ = forward


class ResetBeforeGruCell(nn.Module):
    """Gated recurrent unit as printed: U reads r * s (Cho et al. 2014, eq. 5 to 8; Bahdanau et al. 2015, A.1.1).

        r, z = sigmoid(W x + U s);   n = tanh(W x + U (r * s));   s' = (1 - z) * n + z * s

    Slower than `GruCell`, because the product of n waits for r. As there, z keeps the old state. Layer normalization acts on W x, on
    the U s of r and z, and on U (r * s).
    """

    gates = 3

    def __init__(self, hidden: int, *, layer_norm: bool = False) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden, 2 * hidden)
        self.recurrent_new = nn.Linear(hidden, hidden)
        self.norm_input = build_norm(3 * hidden, layer_norm=layer_norm)
        self.norm_recurrent = build_norm(2 * hidden, layer_norm=layer_norm)
        self.norm_new = build_norm(hidden, layer_norm=layer_norm)
        orthogonal_per_gate_(self.recurrent.weight)
        orthogonal_per_gate_(self.recurrent_new.weight)

    def forward(
        self,
        projected: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B H"],
        cell: Tensor | None = None,
        mask: Float[Tensor, "B H"] | None = None,
    ) -> tuple[Float[Tensor, "B H"], None]:
        """The next state. `projected` is W x; a GRU has no `cell`."""
        read = dropped(hidden, mask)
        reset_x, update_x, new_x = self.norm_input(projected).chunk(3, dim=-1)
        reset_s, update_s = self.norm_recurrent(self.recurrent(read)).chunk(2, dim=-1)
        reset, update = torch.sigmoid(reset_x + reset_s), torch.sigmoid(update_x + update_s)
        new = torch.tanh(new_x + self.norm_new(self.recurrent_new(reset * read)))
        return (1 - update) * new + update * hidden, None

    if TYPE_CHECKING:
        __call__ = forward


class LstmCell(nn.Module):
    """Long short-term memory (Hochreiter and Schmidhuber 1997).

        i, f, o = sigmoid(W x + U s);   g = tanh(W x + U s);   c' = f * c + i * g;   s' = o * tanh(c')

    Dropout as in `GruCell`. Layer normalization acts on W x, on U s, and on c' inside the tanh (Ba et al. 2016, eq. 20 to 22).
    """

    gates = 4

    def __init__(self, hidden: int, *, layer_norm: bool = False) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden, 4 * hidden)
        self.norm_input = build_norm(4 * hidden, layer_norm=layer_norm)
        self.norm_recurrent = build_norm(4 * hidden, layer_norm=layer_norm)
        self.norm_cell = build_norm(hidden, layer_norm=layer_norm)
        orthogonal_per_gate_(self.recurrent.weight)

    def forward(
        self,
        projected: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B H"],
        cell: Tensor | None = None,
        mask: Float[Tensor, "B H"] | None = None,
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
        """The next state and cell. `projected` is W x."""
        assert cell is not None
        recurrent = self.norm_recurrent(self.recurrent(dropped(hidden, mask)))
        input_, forget, new, output = (self.norm_input(projected) + recurrent).chunk(4, dim=-1)
        new_cell = torch.sigmoid(forget) * cell + torch.sigmoid(input_) * torch.tanh(new)
        return torch.sigmoid(output) * torch.tanh(self.norm_cell(new_cell)), new_cell

    if TYPE_CHECKING:
        __call__ = forward


def dropped(hidden: Float[Tensor, "B H"], mask: Float[Tensor, "B H"] | None) -> Float[Tensor, "B H"]:
    """The state that the recurrent matrix reads: with its dropout mask in training."""
    return hidden if mask is None else hidden * mask


def gates_of(kind: recipe.Cell) -> int:
    """The number of vectors of size H that W x consists of: one per gate, and one for the proposed state."""
    match kind:
        case "gru":
            return GruCell.gates
        case "gru-reset-before":
            return ResetBeforeGruCell.gates
        case "lstm":
            return LstmCell.gates
        case _:
            assert_never(kind)


def build_cell(kind: recipe.Cell, hidden: int, *, layer_norm: bool = False) -> GruCell | ResetBeforeGruCell | LstmCell:
    """The cell of a recipe, with `hidden` units."""
    match kind:
        case "gru":
            return GruCell(hidden, layer_norm=layer_norm)
        case "gru-reset-before":
            return ResetBeforeGruCell(hidden, layer_norm=layer_norm)
        case "lstm":
            return LstmCell(hidden, layer_norm=layer_norm)
        case _:
            assert_never(kind)


def build_norm(width: int, *, layer_norm: bool) -> nn.Module:
    """Layer normalization over `width` values, or the identity."""
    return nn.LayerNorm(width) if layer_norm else nn.Identity()


def orthogonal_per_gate_(weight: Tensor) -> None:
    """Initialize the square block of each gate of a recurrent matrix [G*H H] as orthogonal (Bahdanau et al. 2015, B.1)."""
    for block in torch.split(weight.detach(), weight.shape[1]):
        nn.init.orthogonal_(block)
