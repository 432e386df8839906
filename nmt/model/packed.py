"""A copy of a model for decoding: each matrix laid out once for the kernels of the processor it runs on, and the product with a
word made once.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from nmt.device import DTYPES, DecodingPrecision
from nmt.errors import UsageError
from nmt.evened import with_even_rows
from nmt.model.attention import Attention, Memory
from nmt.model.cells import GruCell
from nmt.model.decoder import DecoderState, Recurrence, UpdateThenAttend
from nmt.model.gathering import StepLinear
from nmt.model.gru import GATES_OF_GRU, gru_gates, gru_states
from nmt.model.int8 import Int8Linear, can_multiply_int8, has_int8_kernel
from nmt.model.readout import AttentionalReadout, Readout
from nmt.model.scores import AdditiveScore, ConcatScore
from nmt.model.seq2seq import Seq2Seq, WordEmbedding
from nmt.native import kernels
from nmt.ragged import Ragged

_LARGEST_TABLE = 2**24
"""Numbers in a `WordTable` at the most: it may come to take as much memory."""


class PackedLinear(StepLinear):
    """y = x A^T + b through oneDNN, for inference: `nn.Linear` lays A out anew at every call.

    In fp32 it also passes by the BLAS library, which on some processors is less than half as fast.
    """

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias, self.dtype = linear.weight, linear.bias, dtype
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype))
        self._bias = None if linear.bias is None else linear.bias.detach().to(dtype)

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        return with_even_rows(self._product, values.to(self.dtype))

    def _product(self, values: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(values, self._weight, self._bias, "none", [], "")
        return product

    if TYPE_CHECKING:
        __call__ = forward


def packed_linear(linear: nn.Linear, dtype: torch.dtype) -> PackedLinear | Int8Linear:
    """A layer that multiplies in the given type."""
    return Int8Linear(linear) if dtype == torch.int8 else PackedLinear(linear, dtype)


class WordTable(nn.Module):
    """A g E y + b of every word y, looked up once it has been read: what a linear layer makes of a word is the same wherever it stands."""

    def __init__(self, embedding: WordEmbedding, linear: nn.Linear) -> None:
        super().__init__()
        self.embedding, self.linear = embedding, linear
        self.table: Tensor | None = None
        self.has_read = torch.zeros(embedding.num_embeddings, dtype=torch.bool)

    def forward(self, numbers: Float[Tensor, "... 1"]) -> Float[Tensor, "... G"]:
        ids = numbers.squeeze(-1).long()
        return functional.embedding(ids, self.read(ids))

    def read(self, ids: Int[Tensor, "*ids"]) -> Float[Tensor, "V G"]:
        """The table, which has the products with such words now."""
        if self.table is None or not self.has_read[ids].all():
            words = torch.unique(ids[~self.has_read[ids]])
            products: Tensor = self.linear(self.embedding(words))
            if self.table is None:  # memory is taken where it is written
                self.table = products.new_empty(len(self.has_read), products.shape[1])
            self.table[words] = products
            self.has_read[words] = True
        return self.table

    if TYPE_CHECKING:
        __call__ = forward


class WordNumber(nn.Module):
    """A word as its number, where all that read its embedding are `WordTable`s."""

    def forward(self, ids: Int[Tensor, "*ids"]) -> Float[Tensor, "*ids 1"]:
        return ids.unsqueeze(-1).float()

    if TYPE_CHECKING:
        __call__ = forward


class PackedGru(nn.Module):
    """The states of a GRU layer, each step of it through packed matrices."""

    def __init__(self, layer: nn.GRU, dtype: torch.dtype) -> None:
        super().__init__()
        reading, recurring, read_bias, recurrent_bias = layer.all_weights[0]
        self.read: nn.Linear | WordTable = packed_linear(_linear(reading, read_bias), dtype)
        self.recurrent = packed_linear(_linear(recurring, recurrent_bias), dtype)
        self._panels = _panels_of_gates(self.recurrent) if _can_step_at_once(self.recurrent) else None

    def forward(self, values: Float[Tensor, "B S D"]) -> tuple[Float[Tensor, "B S N"], None]:
        """The states of all steps, and nothing."""
        projected = self.read(values)
        start = projected.new_zeros(len(values), projected.shape[2] // GATES_OF_GRU)
        return gru_states(projected, self._step, start), None

    def _step(self, projected: Float[Tensor, "B G"], hidden: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        if self._panels is None:
            return gru_gates(projected, self.recurrent(hidden), hidden)
        return kernels.int8_gru_step(projected, None, None, self._panels, hidden)

    if TYPE_CHECKING:
        __call__ = forward


class PackedRecurrence(Recurrence):
    """Layers of a GRU in int8: a step of each, with the products that it reads, is one call of a compiled kernel."""

    def __init__(self, recurrence: Recurrence) -> None:
        nn.Module.__init__(self)
        self.inputs, self.layers, self.residual = recurrence.inputs, recurrence.layers, recurrence.residual
        self.training, self.dropout, self.between = recurrence.training, recurrence.dropout, recurrence.between
        self._other = {depth: _panels_of_gates(recurrence.reads_other(depth)) for depth in recurrence.reading_other}
        self._recurrent = [_panels_of_gates(cell.recurrent) for cell in recurrence.cells if isinstance(cell, GruCell)]

    def read(self, embedded: Float[Tensor, "... E"]) -> Float[Tensor, "... G"]:
        """W E y, or the number of a word whose W E y is in a table."""
        return embedded if isinstance(self._word, WordTable) else super().read(embedded)

    @property
    def _word(self) -> nn.Module | None:
        return getattr(self.inputs, "word", None)

    def layer(
        self,
        depth: int,
        word: Float[Tensor, "B G"] | None,
        other: Float[Tensor, "B D"] | None,
        state: DecoderState,
        masks: Tensor | None,
    ) -> tuple[Float[Tensor, "B H"], None]:
        words, ids = word, None
        if word is not None and isinstance(self._word, WordTable):
            ids = word.squeeze(-1).long()
            words = self._word.read(ids)
        reads = None if other is None else (self._other[depth], other)
        return kernels.int8_gru_step(words, ids, reads, self._recurrent[depth], state.hidden[:, depth]), None

    def all_steps(
        self, words: Float[Tensor, "B T G"], state: DecoderState, masks: Tensor | None
    ) -> tuple[Float[Tensor, "B T H"], DecoderState]:
        return self.each_step(words, state, masks)


def _panels_of_gates(layer: nn.Module) -> kernels.Panels:
    assert isinstance(layer, Int8Linear)
    return layer.panels_of_parts(GATES_OF_GRU)


def _is_plain_gru(recurrence: Recurrence) -> bool:
    """Whether it is what `PackedRecurrence` computes, once its layers are packed."""
    others = map(recurrence.reads_other, recurrence.reading_other)
    recurrent = (cell.recurrent for cell in recurrence.cells if isinstance(cell, GruCell))
    return all(isinstance(cell, GruCell) and cell.is_plain for cell in recurrence.cells) and _can_step_at_once(
        *others, *recurrent
    )


def _can_step_at_once(*layers: nn.Module) -> bool:
    """Whether the kernel for a whole step of a GRU multiplies with such layers, and fast."""
    return has_int8_kernel() and all(isinstance(layer, Int8Linear) for layer in layers)


class PackedAttention(Attention):
    """Global attention with an additive score, one call of a compiled kernel a step.

    Keys are kept as e^(2 k_j) too, unless one is so large that this is not an fp32 number: then all is as without kernels.
    """

    score: AdditiveScore

    def __init__(self, attention: Attention) -> None:
        nn.Module.__init__(self)
        assert isinstance(attention.score, AdditiveScore)
        self.score, self.window, self.covers = attention.score, None, False

    def remember(
        self, annotations: Float[Tensor, "N S A"], mask: Bool[Tensor, "N S"], summary: Float[Tensor, "B C"]
    ) -> Memory:
        memory = super().remember(annotations.float(), mask, summary)
        keys = memory.keys.float()
        return replace(memory, odds=kernels.odds_of(keys) if kernels.can_use(keys) else None)

    def forward(
        self, query: Float[Tensor, "N H"], position: Int[Tensor, " N"], memory: Memory
    ) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N S"]]:
        if memory.odds is None:
            return super().forward(query, position, memory)
        return self._at_once(query, torch.arange(len(query)), memory.odds, memory)

    def of_hypotheses(
        self, queries: Float[Tensor, "M H"], positions: Int[Tensor, " M"], asking: Ragged, memory: Memory
    ) -> tuple[Float[Tensor, "M A"], Float[Tensor, "M S"]]:
        if memory.odds is None:
            return super().of_hypotheses(queries, positions, asking, memory)
        return self._at_once(queries, asking.group, memory.odds, memory)

    def _at_once(
        self, queries: Float[Tensor, "M H"], group: Int[Tensor, " M"], odds: Float[Tensor, "G S D"], memory: Memory
    ) -> tuple[Float[Tensor, "M A"], Float[Tensor, "M S"]]:
        asked, v = self.score.query(queries).float(), self.score.v.weight.squeeze(0)
        return kernels.additive_attention(asked, odds, v, memory.mask, memory.annotations, group)[:2]

    if TYPE_CHECKING:
        __call__ = forward


class ProjectedContexts(Attention):
    """An attention whose contexts are W c_i = sum_j alpha_ij W h_j: each W h_j is made once, and not W c_i at every step."""

    def __init__(self, attention: Attention, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.attention, self.linear, self.covers = attention, linear, attention.covers

    def remember(
        self, annotations: Float[Tensor, "N S A"], mask: Bool[Tensor, "N S"], summary: Float[Tensor, "B C"]
    ) -> Memory:
        memory = self.attention.remember(annotations, mask, summary)
        return replace(memory, annotations=self.linear(memory.annotations).to(memory.annotations.dtype))

    def forward(
        self, query: Float[Tensor, "N H"], position: Int[Tensor, " N"], memory: Memory
    ) -> tuple[Float[Tensor, "N R"], Float[Tensor, "N S"]]:
        return self.attention(query, position, memory)

    def of_steps(
        self, queries: Float[Tensor, "N T H"], positions: Int[Tensor, "N T"], memory: Memory
    ) -> tuple[Float[Tensor, "N T R"], Float[Tensor, "N T S"]]:
        return self.attention.of_steps(queries, positions, memory)

    def of_hypotheses(
        self, queries: Float[Tensor, "M H"], positions: Int[Tensor, " M"], asking: Ragged, memory: Memory
    ) -> tuple[Float[Tensor, "M R"], Float[Tensor, "M S"]]:
        return self.attention.of_hypotheses(queries, positions, asking, memory)

    if TYPE_CHECKING:
        __call__ = forward


class ProjectedReadout(AttentionalReadout):
    """h~_t = tanh(W_c [c_t; h_t]) of W_c's product with c_t and its part for h_t."""

    def __init__(self, state: StepLinear) -> None:
        nn.Module.__init__(self)
        self.state = state

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Float[Tensor, "... E"], context: Float[Tensor, "... R"]
    ) -> Float[Tensor, "... R"]:
        return torch.tanh(self.state.added_to(context, hidden))

    if TYPE_CHECKING:
        __call__ = forward


