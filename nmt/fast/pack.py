"""`pack(model, precision)` for decoding: weights laid out for the processor, tables of tokens, fused steps.

A packed model is a copy, frozen as it is: so weights can be rounded, rearranged and multiplied with one another once.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from nmt.errors import UsageError
from nmt.fast.attention import can_fuse
from nmt.fast.gru import FastGruCell
from nmt.fast.kernels.build import prepare_kernels
from nmt.fast.linear import TokenIds, TokenTable, can_pack, packed_linear, restricted
from nmt.fast.loss import ChunkedOutputLayer
from nmt.fast.output import PackedOutputLayer
from nmt.fast.packed_gru import pack_cell, pack_layer
from nmt.fast.search import FastSearch, SearchModel, SearchTransformer, SharedDecoderLayer
from nmt.fast.shared_attention import FusedAttention, SharedAttention, SharedMultiHeadAttention
from nmt.fast.twins import as_type, is_on, twin
from nmt.model.attention import Attention, MultiHeadAttention
from nmt.model.cells import GruCell
from nmt.model.decoder import AttendThenUpdate, Recurrence, UpdateThenAttend
from nmt.model.embedding import TokenEmbedding
from nmt.model.encoder import Encoder, UnrolledLayer
from nmt.model.interface import TranslationModel, device_of
from nmt.model.output import OutputLayer
from nmt.model.readout import AttentionalReadout, LexicalReadout, MaxoutReadout, Readout, StateReadout, TanhReadout
from nmt.model.recurrent import RecurrentModel
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
    is_fast = is_on() and device_of(copied).type == "cpu" and _has_twin(copied)
    if is_fast and isinstance(copied, RecurrentModel):
        return _packed(copied, precision, shared_tokens)
    if precision == "int8":
        needs = "a recurrent model of the plain classes, on a CPU, without NMT_FAST=0"
        raise UsageError(f"Decoding in int8 needs {needs}: use fp32 or bf16.")
    if precision in ("bf16", "fp16"):
        _round_matrices(copied, DTYPES[precision])
    if is_fast:
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


def _has_twin(model: TranslationModel[Any, Any]) -> bool:
    """Whether a model of `SEARCH_TWINS` can replace a model: it bypasses methods that a subclass of these parts could override."""
    if type(model) is RecurrentModel:
        return type(model.output) is OutputLayer and type(model.decoder.attention) in SEARCH_TWINS
    if type(model) is TransformerModel:
        layers = {type(layer) for layer in model.decoder}
        return type(model.output) is OutputLayer and layers == {TransformerDecoderLayer}
    return False


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
        attention = fast.decoder.attention
        if type(attention) is SharedAttention and can_fuse(attention):
            fast.decoder.attention = as_type(FusedAttention, attention)
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
    recurrences = [module for module in decoder.modules() if isinstance(module, Recurrence) and "word" in module.inputs]
    readouts = [module for module in decoder.modules() if isinstance(module, Readout)]
    words: list[tuple[nn.Module, str]] = [(recurrence.inputs, "word") for recurrence in recurrences]
    words += [(readout, "word") for readout in readouts if isinstance(readout, TanhReadout)]
    if not encoder.keeps_tokens:
        _tabulate_side(model, "source_embedding", [(layer, "input") for layer in layers], [encoder, *layers])
    _tabulate_side(model, "target_embedding", words, [decoder, *readouts, *recurrences])


def _tabulate_side(
    model: RecurrentModel, side: str, attributes: list[tuple[nn.Module, str]], modules: list[nn.Module]
) -> None:
    """Replace the layers that are these attributes, unless one is too large or a module of the side is not of a known type."""
    embedding: TokenEmbedding = getattr(model, side)
    widest = _LARGEST_TABLE // embedding.num_embeddings
    layers = [getattr(holder, name, None) for holder, name in attributes]
    readers = [layer for layer in layers if isinstance(layer, nn.Linear) and layer.out_features <= widest]
    if len(readers) < len(attributes) or any(type(module) not in _TOKEN_READERS for module in modules):
        return
    for (holder, name), reader in zip(attributes, readers, strict=True):
        setattr(holder, name, TokenTable(embedding, reader))
    setattr(model, side, TokenIds())


# --- packers -------------------------------------------------------------------------------------------------------


_TOKEN_READERS: set[type[nn.Module]] = {
    *(Encoder, UnrolledLayer, AttendThenUpdate, UpdateThenAttend, Recurrence),
    *(TanhReadout, MaxoutReadout, AttentionalReadout, StateReadout, LexicalReadout),
}
"""Modules that read embedded tokens only through the layers that `_tabulate` replaces."""

PACKERS: dict[type[nn.Module], Callable[[Any, torch.dtype], nn.Module]] = {
    nn.Linear: packed_linear,
    nn.GRU: pack_layer,
    ChunkedOutputLayer: PackedOutputLayer,
    FastGruCell: pack_cell,
}
"""How each type is packed on a CPU that oneDNN supports."""
