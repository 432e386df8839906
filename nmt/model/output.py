"""The output layer in search: logits of the whole vocabulary, or for each sentence of the pieces on a list of its own alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.model.int8 import Int8Linear
from nmt.model.packed import PackedLinear
from nmt.native import kernels
from nmt.ragged import Ragged


@dataclass(frozen=True)
class OwnWeights:
    """The rows of A and b of each sentence's own pieces; where a sentence has fewer than another, b is -inf."""

    weight: Float[Tensor, "B W R"]
    bias: Float[Tensor, "B W"]

    skips = False

    @property
    def width(self) -> int:
        return self.bias.shape[1]

    def __call__(self, shared: nn.Linear, readouts: Float[Tensor, "N R"], rows: Ragged) -> Float[Tensor, "N C"]:
        asked = rows.spread(readouts.to(self.weight.dtype))
        own = torch.baddbmm(self.bias.unsqueeze(1), asked, self.weight.transpose(1, 2))
        return torch.cat([shared(readouts), rows.collect(own)], 1)

    def select(self, sentences: Int[Tensor, " M"]) -> OwnWeights:
        return OwnWeights(self.weight[sentences], self.bias[sentences])


@dataclass(frozen=True)
class OwnPanels:
    """The same in int8, for the compiled kernel."""

    panels: kernels.GroupPanels

    skips = True

    @property
    def width(self) -> int:
        return self.panels.outputs

    def __call__(self, shared: nn.Linear, readouts: Float[Tensor, "N R"], rows: Ragged) -> Float[Tensor, "N C"]:
        assert isinstance(shared, Int8Linear)
        logits = readouts.new_empty(len(readouts), shared.out_features + self.width)
        shared.write(readouts, logits[:, : shared.out_features])
        kernels.int8_products_of_groups(self.panels, readouts, rows.group, logits[:, shared.out_features :])
        return logits

    def select(self, sentences: Int[Tensor, " M"]) -> OwnPanels:
        return OwnPanels(self.panels.select(sentences))


@dataclass(frozen=True)
class Output:
    """w_k . r_i + b_k of N readouts for pieces k: those that all sentences share, then those of each one's own, if there are any."""

    shared: nn.Linear
    own: OwnWeights | OwnPanels | None = None

    @property
    def skips(self) -> bool:
        """Whether a sentence that nothing is asked of costs nothing."""
        return self.own is None or self.own.skips

    @property
    def width(self) -> int:
        """C."""
        return self.shared.out_features + (0 if self.own is None else self.own.width)

    def __call__(self, readouts: Float[Tensor, "N R"], rows: Ragged) -> Float[Tensor, "N C"]:
        """`rows` says which sentence each belongs to. Where a sentence has fewer pieces than another the rest is -inf."""
        logits: Tensor = self.shared(readouts) if self.own is None else self.own(self.shared, readouts, rows)
        return logits

    def select(self, sentences: Int[Tensor, " M"]) -> Output:
        """The same for the given sentences, in their order."""
        return self if self.own is None else replace(self, own=self.own.select(sentences))


def listed_output(linear: nn.Linear, shared: nn.Linear, own: Int[Tensor, " M"], sentences: Ragged) -> Output:
    """Of a layer, what of it all sentences share, and the pieces that each has of its own, those of the first one first."""
    if isinstance(linear, Int8Linear) and kernels.multiplies_int8():
        return Output(shared, OwnPanels(linear.panels_of(own, sentences)))
    dtype = linear.dtype if isinstance(linear, PackedLinear) else linear.weight.dtype
    bias = linear.weight.new_zeros(len(linear.weight)) if linear.bias is None else linear.bias
    weights = sentences.spread(linear.weight[own].to(dtype)), sentences.spread(bias[own].to(dtype), float("-inf"))
    return Output(shared, OwnWeights(*weights))
