"""The compiled kernels of search, as functions of tensors.

Each makes one pass over memory where PyTorch makes several with a temporary tensor each. Tests compare them with the equivalent
PyTorch, which stands where they are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

import torch
from jaxtyping import Bool, Float, Int, Int8, Int32
from torch import Tensor
from torch.nn.functional import pad

from nmt.fast.kernels.build import library
from nmt.fast.kernels.calls import call, threads_for
from nmt.search.segments import Segments

_LARGEST_KEY = 30.0
"""The largest |k| for which the kernels use e^(2q) e^(2k) = e^(2(q + k)) in fp32: where e^(2q) overflows, |q + k| is so large that
tanh(q + k) is 1 or -1."""

PANEL = 64
"""Outputs that an int8 product computes side by side."""
_BYTE_PRODUCTS = 64
"""Products of bytes that take as long as one operation of `threads_for`."""


def can_use(*tensors: Tensor) -> bool:
    """Whether there are kernels for these tensors: fp32 on a CPU, the numbers of a row side by side, no gradients."""
    return (
        not torch.is_grad_enabled()
        and all(tensor.dtype == torch.float32 and tensor.is_cpu and tensor.stride(-1) == 1 for tensor in tensors)
        and library() is not None
    )


# --- attention ----------------------------------------------------------------------------------------------------


def exp_of_keys(keys: Float[Tensor, "G S D"]) -> Float[Tensor, "G S D"] | None:
    """e^(2k) for `additive_attention`, or None if a key is too large for it."""
    return (2 * keys).exp_() if not keys.numel() or keys.abs().amax() <= _LARGEST_KEY else None


def additive_attention(
    queries: Float[Tensor, "N D"],
    exp_keys: Float[Tensor, "G S D"],
    v: Float[Tensor, " D"],
    mask: Bool[Tensor, "G S"],
    annotations: Float[Tensor, "G S A"],
    segment_ids: Int[Tensor, " N"],
    addends: Float[Tensor, "N S"] | None = None,
    starts: Int[Tensor, " N"] | None = None,
    factors: Float[Tensor, "N W"] | None = None,
) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N S"], Float[Tensor, "N D"]]:
    """Contexts c_i = sum_j alpha_ij h_j, weights alpha_ij = softmax_j [v^T tanh(q_i + k_j) + addend_ij], and e^(2 q_i).

    With `exp_keys` e^(2 k_j):  tanh(q + k) = 1 - 2 / (1 + e^(2q) e^(2k)). So each of the [N S D] numbers takes a product and half a
    division instead of a tanh. `segment_ids` says which sentence each query reads. It reads all positions, or the W from its
    start on, whose weights are multiplied by their factors; a factor is 0 outside of the window.
    """
    rows, (_, length, width), annotation = len(queries), exp_keys.shape, annotations.shape[2]
    exp_queries, weights = queries.new_empty(rows, width), queries.new_empty(rows, length)
    contexts = queries.new_empty(rows, annotation)
    inputs = map(Tensor.contiguous, (queries, exp_keys, v, mask, annotations, segment_ids))
    optional = (None if part is None else part.contiguous() for part in (addends, starts, factors))
    window = 0 if factors is None else factors.shape[1]
    assert window <= length
    threads = threads_for(rows * width * (window or length))
    call("additive_attention", *inputs, *optional, exp_queries, weights, contexts, threads=threads, window=window)
    return contexts, weights, exp_queries


# --- beams --------------------------------------------------------------------------------------------------------


def most_probable(
    logits: Float[Tensor, "N C"],
    size: int,
    *,
    tokens: Int[Tensor, "G C"] | None = None,
    segment_ids: Int[Tensor, " N"] | None = None,
    forbid: tuple[int, ...] = (),
) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """The `size` largest log-probabilities of each row and their tokens, best first; of equals the first column wins.

    Column c stands for token c, or with `tokens` for `tokens[segment_ids[row], c]`. Forbidden tokens count in the normalization but
    are not returned. Missing candidates are -inf, and so is every candidate of a row with a NaN or +inf. The time grows with `size`.
    """
    logits = logits.contiguous()
    rows, width = logits.shape
    assert size > 0
    assert width > 0
    log_probs, ids = logits.new_empty(rows, size), logits.new_empty(rows, size, dtype=torch.long)
    columns = (None, None) if tokens is None else (tokens, segment_ids)
    call("most_probable", logits, *columns, _ids(forbid), log_probs, ids, threads=threads_for(logits.numel()))
    return log_probs, ids


@cache
def _ids(numbers: tuple[int, ...]) -> Int[Tensor, " n"]:
    return torch.tensor(numbers, dtype=torch.long)


def best_continuations(
    totals: Float[Tensor, " N"],
    log_probs: Float[Tensor, "N k"],
    ids: Int[Tensor, "N k"],
    segment_ids: Int[Tensor, " N"],
    segments: int,
    size: int,
    prune: float | None,
) -> tuple[Float[Tensor, "B W"], Int[Tensor, "B W"], Int[Tensor, "B W"], Float[Tensor, "B W"]]:
    """The `size` most probable continuations of each segment, best first.

    Of equals the earlier row wins, then the earlier token. Missing continuations are -inf, and so are those more than `prune` below
    the best one.

    Args:
        totals: the log-probability of each hypothesis.
        log_probs: those of its most probable tokens, best first.
        ids: these tokens.
        segment_ids: the segment of each hypothesis, in rising order.

    Returns:
        Log-probabilities of the continuations, the rows that they continue, their tokens, and the log-probabilities of these.
    """
    shape = segments, size
    best, best_log_probs = totals.new_empty(shape), totals.new_empty(shape)
    rows, tokens = ids.new_empty(shape), ids.new_empty(shape)
    assert log_probs.numel() > 0
    inputs = map(Tensor.contiguous, (totals, log_probs, ids, segment_ids))
    limit = math.inf if prune is None else prune
    call("best_continuations", *inputs, best, rows, tokens, best_log_probs, prune=limit)
    return best, rows, tokens, best_log_probs


def update_finished(
    totals: Float[Tensor, "B W"],
    tokens: Int[Tensor, "B W"],
    scores: Float[Tensor, "B P"],
    nodes: Int[Tensor, "B P"],
    max_lengths: Int[Tensor, " B"],
    penalties: Float[Tensor, " L"],
    *,
    first: int,
    length: int,
    horizon: int | None,
    eos: int,
) -> Float[Tensor, "B W"]:
    """Enter finished candidates into the pool of their sentence; return the totals of the live ones, -inf for all others.

    What `nmt.search.loop.Search.update_finished` says in PyTorch. `scores` and `nodes` are the pool, best first, and change;
    `penalties` are the divisors of the log-probability at each length. Candidate i of this step is node `first` + i.
    """
    live_totals = torch.empty_like(totals)
    assert length < len(penalties)
    inputs = map(Tensor.contiguous, (totals, tokens, max_lengths.long(), penalties))
    numbers = {"first": first, "length": length, "horizon": len(penalties) if horizon is None else horizon, "eos": eos}
    call("update_finished", *inputs, scores, nodes, live_totals, **numbers)
    return live_totals


# --- int8 ---------------------------------------------------------------------------------------------------------


def multiplies_int8() -> bool:
    """Whether there is a kernel for int8 products: it needs AVX-512 VNNI."""
    return hasattr(library(), "int8_product")


@dataclass(frozen=True)
class Panels:
    """An int8 matrix A', the scales s_g of its rows and a bias b_g in the layout of `int8_product`: 64 outputs side by side.

    The last panel is padded with zeros. Values are shifted by 128 to be unsigned, so products are too large by 128 sum A'_g.
    """

    quantized: Int8[Tensor, "P Q 64 4"]
    shifts: Int32[Tensor, "P 64"]
    """128 sum A'_g."""
    scales: Float[Tensor, "P 64"]
    bias: Float[Tensor, "P 64"]
    outputs: int


