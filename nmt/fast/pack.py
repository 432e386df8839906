"""`pack(model, precision)` for decoding: weights laid out for the processor, tables of tokens, fused steps.

A packed model is a copy, frozen as it is: so weights can be rounded, rearranged and multiplied with one another once.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from nmt.errors import UsageError
from nmt.fast.gru import FastGruCell, gru_gates
from nmt.fast.int8 import Int8Linear, has_int8_kernel
from nmt.fast.kernels import decoding as kernels
from nmt.fast.kernels.build import prepare_kernels
from nmt.fast.linear import can_pack, packed_linear, plain_linear, restricted
from nmt.fast.loss import ChunkedOutputLayer
from nmt.fast.output import PackedOutputLayer
from nmt.fast.recurrent import SearchModel
from nmt.fast.search import FastSearch
from nmt.fast.shared_attention import FusedAttention, ProjectedAttention, SharedAttention, SharedMultiHeadAttention
from nmt.fast.switch import is_on
from nmt.fast.tables import TokenIds, TokenTable
from nmt.fast.transformer import SearchTransformer, SharedDecoderLayer
from nmt.fast.twins import as_type, twin
from nmt.model.attention import Attention, MultiHeadAttention
from nmt.model.cells import GruCell
from nmt.model.decoder import AttendThenUpdate, Recurrence, RecurrentState, UpdateThenAttend
from nmt.model.embedding import TokenEmbedding
from nmt.model.encoder import Encoder, UnrolledLayer
from nmt.model.interface import TranslationModel, device_of
from nmt.model.output import OutputLayer
from nmt.model.readout import AttentionalReadout, MaxoutReadout, Readout, StateReadout, TanhReadout
from nmt.model.recurrent import RecurrentModel
from nmt.model.scores import AdditiveScore, ConcatScore
from nmt.model.transformer import TransformerDecoderLayer, TransformerModel
from nmt.runtime.device import DTYPES, DecodingPrecision
from nmt.search.loop import Search

ModuleT = TypeVar("ModuleT", bound=nn.Module)

_LARGEST_TABLE = 2**24
"""The most numbers of a `TokenTable`."""

SEARCH_TWINS: dict[type[nn.Module], type[nn.Module]] = {
    RecurrentModel: SearchModel,
    Attention: SharedAttention,
    MultiHeadAttention: SharedMultiHeadAttention,
    GruCell: FastGruCell,
    TransformerModel: SearchTransformer,
    TransformerDecoderLayer: SharedDecoderLayer,
    OutputLayer: ChunkedOutputLayer,
}
"""Types that have a faster twin whatever the precision."""
SEARCHES: dict[type[Search], type[Search]] = {Search: FastSearch}
"""The same for the loop of search, which is no module."""


def pack(
    model: TranslationModel[Any, Any], precision: DecodingPrecision, shared_tokens: Int[Tensor, " F"] | None = None
) -> TranslationModel[Any, Any]:
    """A copy of a model for decoding, on the same device, in evaluation mode. Later updates of the model do not reach it.

    On a CPU its weights are packed in this precision; in int8 PyTorch's LSTM layers stay in fp32. Matrices that multiply only embedded
    tokens become tables, if these are not too large. With `NMT_FAST=0`, or on a GPU, linear layers are rounded to the precision, and
    nothing else is changed.

    Args:
        model: any model; modules without a fast twin stay as they are.
        precision: of the matrix products. In bf16 they also need autocast, see `nmt.runtime.device.autocast`.
        shared_tokens: the tokens on every shortlist, if shortlists will be used.

    Raises:
        UsageError: int8 cannot be computed here.
    """
    copied = deepcopy(model).eval().requires_grad_(False)
    for layer in copied.modules():
        if isinstance(layer, nn.RNNBase):
            layer.flatten_parameters()  # cuDNN needs all weights in one block, but the copy has one for each
    is_fast = is_on() and device_of(copied).type == "cpu"
    if is_fast and _has_twin(copied):
        return _packed(copied, precision, shared_tokens)
    if precision == "int8":
        raise UsageError(f"Decoding in int8 needs {_int8_needs(copied)}: use fp32 or bf16.")
    if precision in ("bf16", "fp16"):
        _round_matrices(copied, DTYPES[precision])
    if is_fast and _is_plain_transformer(copied):
        prepare_kernels()
        return twin(copied, SEARCH_TWINS)
    return copied


def pack_search(search: Search) -> Search:
    """A twin of a search that finds the same hypotheses faster. With `NMT_FAST=0` returns the search itself."""
    fast_type = SEARCHES.get(type(search)) if is_on() else None
    return search if fast_type is None else fast_type(search.options)


def _round_matrices(model: nn.Module, dtype: torch.dtype) -> None:
    """Round the linear layers once. Autocast would before every product: it keeps no rounded weight that needs no gradient."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):  # an embedding that shares its weight is not rounded
            layer.weight = nn.Parameter(layer.weight.to(dtype), requires_grad=False)
            if layer.bias is not None:
                layer.bias = nn.Parameter(layer.bias.to(dtype), requires_grad=False)


