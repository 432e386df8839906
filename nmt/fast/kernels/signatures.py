"""The declared signature of every C function: the types, sizes and layouts of its arguments.

A test compares the declarations with the prototypes in the C sources. `calls.py` checks every call against them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

FP32 = (torch.float32,)
WIDE_OR_NARROW = (torch.float32, torch.bfloat16)
"""fp32 or bf16, the same for all such arrays of a call. The number `narrow` tells C which."""
INT64 = (torch.int64,)


@dataclass(frozen=True)
class Array:
    """A tensor in the memory of the CPU."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    shape: str
    """Sizes, separated by commas: names and numbers. A name has the same value wherever it stands in a signature."""
    is_written: bool = False
    has_strided_rows: bool = False
    """Whether rows may have a stride, which C receives as the number `NAME_stride`. All other arrays are contiguous."""
    is_optional: bool = False

    @property
    def sizes(self) -> tuple[str, ...]:
        return tuple(size.strip() for size in self.shape.split(",") if size.strip())

    @property
    def stride_name(self) -> str:
        return f"{self.name}_stride"


@dataclass(frozen=True)
class Rule:
    """A condition on sizes, strides and numbers. Skipped if it names a size that only absent arrays have."""

    text: str
    names: tuple[str, ...]
    holds: Callable[..., bool]


def positive(*names: str) -> Rule:
    return Rule(" and ".join(f"{name} > 0" for name in names), names, lambda *values: min(values) > 0)


def rows_apart(array: Array) -> Rule:
    """Rows that a kernel writes must not overlap."""
    names = *array.sizes, array.stride_name
    return Rule("{2} >= {1}".format(*names), names, lambda rows, width, stride: stride >= width or rows < 2)


@dataclass(frozen=True)
class Signature:
    """Arrays, then whole numbers."""

    name: str
    arrays: tuple[Array, ...] = ()
    numbers: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    """Sizes that must not be 0, beside the number of threads."""
    conditions: tuple[Rule, ...] = ()
    """Further rules."""
    together: tuple[tuple[str, ...], ...] = ()
    """Optional arrays that are present together or not at all."""
    returns_number: bool = False

    @property
    def rules(self) -> list[Rule]:
        """All rules beside the types and sizes of the arrays."""
        names = [*self.positive, *(["threads"] if "threads" in self.numbers else [])]
        apart = [rows_apart(array) for array in self.arrays if array.is_written and array.has_strided_rows]
        return [*([positive(*names)] if names else []), *apart, *self.conditions]

    @property
    def sizes(self) -> set[str]:
        """The names of the sizes of the arrays, but for the number of threads, which the caller passes."""
        return {size for array in self.arrays for size in array.sizes if size.isidentifier()} - {"threads"}

    @property
    def free_numbers(self) -> tuple[str, ...]:
        """The numbers that do not follow from the arrays: the caller passes them, in this order."""
        strides = {array.stride_name for array in self.arrays if array.has_strided_rows}
        return tuple(number for number in self.numbers if number not in self.sizes | strides | {"narrow"})


def _read(name: str, shape: str, dtypes: tuple[torch.dtype, ...] = FP32, *, optional: bool = False) -> Array:
    return Array(name, dtypes, shape, is_optional=optional)


def _written(name: str, shape: str, dtypes: tuple[torch.dtype, ...] = FP32) -> Array:
    return Array(name, dtypes, shape, is_written=True)


def _rows(
    name: str,
    shape: str,
    dtypes: tuple[torch.dtype, ...] = FP32,
    *,
    written: bool = False,
    optional: bool = False,
) -> Array:
    return Array(name, dtypes, shape, is_written=written, has_strided_rows=True, is_optional=optional)


def _panels(prefix: str, panels: str, quads: str, *, optional: bool = False) -> tuple[Array, ...]:
    """The matrix of a `decoding.Panels`."""
    return (
        _read(f"{prefix}panels", f"{panels}, {quads}, 64, 4", (torch.int8,), optional=optional),
        _read(f"{prefix}shifts", f"{panels}, 64", (torch.int32,), optional=optional),
        _read(f"{prefix}scales", f"{panels}, 64", optional=optional),
        _read(f"{prefix}bias", f"{panels}, 64", optional=optional),
    )


def _scratch(names: tuple[str, str], quads: str, *, optional: bool = False) -> tuple[Array, ...]:
    """Memory for rows of values as bytes, and for their scales."""
    return (
        Array(names[0], (torch.uint8,), f"rows, {quads}, 4", is_written=True, is_optional=optional),
        Array(names[1], FP32, "rows", is_written=True, is_optional=optional),
    )


