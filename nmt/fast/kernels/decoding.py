"""What the compiled kernels compute, as functions of tensors. Each stands beside the PyTorch that it is faster than, and the tests
hold it against that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import torch
from jaxtyping import Bool, Float, Int, Int8, Int32, UInt8
from torch import Tensor
from torch.nn.functional import pad

from nmt.fast.kernels.build import library
from nmt.fast.kernels.calls import call, number, threads_for
from nmt.segments import Segments

_LARGEST_KEY = 30.0
"""Size of a key k up to which e^(2 (q + k)) may be had as a product in fp32: where e^(2 q) is none, |q + k| is so large that its
tanh is 1."""

_PANEL = 64
"""Outputs that a product in int8 computes side by side."""
_AT_ONCE = 64
"""How many products of bytes take as long as one number elsewhere."""
_GATES = 4
"""How many times as long a gate takes as a product of the attention."""


def can_use(*tensors: Tensor) -> bool:
    """Whether there are kernels, and for these: fp32 in a CPU's memory, the numbers of a row side by side, no gradients."""
    return not torch.is_grad_enabled() and all(map(_is_plain, tensors)) and library() is not None


def _is_plain(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.device.type == "cpu" and tensor.stride(-1) == 1


def odds_of(keys: Float[Tensor, "G S D"]) -> Float[Tensor, "G S D"] | None:
    """e^(2 k), for `additive_attention`; None if a key is too large for it."""
    keys = keys.contiguous()
    odds = torch.empty_like(keys)
    largest = call("odds_of", (keys.view(-1), odds.view(-1)), threads_for(keys.numel()))
    assert largest is not None
    return odds if largest <= _LARGEST_KEY else None


def additive_attention(
    queries: Float[Tensor, "M D"],
    odds: Float[Tensor, "G S D"],
    v: Float[Tensor, " D"],
    mask: Bool[Tensor, "G S"],
    annotations: Float[Tensor, "G S A"],
    group: Int[Tensor, " M"],
) -> tuple[Float[Tensor, "M A"], Float[Tensor, "M S"], Float[Tensor, "M D"]]:
    """c_i = sum_j alpha_ij h_j and alpha_ij = softmax_j v^T tanh(q_i + k_j), of the sentences that the queries ask about; e^(2 q_i).

    With `odds` e^(2 k_j):  tanh(q + k) = 1 - 2 / (1 + e^(2 q) e^(2 k)), so that all there is to compute for each number of
    [M S D] is a product and half a division.
    """
    rows, (_, length, width), annotation = len(queries), odds.shape, annotations.shape[2]
    asked, weights = queries.new_empty(rows, width), queries.new_empty(rows, length)
    contexts = queries.new_empty(rows, annotation)
    read = tuple(map(Tensor.contiguous, (queries, odds, v, mask, annotations, group)))
    call("additive_attention", (*read, asked, weights, contexts), threads_for(rows * length * width))
    return contexts, weights, asked


def most_probable(
    logits: Float[Tensor, "N C"],
    size: int,
    *,
    pieces: Int[Tensor, "G C"] | None = None,
    group: Int[Tensor, " N"] | None = None,
    forbid: tuple[int, ...] = (),
) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """The `size` largest numbers of log softmax and the pieces that their columns stand for, best first; of equals the first.

    Columns stand for their numbers, or for the pieces of the group of each row.

    Forbidden pieces count in the sum alone. What there is too little of is -inf, and so is all of a row with what is not a
    number. The time grows with `size`.
    """
    logits = logits.contiguous()
    rows = logits.shape[0]
    log_probs, ids = logits.new_empty(rows, size), logits.new_empty(rows, size, dtype=torch.long)
    columns = (None, None) if pieces is None else (pieces, group)
    call("most_probable", (logits, *columns, _ids(forbid), log_probs, ids), threads_for(logits.numel()))
    return log_probs, ids


@cache
def _ids(numbers: tuple[int, ...]) -> Int[Tensor, " n"]:
    return torch.tensor(numbers, dtype=torch.long)


def best_continuations(
    totals: Float[Tensor, " N"],
    log_probs: Float[Tensor, "N k"],
    ids: Int[Tensor, "N k"],
    group: Int[Tensor, " N"],
    groups: int,
    size: int,
    prune: float | None,
) -> tuple[Float[Tensor, "B W"], Int[Tensor, "B W"], Int[Tensor, "B W"], Float[Tensor, "B W"]]:
    """The `size` most probable paths of each group, best first: their log-probabilities, rows, tokens, and those of the tokens.

    Rows are those of a group after one another, `group` rising, each with its best tokens first. Of equals the earlier row
    wins, then the earlier token; what there is too little of is -inf, and so is what is more than `prune` below the best.
    """
    shape = groups, size
    best, best_log_probs = totals.new_empty(shape), totals.new_empty(shape)
    rows, tokens = ids.new_empty(shape), ids.new_empty(shape)
    read = tuple(map(Tensor.contiguous, (totals, log_probs, ids, group)))
    limit = number(math.inf if prune is None else prune)
    call("best_continuations", (*read, limit, best, rows, tokens, best_log_probs))
    return best, rows, tokens, best_log_probs


def settle(
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
    """Let candidates that end compete for the places of their sentence, best first; the totals of what then goes on, else -inf.

    What `nmt.decoding.search` says in PyTorch: `Pool.add`, which changes `scores` and `nodes`, and when a sentence is done.

    Args:
        totals: log-probabilities of the candidates, -inf where there is none.
        tokens: their last ones.
        scores: of what has ended before, -inf for an empty place.
        nodes: the numbers of these candidates; the first one of this step is number `first`.
        max_lengths: the length of each sentence at which all candidates end.
        penalties: what a log-probability of each length is divided by.
        length: that of the candidates.
        horizon: within how many tokens what goes on must be able to win a place; None is as many as there can be.
        eos: the token that ends a candidate.
    """
    going = torch.empty_like(totals)
    read = tuple(map(Tensor.contiguous, (totals, tokens, max_lengths.long(), penalties)))
    within = penalties.shape[0] if horizon is None else horizon
    call("settle", (*read, scores, nodes, going), first, length, within, eos)
    return going


def round_rows(values: Float[Tensor, "N D"], most: int) -> tuple[UInt8[Tensor, "N D"], Float[Tensor, " N"]]:
    """x' = x / s + most + 1, rounded, and s = max |x| / most of each row, 1 if all are 0; s is nan where x has no finite size."""
    rounded, steps = torch.empty(values.shape, dtype=torch.uint8), values.new_empty(values.shape[0])
    call("round_rows", (values, rounded, steps), threads_for(values.numel()), most)
    return rounded, steps


@dataclass(frozen=True)
class Panels:
    """A matrix A'_g of integers, the steps s_g of its rows and b_g, as `int8_product` reads them: 64 outputs side by side.

    What the last panel has too much is 0. Values are shifted by 128, hence the products by 128 sum A'_g.
    """

    rounded: Int8[Tensor, "P Q 64 4"]
    shifts: Int32[Tensor, "P 64"]
    steps: Float[Tensor, "P 64"]
    bias: Float[Tensor, "P 64"]
    outputs: int


def multiplies_int8() -> bool:
    """Whether there is a kernel for products in int8: it needs AVX-512 VNNI."""
    kernels = library()
    return kernels is not None and bool(call("multiplies_bytes", ()))


def panels_of(
    rounded: Int8[Tensor, "G D"],
    sums: Int32[Tensor, " G"],
    steps: Float[Tensor, " G"],
    bias: Float[Tensor, " G"] | None,
    parts: int = 1,
) -> Panels:
    """Lay a matrix, of which these are the sums of the rows, out for `int8_product`.

    With several parts, of equal height, each has panels of its own: those of a GRU's gates for `int8_gru_step`.
    """
    rows = torch.arange(len(rounded)).view(parts, -1)
    filled = pad(rows, (0, -rows.shape[1] % _PANEL), value=-1).view(-1, _PANEL)
    return replace(_laid_out(rounded, sums, steps, bias, filled), outputs=len(rounded))


def _laid_out(
    rounded: Int8[Tensor, "G D"],
    sums: Int32[Tensor, " G"],
    steps: Float[Tensor, " G"],
    bias: Float[Tensor, " G"] | None,
    rows: Int[Tensor, "P 64"],
    absent: float = 0.0,
) -> Panels:
    """Some rows of a matrix as outputs of panels; where their number is -1 there is nothing, and the bias is `absent`."""
    inputs = rounded.shape[1]
    panels = torch.empty(len(rows), -(-inputs // 4), _PANEL, 4, dtype=torch.int8)
    call("lay_panels", (rounded.contiguous(), rows, panels), threads_for(panels.numel()))
    read, nothing = rows.clamp(min=0), rows < 0
    shifts, read_steps = (part[read].masked_fill_(nothing, 0) for part in (sums * 128, steps))
    read_bias = steps.new_zeros(rows.shape) if bias is None else bias[read]
    return Panels(panels, shifts, read_steps, read_bias.masked_fill_(nothing, absent), rows.numel())


@dataclass(frozen=True)
class GroupPanels:
    """Such matrices of several groups, each with panels of its own, one after the other; what a group has too little of is -inf."""

    panels: Panels
    first: Int[Tensor, " G"]
    """The first panel of each group."""
    count: Int[Tensor, " G"]
    """How many panels each group has."""

    @property
    def outputs(self) -> int:
        """Those of the group with the most."""
        return self.panels.outputs

    def select(self, groups: Int[Tensor, " M"]) -> GroupPanels:
        """Those of the given groups, in their order."""
        return replace(self, first=self.first[groups], count=self.count[groups])


def panels_of_groups(
    rounded: Int8[Tensor, "V D"],
    sums: Int32[Tensor, " V"],
    steps: Float[Tensor, " V"],
    bias: Float[Tensor, " V"] | None,
    rows: Int[Tensor, " M"],
    groups: Segments,
) -> GroupPanels:
    """Lay the matrices that are some rows of one, for each group those that are told, out for `int8_products_of_groups`."""
    count = -(-groups.lengths // _PANEL)
    first = count.cumsum(0) - count
    places = rows.new_full((max(int(count.sum()), 1) * _PANEL,), -1)
    places[first[groups.segment_ids] * _PANEL + groups.positions] = rows
    panels = _laid_out(rounded, sums, steps, bias, places.view(-1, _PANEL), absent=-math.inf)
    return GroupPanels(replace(panels, outputs=groups.width), first, count)


def int8_products_of_groups(
    matrices: GroupPanels,
    values: Float[Tensor, "N D"],
    group: Int[Tensor, " N"],
    into: Float[Tensor, "N W"] | None = None,
) -> Float[Tensor, "N W"]:
    """The products of `int8_product` of each row with the matrix of its group; `group` rises. -inf beyond a group's outputs."""
    panels = matrices.panels
    factors = _factors(panels, values)
    product = values.new_empty(values.shape[0], panels.outputs) if into is None else into
    tensors = *factors, group, matrices.first, matrices.count, product
    call("int8_products_of_groups", tensors, _threads_for(panels, values))
    return product


def int8_product(
    panels: Panels,
    values: Float[Tensor, "N D"],
    into: Float[Tensor, "N G"] | None = None,
) -> Float[Tensor, "N G"]:
    """y_ig = s_i s_g (x'_i - 128) . A'_g + b_g, where x'_i and s_i are those of `round_rows`.

    Written to `into`, columns of a matrix, if it is given.
    """
    factors = _factors(panels, values)
    product = values.new_empty(values.shape[0], panels.outputs) if into is None else into
    call("int8_product", (*factors, product), _threads_for(panels, values))
    return product


def int8_gru_step(
    words: Float[Tensor, "V G"] | None,
    ids: Int[Tensor, " N"] | None,
    other: tuple[Panels, Float[Tensor, "N D"]] | None,
    recurrent: Panels,
    hidden: Float[Tensor, "N H"],
) -> Float[Tensor, "N H"]:
    """The GRU step of the sum W x of what there is, and of U s, in one pass: neither is ever laid down in memory.

    Args:
        words: W E y of each row, or with `ids` of every word.
        ids: the word of each row.
        other: a matrix and what it is multiplied with, as `int8_product` does.
        recurrent: U and b.
        hidden: s.
    """
    following = hidden.new_empty(hidden.shape)
    of_words = (words, None, None) if ids is None else (None, words, ids)
    of_other: tuple[Tensor | None, ...] = _NOTHING if other is None else _factors(*other)
    tensors = *of_words, *of_other, *_factors(recurrent, hidden), following
    call("int8_gru_step", tensors, _threads_for(recurrent, hidden))
    return following


_Factors = tuple[
    Float[Tensor, "N D"], Int8[Tensor, "P Q 64 4"], Int32[Tensor, "P 64"], Float[Tensor, "P 64"], Float[Tensor, "P 64"],
    UInt8[Tensor, "N Q 4"], Float[Tensor, " N"],
]  # fmt: skip
_NOTHING = (None,) * 7


def _factors(panels: Panels, values: Float[Tensor, "N D"]) -> _Factors:
    """A matrix and the values that it is multiplied with, as all products in int8 read them; places for the values' bytes and steps."""
    values = values if values.stride(1) == 1 else values.contiguous()
    rows, quads = values.shape[0], panels.rounded.shape[1]
    bytes_ = torch.empty(rows, quads, 4, dtype=torch.uint8)
    return values, panels.rounded, panels.shifts, panels.steps, panels.bias, bytes_, values.new_empty(rows)


def _threads_for(panels: Panels, values: Float[Tensor, "N D"]) -> int:
    return threads_for(values.numel() * panels.outputs // _AT_ONCE)