def _int8_needs(model: TranslationModel[Any, Any]) -> str:
    """What is missing to decode with a model that has no packed twin in int8."""
    if device_of(model).type != "cpu":
        return "a CPU"
    return "a recurrent model " + ("of the plain classes" if is_on() else "and the fast modules, but NMT_FAST is 0")


def _has_twin(model: TranslationModel[Any, Any]) -> TypeGuard[RecurrentModel]:
    """Whether `SearchModel` can replace a model: it bypasses methods that a subclass of these parts could override."""
    if type(model) is not RecurrentModel:
        return False
    return type(model.output) is OutputLayer and type(model.decoder.attention) in SEARCH_TWINS


def _is_plain_transformer(model: TranslationModel[Any, Any]) -> bool:
    """Whether `SearchTransformer` can replace a model: it bypasses methods that a subclass of these parts could override."""
    if type(model) is not TransformerModel or type(model.output) is not OutputLayer:
        return False
    return all(type(layer) is TransformerDecoderLayer for layer in model.decoder)


def _packed(
    model: RecurrentModel, precision: DecodingPrecision, shared_tokens: Int[Tensor, " F"] | None
) -> SearchModel:
    prepare_kernels()
    fast, dtype = twin(model, SEARCH_TWINS), DTYPES[precision]
    assert isinstance(fast, SearchModel)
    fast.in_bf16 = precision == "bf16"
    if can_pack(fast.output.weight, dtype):
        _pack_children(fast, dtype)
        _tabulate(fast)
    elif precision == "int8":
        raise UsageError("Decoding in int8 needs a model in fp32 on a CPU that oneDNN knows: use fp32 or bf16 instead.")
    if shared_tokens is not None:
        fast.shared_tokens = shared_tokens
        linear = fast.output.linear if isinstance(fast.output, PackedOutputLayer) else fast.output
        fast.shared_output = restricted(linear, fast.shared_tokens)
    return fast


def _pack_children(module: nn.Module, dtype: torch.dtype) -> None:
    """Replace modules by packed ones, children first."""
    for name, child in module.named_children():
        _pack_children(child, dtype)
        packer = PACKERS.get(type(child))
        if packer is not None:
            setattr(module, name, packer(child, dtype))


def _tabulate(model: RecurrentModel) -> None:
    """Replace the layers that read tokens by tables, on each side where all of them can be; those of an LSTM cannot."""
    encoder, decoder = model.encoder, model.decoder
    layers = [layer for side in (encoder.rightward, encoder.leftward) for layer in list(side)[:1]]
    recurrences = [part for part in decoder.modules() if isinstance(part, Recurrence) and "word" in part.inputs]
    words: list[tuple[nn.Module, str]] = [(part.inputs, "word") for part in recurrences]
    words += [(decoder.readout, "word")] if isinstance(decoder.readout, TanhReadout) else []
    _tabulate_side(model, "source_embedding", [(layer, "input") for layer in layers], [encoder, *layers])
    _tabulate_side(model, "target_embedding", words, [decoder, decoder.readout, *recurrences])


def _tabulate_side(
    model: RecurrentModel, side: str, places: list[tuple[nn.Module, str]], modules: list[nn.Module]
) -> None:
    """Replace the layers at these places of one side, unless one is too large or a module is not of a known type."""
    embedding: TokenEmbedding = getattr(model, side)
    widest = _LARGEST_TABLE // embedding.num_embeddings
    layers = [getattr(holder, name, None) for holder, name in places]
    readers = [layer for layer in layers if isinstance(layer, nn.Linear) and layer.out_features <= widest]
    if len(readers) < len(places) or any(type(module) not in _TOKEN_READERS for module in modules):
        return
    for (holder, name), reader in zip(places, readers, strict=True):
        setattr(holder, name, TokenTable(embedding, reader))
    setattr(model, side, TokenIds())


# --- packed modules ------------------------------------------------------------------------------------------------