def _quads(name: str, inputs: str) -> Rule:
    """How many groups of four bytes a row fills."""
    return Rule(f"{name} == ({inputs} + 3) // 4", (name, inputs), lambda quads, inputs: quads == (inputs + 3) // 4)


_QUADS = _quads("quads", "inputs")
_GATES = Rule("gates == 3 * width", ("gates", "width"), lambda gates, width: gates == 3 * width)

_SEARCH = (
    Signature(
        "additive_attention",
        (
            _read("queries", "rows, width"),
            _read("exp_keys", "sentences, length, width"),
            _read("v", "width"),
            _read("mask", "sentences, length", (torch.bool,)),
            _read("annotations", "sentences, length, annotation"),
            _read("segment_ids", "rows", INT64),
            _written("exp_queries", "rows, width"),
            _written("weights", "rows, length"),
            _written("contexts", "rows, annotation"),
        ),
        ("threads", "rows", "length", "width", "annotation"),
    ),
    Signature(
        "most_probable",
        (
            _read("all_logits", "rows, width"),
            _read("all_tokens", "segments, width", INT64, optional=True),
            _read("segment_ids", "rows", INT64, optional=True),
            _read("forbidden", "forbidden_count", INT64),
            _written("all_log_probs", "rows, size"),
            _written("all_ids", "rows, size", INT64),
        ),
        ("threads", "rows", "width", "size", "forbidden_count"),
        positive=("size", "width"),
        together=(("all_tokens", "segment_ids"),),
    ),
    Signature(
        "best_continuations",
        (
            _read("totals", "count"),
            _read("log_probs", "count, per_row"),
            _read("ids", "count, per_row", INT64),
            _read("segment_ids", "count", INT64),
            _read("prune", ""),
            _written("best", "segments, size"),
            _written("rows", "segments, size", INT64),
            _written("tokens", "segments, size", INT64),
            _written("best_log_probs", "segments, size"),
        ),
        ("count", "per_row", "segments", "size"),
        positive=("count", "per_row", "size"),
    ),
    Signature(
        "update_finished",
        (
            _read("totals", "sentences, width"),
            _read("tokens", "sentences, width", INT64),
            _read("max_lengths", "sentences", INT64),
            _read("penalties", "lengths"),
            _rows("all_scores", "sentences, places", written=True),
            _rows("all_nodes", "sentences, places", INT64, written=True),
            _written("live_totals", "sentences, width"),
        ),
        (
            *("sentences", "width", "places", "lengths", "all_scores_stride", "all_nodes_stride"),
            *("first", "length", "horizon", "eos"),
        ),
        positive=("places",),
        conditions=(
            Rule("0 <= length < lengths", ("length", "lengths"), lambda length, lengths: 0 <= length < lengths),
            Rule("horizon >= 0", ("horizon",), lambda horizon: horizon >= 0),
        ),
    ),
    Signature(
        "exp_of_keys",
        (_read("keys", "count"), _written("exp_keys", "count")),
        ("threads", "count"),
        returns_number=True,
    ),
    Signature(
        "quantize_rows",
        (
            _rows("values", "rows, width"),
            _written("bytes", "rows, width", (torch.uint8,)),
            _written("scales", "rows"),
        ),
        ("threads", "rows", "width", "values_stride", "max_level"),
        conditions=(Rule("0 < max_level < 128", ("max_level",), lambda max_level: 0 < max_level < 128),),
    ),
    Signature(
        "lay_panels",
        (
            _read("matrix", "outputs, inputs", (torch.int8,)),
            _read("rows", "panel_count, 64", INT64),
            _written("panels", "panel_count, quads, 64, 4", (torch.int8,)),
        ),
        ("threads", "panel_count", "inputs"),
        conditions=(_QUADS,),
    ),
    Signature(
        "int8_product",
        (
            _rows("values", "rows, inputs"),
            *_panels("", "panel_count", "quads"),
            *_scratch(("bytes", "row_scales"), "quads"),
            _rows("product", "rows, outputs", written=True),
        ),
        ("threads", "rows", "inputs", "outputs", "values_stride", "product_stride"),
        conditions=(
            _QUADS,
            Rule(
                "outputs <= 64 * panel_count", ("outputs", "panel_count"), lambda outputs, count: outputs <= 64 * count
            ),
        ),
    ),
    Signature(
        "int8_products_of_segments",
        (
            _rows("values", "rows, inputs"),
            *_panels("", "all_panels", "quads"),
            *_scratch(("bytes", "row_scales"), "quads"),
            _read("segment_ids", "rows", INT64),
            _read("first", "segments", INT64),
            _read("panel_count", "segments", INT64),
            _rows("product", "rows, outputs", written=True),
        ),
        ("threads", "rows", "inputs", "outputs", "values_stride", "product_stride"),
        conditions=(_QUADS,),
    ),
    Signature(
        "int8_gru_step",
        (
            _rows("projected", "rows, gates", optional=True),
            _read("table", "vocabulary, gates", optional=True),
            _read("ids", "rows", INT64, optional=True),
            _rows("values", "rows, inputs", optional=True),
            *_panels("", "panel_count", "quads", optional=True),
            *_scratch(("bytes", "row_scales"), "quads", optional=True),
            _rows("hidden", "rows, width"),
            *_panels("recurrent_", "panel_count", "hidden_quads"),
            *_scratch(("hidden_bytes", "hidden_scales"), "hidden_quads"),
            _written("next", "rows, width"),
        ),
        ("threads", "rows", "inputs", "width", "projected_stride", "values_stride", "hidden_stride"),
        conditions=(
            _GATES,
            _QUADS,
            _quads("hidden_quads", "width"),
            Rule(
                "panel_count == 3 * ((width + 63) // 64)",
                ("panel_count", "width"),
                lambda count, width: count == 3 * ((width + 63) // 64),
            ),
        ),
        together=(("table", "ids"), ("values", "panels", "shifts", "scales", "bias", "bytes", "row_scales")),
    ),
    Signature("multiplies_bytes", returns_number=True),
)

_TRAINING = (
    Signature(
        "softmax_gradient",
        (
            Array("logits", WIDE_OR_NARROW, "rows, width", is_written=True),
            _read("bias", "width"),
            _read("gold", "rows", INT64),
            _read("gold_share", ""),
            _written("log_sums", "rows"),
            _written("gold_logits", "rows"),
            _written("sums", "threads, width"),
            _written("scratch", "threads, width"),
        ),
        ("threads", "rows", "real", "width", "narrow"),
    ),
    Signature(
        "gru_step",
        (
            _rows("projected", "rows, gates", WIDE_OR_NARROW),
            _rows("recurrent", "rows, gates", WIDE_OR_NARROW),
            _read("bias", "gates", optional=True),
            _rows("hidden", "rows, width", WIDE_OR_NARROW),
            _written("next", "rows, width", WIDE_OR_NARROW),
            _written("saved", "rows, 4, width", WIDE_OR_NARROW),
        ),
        ("threads", "rows", "width", "projected_stride", "recurrent_stride", "hidden_stride", "narrow"),
        conditions=(_GATES,),
    ),
    Signature(
        "gru_step_back",
        (
            _rows("upstream", "rows, width", WIDE_OR_NARROW),
            _read("carried", "rows, width", WIDE_OR_NARROW, optional=True),
            _read("saved", "rows, 4, width", WIDE_OR_NARROW),
            _rows("hidden", "rows, width", WIDE_OR_NARROW),
            _rows("d_projected", "rows, gates", WIDE_OR_NARROW, written=True),
            _written("d_recurrent", "rows, gates", WIDE_OR_NARROW),
            _written("d_hidden", "rows, width", WIDE_OR_NARROW),
        ),
        ("threads", "rows", "width", "upstream_stride", "hidden_stride", "d_projected_stride", "narrow"),
        conditions=(_GATES,),
    ),
    Signature(
        "additive_attention_back",
        (
            _read("d_contexts", "rows, annotation"),
            _read("d_weights", "rows, length"),
            _read("exp_queries", "rows, width"),
            _read("exp_keys", "rows, length, width"),
            _read("v", "width"),
            _read("annotations", "rows, length, annotation"),
            _read("weights", "rows, length"),
            _written("d_scores", "rows, length"),
            _written("d_queries", "rows, width"),
        ),
        ("threads", "rows", "length", "width", "annotation"),
    ),
    Signature(
        "additive_keys_back",
        (
            _read("exp_queries", "steps, rows, width"),
            _read("d_scores", "steps, rows, length"),
            _read("exp_keys", "rows, length, width"),
            _read("v", "width"),
            _written("d_keys", "rows, length, width"),
            _written("d_v", "threads, width"),
        ),
        ("threads", "steps", "rows", "length", "width"),
    ),
)

SIGNATURES = {signature.name: signature for signature in (*_SEARCH, *_TRAINING)}