def _project_contexts(decoder: UpdateThenAttend, dtype: torch.dtype) -> None:
    """Multiply annotations with what the readout multiplies contexts with, if that is all that reads these, and no wider."""
    attention, readout = decoder.attention, decoder.readout
    if not (isinstance(attention, Attention) and attention.score and isinstance(readout, AttentionalReadout)):
        return
    of_context, of_state = torch.split(readout.combine.weight, list(readout.reads), dim=1)
    if len(of_context) <= of_context.shape[1]:
        decoder.attention = ProjectedContexts(attention, packed_linear(_linear(of_context, None), dtype))
        decoder.readout = ProjectedReadout(packed_linear(_linear(of_state, None), dtype))


def _scale_feed(decoder: UpdateThenAttend) -> None:
    """Scale what multiplies the readout that is fed, and not that one at every step."""
    if decoder.feeds:
        feed = decoder.recurrence.inputs["feed"]
        assert isinstance(feed, nn.Linear)
        feed.weight.mul_(decoder.feed_scale)
        decoder.feed_scale = 1.0


def _is_global_additive(module: nn.Module) -> TypeGuard[Attention]:
    """Whether it is what `PackedAttention` computes, and no variant of it."""
    if type(module) is not Attention or module.window is not None or module.covers:
        return False
    return type(module.score) in (AdditiveScore, ConcatScore)