class PackedGru(nn.Module):
    """The states of a GRU layer with packed weights."""

    def __init__(self, layer: nn.GRU, dtype: torch.dtype) -> None:
        super().__init__()
        weight, recurrent, bias, recurrent_bias = layer.all_weights[0]
        self.input: nn.Linear | TokenTable = packed_linear(plain_linear(weight, bias), dtype)
        self.recurrent = packed_linear(plain_linear(recurrent, recurrent_bias), dtype)
        self._panels = _panels_of_gates(self.recurrent) if _has_gru_kernel(self.recurrent) else None

    def forward(self, values: Num[Tensor, "B S D"]) -> tuple[Float[Tensor, "B S N"], None]:
        """The states of all steps."""
        projected = self.input(values)
        hidden, states = projected.new_zeros(len(values), projected.shape[2] // GruCell.gates), []
        for inputs in projected.unbind(1):
            hidden = self._step(inputs, hidden)
            states.append(hidden)
        return torch.stack(states, 1), None

    def _step(self, projected: Float[Tensor, "B G"], hidden: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        if self._panels is None:
            return gru_gates(projected, self.recurrent(hidden), hidden)
        return kernels.int8_gru_step(projected, None, None, self._panels, hidden)

    if TYPE_CHECKING:
        __call__ = forward


class Int8Recurrence(Recurrence):
    """Layers of a GRU in int8: a step of a layer, products included, is one kernel call."""

    _other: dict[int, kernels.Panels]
    _recurrent: list[kernels.Panels]

    @classmethod
    def of(cls, recurrence: Recurrence) -> Int8Recurrence:
        """The same recurrence, whose layers are in int8, with the layout of the kernel."""
        packed = as_type(cls, recurrence)
        reads_other = range(1 if packed.other is None else 0, packed.layers)
        packed._other = {depth: _panels_of_gates(packed.input_of(depth)) for depth in reads_other}
        packed._recurrent = [_panels_of_gates(cell.recurrent) for cell in packed.cells if isinstance(cell, GruCell)]
        return packed

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
        factors = None if other is None else (self._other[depth], other)
        return kernels.int8_gru_step(tokens, ids, factors, self._recurrent[depth], state.hidden[:, depth]), None


class ProjectedReadout(Readout):
    """h~_t = tanh(W_c [c_t; h_t]) from contexts already multiplied with their part of W_c, see `ProjectedAttention`."""

    def __init__(self, state: nn.Linear) -> None:
        super().__init__()
        self.state = state

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... R"]
    ) -> Float[Tensor, "... R"]:
        return torch.tanh(context + self.state(hidden))


# --- packers -------------------------------------------------------------------------------------------------------


def _pack_linear(linear: nn.Linear, dtype: torch.dtype) -> nn.Module:
    return packed_linear(linear, dtype) if min(linear.in_features, linear.out_features) > 1 else linear


def _fuse_attention(decoder: AttendThenUpdate | UpdateThenAttend) -> None:
    """Fuse the additive attention of a decoder; the attentions of several heads are shared, but not fused."""
    attention = decoder.attention
    if type(attention) is not SharedAttention or attention.window is not None or attention.has_coverage:
        return
    if type(attention.score) in (AdditiveScore, ConcatScore):
        decoder.attention = as_type(FusedAttention, attention)


def _pack_recurrence(recurrence: Recurrence, _: torch.dtype) -> nn.Module:
    cells = [cell for cell in recurrence.cells if isinstance(cell, FastGruCell) and cell.is_plain]
    others = [recurrence.input_of(depth) for depth in range(1 if recurrence.other is None else 0, recurrence.layers)]
    if len(cells) < recurrence.layers or not _has_gru_kernel(*others, *(cell.recurrent for cell in cells)):
        return recurrence
    return Int8Recurrence.of(recurrence)


def _pack_attend_then_update(decoder: AttendThenUpdate, _: torch.dtype) -> nn.Module:
    _fuse_attention(decoder)
    return decoder


def _pack_update_then_attend(decoder: UpdateThenAttend, dtype: torch.dtype) -> nn.Module:
    """Only an attentional readout reads the contexts: project the annotations with its matrix, if that is no wider than they are."""
    _fuse_attention(decoder)
    attention, readout = decoder.attention, decoder.readout
    if not isinstance(attention, SharedAttention) or not isinstance(readout, AttentionalReadout):
        return decoder
    if attention.score is not None and type(readout) is AttentionalReadout:
        weight = readout.combine.weight
        context_size = readout.context_size
        context_weight, state_weight = torch.split(weight, [context_size, weight.shape[1] - context_size], dim=1)
        if len(context_weight) <= context_size:
            decoder.attention = ProjectedAttention(attention, packed_linear(plain_linear(context_weight, None), dtype))
            decoder.readout = ProjectedReadout(packed_linear(plain_linear(state_weight, None), dtype))
    return decoder


def _panels_of_gates(layer: nn.Module) -> kernels.Panels:
    assert isinstance(layer, Int8Linear)
    return layer.panels_of_parts(GruCell.gates)


def _has_gru_kernel(*layers: nn.Module) -> bool:
    """Whether these layers are in int8 and the kernel for a whole step of a GRU is the fastest."""
    return has_int8_kernel() and all(isinstance(layer, Int8Linear) for layer in layers)


_TOKEN_READERS: set[type[nn.Module]] = {
    *(Encoder, UnrolledLayer, PackedGru, AttendThenUpdate, UpdateThenAttend, Recurrence, Int8Recurrence),
    *(TanhReadout, MaxoutReadout, AttentionalReadout, ProjectedReadout, StateReadout),
}
"""Modules that read embedded tokens only through the layers that `_tabulate` replaces."""

PACKERS: dict[type[nn.Module], Callable[[Any, torch.dtype], nn.Module]] = {
    nn.Linear: _pack_linear,
    nn.GRU: PackedGru,
    ChunkedOutputLayer: PackedOutputLayer,
    Recurrence: _pack_recurrence,
    AttendThenUpdate: _pack_attend_then_update,
    UpdateThenAttend: _pack_update_then_attend,
}
"""How each type is packed on a CPU that oneDNN supports."""
