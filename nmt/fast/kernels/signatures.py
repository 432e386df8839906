"""The declared signature of every C function: what each argument is, and how the sizes of the arguments depend on one another.

A test holds the declarations against the prototypes in the C sources. `calls.py` checks them at every call.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

FP32 = (torch.float32,)
WIDE_OR_NARROW = (torch.float32, torch.bfloat16)
"""fp32 or bf16, the same for all such arguments of a call; C learns which one from the number `narrow`."""
INT64 = (torch.int64,)


@dataclass(frozen=True)
class Array:
    """A tensor in the memory of the CPU."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    shape: str
    """Sizes separated by commas: names, numbers, or arithmetic with the names of other sizes. `*n`: any shape of n numbers."""
    is_written: bool = False
    has_strided_rows: bool = False
    """Whether the rows may lie apart; C learns how far from the number `NAME_stride`. All else is contiguous."""
    is_optional: bool = False

    @property
    def sizes(self) -> list[str]:
        return [size.strip() for size in self.shape.split(",") if size.strip()]


@dataclass(frozen=True)
class Signature:
    """Arrays, then whole numbers. The caller gives those numbers that do not follow from the arrays."""

    name: str
    arrays: tuple[Array, ...] = ()
    numbers: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    """What else must hold of sizes and numbers, as Python."""
    together: tuple[tuple[str, ...], ...] = ()
    """Optional arrays that are given together or not at all."""
    returns_number: bool = False

    @property
    def sizes(self) -> set[str]:
        """The names that arrays give a value to."""
        parts = (size.removeprefix("*") for array in self.arrays for size in array.sizes)
        return {part for part in parts if part.isidentifier() and part != "threads"}

    @property
    def given(self) -> tuple[str, ...]:
        """The numbers that the caller gives, in their order."""
        strides = {f"{array.name}_stride" for array in self.arrays if array.has_strided_rows}
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


def _panels(prefix: str, panels: str, inputs: str, *, optional: bool = False) -> tuple[Array, ...]:
    """A matrix as `kernels.Panels` holds it."""
    return (
        _read(f"{prefix}panels", f"{panels}, ({inputs} + 3) // 4, 64, 4", (torch.int8,), optional=optional),
        _read(f"{prefix}shifts", f"64 * {panels}", (torch.int32,), optional=optional),
        _read(f"{prefix}steps", f"64 * {panels}", optional=optional),
        _read(f"{prefix}bias", f"64 * {panels}", optional=optional),
    )


def _scratch(names: tuple[str, str], inputs: str, *, optional: bool = False) -> tuple[Array, ...]:
    """Places for rows of values as bytes, and for their steps."""
    return (
        Array(names[0], (torch.uint8,), f"rows, ({inputs} + 3) // 4 * 4", is_written=True, is_optional=optional),
        Array(names[1], FP32, "rows", is_written=True, is_optional=optional),
    )


