"""The signature of every C function: the types of its arguments from its prototype in C, their sizes from the table `DECLARATIONS`.

`calls.py` checks every call against them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

from nmt.fast.kernels.compiling import SOURCES

DTYPES = {
    "float": (torch.float32,),
    # The same for all such arrays of a call; the number `narrow` tells C which.
    "void": (torch.float32, torch.bfloat16),
    "int64_t": (torch.int64,),
    "int32_t": (torch.int32,),
    "int8_t": (torch.int8,),
    "uint8_t": (torch.uint8,),
    "bool": (torch.bool,),
}
"""The types that an array may have, by its type in C."""


@dataclass(frozen=True)
class Rule:
    """A condition on sizes, strides and numbers: how it reads, what it names, and whether it holds for their values."""

    text: str
    names: tuple[str, ...]
    holds: Callable[..., bool]


def _rule(text: str, holds: Callable[..., bool]) -> Rule:
    """The rule of a function whose arguments have the names that the text has."""
    return Rule(text, tuple(inspect.signature(holds).parameters), holds)


def _positive(*names: str) -> Rule:
    return Rule(" and ".join(f"{name} > 0" for name in names), names, lambda *values: min(values) > 0)


_HAS_THREE_GATES = _rule("gates == 3 * width", lambda gates, width: gates == 3 * width)
_IS_WITHIN = _rule("window <= length", lambda window, length: window <= length)
_HAS_QUADS = _rule("quads == (inputs + 3) // 4", lambda quads, inputs: quads == (inputs + 3) // 4)


@dataclass(frozen=True)
class Declaration:
    """What C does not say of the arguments of a function."""

    shapes: str = ""
    """The sizes of each array: names and numbers. A name has the same value wherever it stands."""
    rules: tuple[Rule, ...] = ()
    """Conditions on sizes, strides and numbers, beside those that hold for all functions."""
    optional: tuple[str, ...] = ()
    """Arrays that may be absent; those of one string are present together or not at all."""


DECLARATIONS = {
    "additive_attention": Declaration(
        "queries[rows, width] exp_keys[sentences, length, width] v[width] mask[sentences, length] "
        "annotations[sentences, length, annotation] segment_ids[rows] starts[rows] factors[rows, window] "
        "exp_queries[rows, width] weights[rows, length] contexts[rows, annotation]",
        rules=(_IS_WITHIN,),
        optional=("starts factors",),
    ),
    "most_probable": Declaration(
        "all_logits[rows, width] all_tokens[segments, width] segment_ids[rows] forbidden[forbidden_count] "
        "all_log_probs[rows, size] all_ids[rows, size]",
        rules=(_positive("size", "width"),),
        optional=("all_tokens segment_ids",),
    ),
    "best_continuations": Declaration(
        "totals[count] log_probs[count, per_row] ids[count, per_row] segment_ids[count] prune[] "
        "best[segments, size] rows[segments, size] tokens[segments, size] best_log_probs[segments, size]",
        rules=(_positive("count", "per_row", "size"),),
    ),
    "update_finished": Declaration(
        "totals[sentences, width] tokens[sentences, width] max_lengths[sentences] penalties[lengths] "
        "all_scores[sentences, places] all_nodes[sentences, places] live_totals[sentences, width]",
        rules=(
            _positive("places"),
            _rule("0 <= length < lengths", lambda length, lengths: 0 <= length < lengths),
            _rule("horizon >= 0", lambda horizon: horizon >= 0),
        ),
    ),
    "exp_of_keys": Declaration("keys[count] exp_keys[count]"),
    "quantize_rows": Declaration(
        "values[rows, width] bytes[rows, width] scales[rows]",
        rules=(_rule("0 < max_level < 128", lambda max_level: 0 < max_level < 128),),
    ),
    "lay_panels": Declaration(
        "matrix[outputs, inputs] rows[panel_count, 64] panels[panel_count, quads, 64, 4]",
        rules=(_HAS_QUADS,),
    ),
    "int8_product": Declaration(
        "values[rows, inputs] panels[panel_count, quads, 64, 4] shifts[panel_count, 64] scales[panel_count, 64] "
        "bias[panel_count, 64] bytes[rows, quads, 4] row_scales[rows] product[rows, outputs]",
        rules=(
            _HAS_QUADS,
            _rule("outputs <= 64 * panel_count", lambda outputs, panel_count: outputs <= 64 * panel_count),
        ),
    ),
    "int8_products_of_segments": Declaration(
        "values[rows, inputs] panels[all_panels, quads, 64, 4] shifts[all_panels, 64] scales[all_panels, 64] "
        "bias[all_panels, 64] bytes[rows, quads, 4] row_scales[rows] segment_ids[rows] first[segments] "
        "panel_count[segments] product[rows, outputs]",
        rules=(_HAS_QUADS,),
    ),
    "int8_gru_step": Declaration(
        "projected[rows, gates] table[vocabulary, gates] ids[rows] "
        "values[rows, inputs] panels[panel_count, quads, 64, 4] shifts[panel_count, 64] scales[panel_count, 64] "
        "bias[panel_count, 64] bytes[rows, quads, 4] row_scales[rows] "
        "hidden[rows, width] recurrent_panels[panel_count, hidden_quads, 64, 4] recurrent_shifts[panel_count, 64] "
        "recurrent_scales[panel_count, 64] recurrent_bias[panel_count, 64] hidden_bytes[rows, hidden_quads, 4] "
        "hidden_scales[rows] next[rows, width]",
        rules=(
            _HAS_THREE_GATES,
            _HAS_QUADS,
            _rule("hidden_quads == (width + 3) // 4", lambda hidden_quads, width: hidden_quads == (width + 3) // 4),
            _rule(
                "panel_count == 3 * ((width + 63) // 64)",
                lambda panel_count, width: panel_count == 3 * ((width + 63) // 64),
            ),
        ),
        optional=("projected", "table ids", "values panels shifts scales bias bytes row_scales"),
    ),
    "multiplies_bytes": Declaration(),
    "softmax_gradient": Declaration(
        "logits[rows, width] bias[width] gold[rows] gold_share[] log_sums[rows] gold_logits[rows] "
        "sums[threads, width] scratch[threads, width]"
    ),
    "gru_step": Declaration(
        "projected[rows, gates] recurrent[rows, gates] bias[gates] hidden[rows, width] next[rows, width] "
        "saved[rows, 4, width]",
        rules=(_HAS_THREE_GATES,),
        optional=("bias",),
    ),
    "gru_step_back": Declaration(
        "upstream[rows, width] carried[rows, width] saved[rows, 4, width] hidden[rows, width] "
        "d_projected[rows, gates] d_recurrent[rows, gates] d_hidden[rows, width]",
        rules=(_HAS_THREE_GATES,),
        optional=("carried",),
    ),
    "additive_attention_back": Declaration(
        "d_contexts[rows, annotation] d_weights[rows, length] exp_queries[rows, width] exp_keys[rows, length, width] "
        "v[width] annotations[rows, length, annotation] weights[rows, length] starts[rows] factors[rows, window] "
        "d_scores[rows, length] d_queries[rows, width] d_factors[rows, window]",
        rules=(_IS_WITHIN,),
        optional=("starts factors d_factors",),
    ),
    "additive_keys_back": Declaration(
        "exp_queries[steps, rows, width] d_scores[steps, rows, length] exp_keys[rows, length, width] v[width] "
        "d_keys[rows, length, width] d_v[threads, width]"
    ),
}


@dataclass(frozen=True)
class Array:
    """A tensor in the memory of the CPU."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    sizes: tuple[str, ...]
    is_written: bool
    has_strided_rows: bool
    """Whether rows may have a stride, which C receives as the number `NAME_stride`. All other arrays are contiguous."""

    @property
    def stride_name(self) -> str:
        return f"{self.name}_stride"