def _linear(weight: Float[Tensor, "G D"], bias: Float[Tensor, " G"] | None) -> nn.Linear:
    """A layer of given weights."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(weight.detach(), requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return linear


def packed(model: Seq2Seq, precision: DecodingPrecision) -> Seq2Seq:
    """A copy of the model as it is now, on the same device, in evaluation mode and without gradients.

    On a CPU its linear layers are `PackedLinear` and compute in the given precision, as they would under autocast, or in int8
    `Int8Linear`; an LSTM that reads the source stays in fp32 then. Those that read words are tables, if these are not too large.
    What only reads a sum (contexts, by a readout) is applied to the terms, which are fewer.

    Raises:
        UsageError: int8 is asked for where torch has no kernels for it.
    """
    copied = deepcopy(model).eval().requires_grad_(False)
    for layer in copied.modules():
        if isinstance(layer, nn.RNNBase):
            layer.flatten_parameters()  # cuDNN wants all weights in one block, but the copy has a block for each
    dtype = DTYPES[precision]
    if can_pack(copied.output.weight, dtype):
        _pack(copied, dtype)
        _tabulate(copied)
    elif precision == "int8":
        raise UsageError("Decoding in int8 needs a model in fp32 on a CPU that oneDNN knows: use fp32 or bf16 instead.")
    return copied


def can_pack(weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether oneDNN computes with such weights in this type, on this processor."""
    mkldnn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not mkldnn or weight.dtype != torch.float32 or weight.device.type != "cpu":
        return False
    if dtype == torch.int8:
        return can_multiply_int8()
    return dtype == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _pack(module: nn.Module, dtype: torch.dtype) -> None:
    """Put packed layers in the place of all linear ones within; a product with a vector gains nothing by it."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and min(child.in_features, child.out_features) > 1:
            setattr(module, name, packed_linear(child, dtype))
        elif isinstance(child, nn.GRU):
            setattr(module, name, PackedGru(child, dtype))
        else:
            if isinstance(child, UpdateThenAttend):
                _scale_feed(child)
            _pack(child, dtype)
            if _is_global_additive(child):
                setattr(module, name, PackedAttention(child))
            if isinstance(child, Recurrence) and _is_plain_gru(child):
                setattr(module, name, PackedRecurrence(child))
            if isinstance(child, UpdateThenAttend):
                _project_contexts(child, dtype)


def _tabulate(model: Seq2Seq) -> None:
    """Put tables in the place of the layers that read words, on each side where all of them can be; an LSTM's cannot."""
    encoder, modules = model.encoder, list(model.decoder.modules())
    first = [(layer, "read") for sides in (encoder.rightward, encoder.leftward) for layer in list(sides)[:1]]
    recurrent = [(part.inputs, "word") for part in modules if isinstance(part, Recurrence) and "word" in part.inputs]
    readout = [(part, "word") for part in modules if isinstance(part, Readout)]
    for side, places in (("source_embedding", first), ("target_embedding", [*recurrent, *readout])):
        embedding: WordEmbedding = getattr(model, side)
        widest = _LARGEST_TABLE // embedding.num_embeddings
        found = [getattr(holder, name, None) for holder, name in places]
        readers = [reader for reader in found if isinstance(reader, nn.Linear) and reader.out_features <= widest]
        if len(readers) == len(places):
            for (holder, name), reader in zip(places, readers, strict=True):
                setattr(holder, name, WordTable(embedding, reader))
            setattr(model, side, WordNumber())


def restricted(linear: nn.Linear, rows: Int[Tensor, " C"]) -> nn.Linear:
    """A layer that gives some outputs of another one alone, packed if that is."""
    if isinstance(linear, Int8Linear):
        return linear.of_rows(rows)
    few = _linear(linear.weight[rows], None if linear.bias is None else linear.bias[rows])
    return PackedLinear(few, linear.dtype) if isinstance(linear, PackedLinear) else few