@dataclass(frozen=True)
class SegmentPanels:
    """One matrix for each segment, each with panels of its own. The outputs that a segment lacks are -inf."""

    panels: Panels
    first: Int[Tensor, " G"]
    """The first panel of each segment."""
    count: Int[Tensor, " G"]
    """The number of panels of each segment."""

    def select(self, segments: Int[Tensor, " M"]) -> SegmentPanels:
        """The matrices of these segments, in their order."""
        return replace(self, first=self.first[segments], count=self.count[segments])


@dataclass(frozen=True)
class Int8Matrix:
    """A', the scales s_g of its rows, and a bias b_g: A_g = s_g A'_g to within rounding."""

    quantized: Int8[Tensor, "G D"]
    scales: Float[Tensor, " G"]
    bias: Float[Tensor, " G"] | None

    @cached_property
    def shifts(self) -> Int32[Tensor, " G"]:
        """128 sum A'_g."""
        return self.quantized.sum(1, dtype=torch.int32) * 128

    @cached_property
    def quads(self) -> Int32[Tensor, "G Q"]:
        """A' with four bytes as one number; the last may be padded."""
        return pad(self.quantized, (0, -self.quantized.shape[1] % 4)).view(torch.int32)

    def panels(self) -> Panels:
        """The layout for `int8_product` and `int8_gru_step`."""
        rows = torch.arange(len(self.quantized))
        padded = pad(rows, (0, -len(rows) % PANEL), value=-1).view(-1, PANEL)
        return replace(self._laid_out(padded), outputs=len(rows))

    def panels_of_segments(self, rows: Int[Tensor, " M"], segments: Segments) -> SegmentPanels:
        """The layout for `int8_products_of_segments` of the rows that each segment selects, those of the first segment first."""
        count = -(-segments.lengths // PANEL)
        first = count.cumsum(0) - count
        places = rows.new_full((max(int(count.sum()), 1) * PANEL,), -1)
        places[first[segments.segment_ids] * PANEL + segments.positions] = rows
        panels = self._laid_out(places.view(-1, PANEL), padding=-math.inf)
        return SegmentPanels(replace(panels, outputs=segments.width), first, count)

    def _laid_out(self, rows: Int[Tensor, "P 64"], padding: float = 0.0) -> Panels:
        """Panels of some rows; row -1 is padding, whose bias is `padding`."""
        sources, is_padding = rows.clamp(min=0), rows < 0
        quads = self.quads[sources].masked_fill_(is_padding.unsqueeze(-1), 0).transpose(1, 2).contiguous()
        panels = quads.view(torch.int8).view(len(rows), -1, PANEL, 4)
        shifts, scales = (part[sources].masked_fill_(is_padding, 0) for part in (self.shifts, self.scales))
        bias = self.scales.new_zeros(rows.shape) if self.bias is None else self.bias[sources]
        return Panels(panels, shifts, scales, bias.masked_fill_(is_padding, padding), rows.numel())


def int8_products_of_segments(
    matrices: SegmentPanels, values: Float[Tensor, "N D"], segment_ids: Int[Tensor, " N"], out: Float[Tensor, "N W"]
) -> None:
    """Write `int8_product` of each row with the matrix of its segment, and -inf beyond its outputs; `segment_ids` rise."""
    tensors = *_factors(matrices.panels, values), segment_ids, matrices.first, matrices.count, out
    call("int8_products_of_segments", *tensors, threads=_threads_for(matrices.panels, values), quads=_quads_of(values))


def int8_product(
    panels: Panels, values: Float[Tensor, "N D"], out: Float[Tensor, "N G"] | None = None
) -> Float[Tensor, "N G"]:
    """y_ig = s_i s_g (x'_i - 128) . A'_g + b_g with x'_i = round(x_i / s_i) + 128, written to `out` if there is one."""
    product = values.new_empty(values.shape[0], panels.outputs) if out is None else out
    assert panels.outputs <= panels.shifts.numel()
    tensors = *_factors(panels, values), product
    call("int8_product", *tensors, threads=_threads_for(panels, values), quads=_quads_of(values))
    return product


def int8_gru_step(
    projected: Float[Tensor, "N G"], recurrent: Panels, hidden: Float[Tensor, "N H"]
) -> Float[Tensor, "N H"]:
    """A GRU step s' from W x, U, b and s in one pass: U s + b is not written to memory. The size of s is a multiple of 64."""
    following, width = hidden.new_empty(hidden.shape), hidden.shape[1]
    numbers = {"gates": 3 * width, "panels": 3 * width // PANEL, "quads": width // 4}
    arrays = projected, *_factors(recurrent, hidden), following
    call("int8_gru_step", *arrays, threads=_threads_for(recurrent, hidden), **numbers)
    return following


def _factors(panels: Panels, values: Float[Tensor, "N D"]) -> tuple[Tensor, ...]:
    """The arrays of a product of values with a matrix: both, and memory for the quantized values and their scales."""
    values = values if values.stride(1) == 1 else values.contiguous()
    quantized = torch.empty(len(values), _quads_of(values), 4, dtype=torch.uint8)
    return values, panels.quantized, panels.shifts, panels.scales, panels.bias, quantized, values.new_empty(len(values))


def _quads_of(values: Float[Tensor, "N D"]) -> int:
    """The groups of four inputs of each row."""
    return -(-values.shape[1] // 4)


def _threads_for(panels: Panels, values: Float[Tensor, "N D"]) -> int:
    return threads_for(values.numel() * panels.outputs // _BYTE_PRODUCTS)