@dataclass(frozen=True)
class Signature:
    """Arrays, then whole numbers."""

    name: str
    arrays: tuple[Array, ...]
    numbers: tuple[str, ...]
    rules: tuple[Rule, ...]
    """A rule is skipped if it names a size that only absent arrays have."""
    optional: tuple[tuple[str, ...], ...]
    """Arrays that may be absent, in groups that are present together or not at all."""
    returns_number: bool

    @property
    def sizes(self) -> set[str]:
        """The names of the sizes of the arrays, but for the number of threads, which the caller passes."""
        return {size for array in self.arrays for size in array.sizes if size.isidentifier()} - {"threads"}

    @property
    def free_numbers(self) -> tuple[str, ...]:
        """The numbers that do not follow from the arrays: the caller passes them, in this order."""
        strides = {array.stride_name for array in self.arrays if array.has_strided_rows}
        return tuple(number for number in self.numbers if number not in self.sizes | strides | {"narrow"})


def _rows_apart(array: Array) -> Rule:
    """Rows that a kernel writes must not overlap."""
    names = (*array.sizes, array.stride_name)
    return Rule("{2} >= {1} or {0} < 2".format(*names), names, lambda rows, width, stride: stride >= width or rows < 2)


def _signature(name: str, result: str, arguments: str) -> Signature:
    declared = DECLARATIONS[name]
    parts = re.findall(r"(const )?(\w+) (\*?)(\w+)", arguments)
    numbers = tuple(name for _, _, pointer, name in parts if not pointer)
    shapes = {
        array: tuple(re.findall(r"\w+", sizes)) for array, sizes in re.findall(r"(\w+)\[(.*?)\]", declared.shapes)
    }
    arrays = tuple(
        Array(name, DTYPES[dtype], shapes.pop(name), not const, f"{name}_stride" in numbers)
        for const, dtype, pointer, name in parts
        if pointer
    )
    assert not shapes, f"{name} has no {', '.join(shapes)}"
    rows_apart = [_rows_apart(array) for array in arrays if array.is_written and array.has_strided_rows]
    rules = (*([_positive("threads")] if "threads" in numbers else []), *rows_apart, *declared.rules)
    optional = tuple(tuple(group.split()) for group in declared.optional)
    return Signature(name, arrays, numbers, rules, optional, result == "double")


_PROTOTYPE = re.compile(r"^(void|double) KERNEL\((\w+)\)\(([^)]*)\) \{", re.MULTILINE)
SIGNATURES = {
    name: _signature(name, result, arguments)
    for source in SOURCES
    for result, name, arguments in _PROTOTYPE.findall(source.read_text(encoding="utf-8"))
}
"""The signature of each C function that is not static."""