_SEARCH = (
    Signature(
        "additive_attention",
        (
            _read("queries", "rows, width"),
            _read("odds", "sentences, length, width"),
            _read("v", "width"),
            _read("mask", "sentences, length", (torch.bool,)),
            _read("annotations", "sentences, length, annotation"),
            _read("sentence", "rows", INT64),
            _written("asked", "rows, width"),
            _written("weights", "rows, length"),
            _written("contexts", "rows, annotation"),
        ),
        ("threads", "rows", "length", "width", "annotation"),
    ),
    Signature(
        "most_probable",
        (
            _read("all_logits", "rows, width"),
            _read("all_pieces", "groups, width", INT64, optional=True),
            _read("group", "rows", INT64, optional=True),
            _read("forbidden", "forbidden_count", INT64),
            _written("all_log_probs", "rows, size"),
            _written("all_ids", "rows, size", INT64),
        ),
        ("threads", "rows", "width", "size", "forbidden_count"),
        conditions=("size > 0", "width > 0"),
        together=(("all_pieces", "group"),),
    ),
    Signature(
        "best_continuations",
        (
            _read("totals", "count"),
            _read("log_probs", "count, each"),
            _read("ids", "count, each", INT64),
            _read("group", "count", INT64),
            _read("prune", "", optional=True),
            _written("best", "groups, size"),
            _written("rows", "groups, size", INT64),
            _written("tokens", "groups, size", INT64),
            _written("best_log_probs", "groups, size"),
        ),
        ("count", "each", "groups", "size"),
        conditions=("count > 0", "each > 0", "size > 0"),
    ),
    Signature(
        "settle",
        (
            _read("totals", "sentences, width"),
            _read("tokens", "sentences, width", INT64),
            _read("max_lengths", "sentences", INT64),
            _read("penalties", "lengths"),
            _rows("all_scores", "sentences, places", written=True),
            _rows("all_nodes", "sentences, places", INT64, written=True),
            _written("going", "sentences, width"),
        ),
        (
            *("sentences", "width", "places", "lengths", "all_scores_stride", "all_nodes_stride"),
            *("first", "length", "horizon", "eos"),
        ),
        conditions=("places > 0", "0 <= length < lengths", "horizon >= 0"),
    ),
    Signature(
        "odds_of", (_read("keys", "*count"), _written("odds", "*count")), ("threads", "count"), returns_number=True
    ),
    Signature(
        "round_rows",
        (
            _rows("values", "rows, width"),
            _written("bytes", "rows, width", (torch.uint8,)),
            _written("steps", "rows"),
        ),
        ("threads", "rows", "width", "values_stride", "most"),
        conditions=("0 < most < 128",),
    ),
    Signature(
        "lay_panels",
        (
            _read("matrix", "outputs, inputs", (torch.int8,)),
            _read("rows", "count", INT64),
            _written("panels", "count // 64, (inputs + 3) // 4, 64, 4", (torch.int8,)),
        ),
        ("threads", "count", "inputs"),
    ),
    Signature(
        "int8_product",
        (
            _rows("values", "rows, inputs"),
            *_panels("", "panel_count", "inputs"),
            *_scratch(("bytes", "row_steps"), "inputs"),
            _rows("product", "rows, outputs", written=True),
        ),
        ("threads", "rows", "inputs", "outputs", "values_stride", "product_stride"),
        conditions=("outputs <= 64 * panel_count",),
    ),
    Signature(
        "int8_products_of_groups",
        (
            _rows("values", "rows, inputs"),
            *_panels("", "all_panels", "inputs"),
            *_scratch(("bytes", "row_steps"), "inputs"),
            _read("group", "rows", INT64),
            _read("first", "groups", INT64),
            _read("panel_count", "groups", INT64),
            _rows("product", "rows, outputs", written=True),
        ),
        ("threads", "rows", "inputs", "outputs", "values_stride", "product_stride"),
    ),
    Signature(
        "int8_gru_step",
        (
            _rows("projected", "rows, 3 * width", optional=True),
            _read("table", "words, 3 * width", optional=True),
            _read("ids", "rows", INT64, optional=True),
            _rows("values", "rows, inputs", optional=True),
            *_panels("", "panel_count", "inputs", optional=True),
            *_scratch(("bytes", "row_steps"), "inputs", optional=True),
            _rows("hidden", "rows, width"),
            *_panels("recurrent_", "panel_count", "width"),
            *_scratch(("hidden_bytes", "hidden_steps"), "width"),
            _written("next", "rows, width"),
        ),
        ("threads", "rows", "inputs", "width", "projected_stride", "values_stride", "hidden_stride"),
        conditions=("panel_count == 3 * ((width + 63) // 64)",),
        together=(("table", "ids"), ("values", "panels", "shifts", "steps", "bias", "bytes", "row_steps")),
    ),
    Signature("multiplies_bytes", returns_number=True),
)

_TRAINING = (
    Signature(
        "gru_step",
        (
            _rows("projected", "rows, 3 * width", WIDE_OR_NARROW),
            _rows("recurrent", "rows, 3 * width", WIDE_OR_NARROW),
            _read("bias", "3 * width", optional=True),
            _rows("hidden", "rows, width", WIDE_OR_NARROW),
            _written("next", "rows, width", WIDE_OR_NARROW),
            _written("kept", "rows, 4, width", WIDE_OR_NARROW),
        ),
        ("threads", "rows", "width", "projected_stride", "recurrent_stride", "hidden_stride", "narrow"),
    ),
    Signature(
        "gru_step_back",
        (
            _rows("upstream", "rows, width", WIDE_OR_NARROW),
            _read("carried", "rows, width", WIDE_OR_NARROW, optional=True),
            _read("kept", "rows, 4, width", WIDE_OR_NARROW),
            _rows("hidden", "rows, width", WIDE_OR_NARROW),
            _rows("d_projected", "rows, 3 * width", WIDE_OR_NARROW, written=True),
            _written("d_recurrent", "rows, 3 * width", WIDE_OR_NARROW),
            _written("d_hidden", "rows, width", WIDE_OR_NARROW),
        ),
        ("threads", "rows", "width", "upstream_stride", "hidden_stride", "d_projected_stride", "narrow"),
    ),
    Signature(
        "additive_attention_back",
        (
            _read("d_contexts", "rows, annotation"),
            _read("d_weights", "rows, length"),
            _read("asked", "rows, width"),
            _read("odds", "rows, length, width"),
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
            _read("asked", "steps, rows, width"),
            _read("d_scores", "steps, rows, length"),
            _read("odds", "rows, length, width"),
            _read("v", "width"),
            _written("d_keys", "rows, length, width"),
            _written("d_v", "threads, width"),
        ),
        ("threads", "steps", "rows", "length", "width"),
    ),
)

SIGNATURES = {signature.name: signature for signature in (*_SEARCH, *_TRAINING)}
