"""Greedy search, beam search and sampling over a step function and an opaque state; no model is known here.

All three are the same walk, which differs only in how a step picks the candidates it keeps. A step works on whole
tensors: the N hypotheses that are alive, of B sentences. Ended ones move to a pool, sentences that can
find nothing better leave the batch, and what was found is read back from the trace at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.decoding.hypothesis import IMPOSSIBLE, Hypothesis, Limits, Penalties, Picked, Pool, Trace
from nmt.segments import Segments

__all__ = ["Hypothesis", "StepFunction", "StepResult", "beam_search", "greedy", "sample"]

COMPACT_AT = 0.25
"""Share of hypotheses of greedy search that must be done before the rest is moved together, which is a copy."""
_ROWS_AT_ONCE = 512
"""Hypotheses whose log-probabilities are held at a time."""

SelfT = TypeVar("SelfT")


@runtime_checkable
class Selectable(Protocol):
    """A state, with one row per hypothesis, or a memory, with one row per sentence."""

    def select(self: SelfT, rows: Int[Tensor, " N"]) -> SelfT:  # noqa: PYI019 -- the tests' checker refuses Self
        """The one whose row i is this one's row `rows[i]`."""
        ...


@runtime_checkable
class IndexedLogProbs(Protocol):
    """log p(y_t | y_<t, x) [N V]: a tensor, or what computes the rows that it is indexed with. -inf is allowed."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice) -> Float[Tensor, "n V"]: ...


@runtime_checkable
class RankedLogProbs(IndexedLogProbs, Protocol):
    """Log-probabilities that may know a faster way to the best continuations than to compute all of them."""

    def best_continuations(
        self,
        totals: Float[Tensor, " N"],
        sentences: Segments,
        size: int,
        forbid: tuple[int, ...],
        prune: float | None,
    ) -> tuple[Float[Tensor, "B W"], Int[Tensor, "B W"], Int[Tensor, "B W"], Float[Tensor, "B W"]] | None:
        """As `_best_continuations`, of hypotheses with these log-probabilities and sentences; None if it knows no faster way."""
        ...


@runtime_checkable
class StepResult(Protocol):
    """The result of one decoder step for N hypotheses."""

    @property
    def log_probs(self) -> Any: ...
    @property
    def weights(self) -> Float[Tensor, "N S"]: ...
    @property
    def state(self) -> Any: ...


StepFunction = Callable[[Int[Tensor, " N"], Any, Any, Int[Tensor, " N"]], StepResult]
"""(tokens, state, memory, rows) -> result: one step for N hypotheses, of which number n reads row `rows[n]` of the memory."""
Pick = Callable[["_Front", IndexedLogProbs], Picked]
"""(front, log-probabilities of its rows) -> the candidates to keep."""


def greedy(
    step: StepFunction,
    state: Selectable,
    memory: Selectable,
    *,
    batch: int,
    max_lengths: Int[Tensor, " B"],
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    source_mask: Bool[Tensor, "B S"] | None = None,
    bos: int = 2,
    eos: int = 3,
    forbid: tuple[int, ...] = (0, 2),
    pool_type: type[Pool] = Pool,
) -> list[Hypothesis]:
    """Take the most probable token at every step; arguments as in `beam_search`. Of equals the lowest id wins."""
    penalties = _check(batch, max_lengths, length_penalty, coverage_penalty)
    pick = partial(_pick_best, size=1, forbid=forbid)
    limits = Limits(max_lengths, penalties, source_mask, n_best=1, bos=bos, eos=eos)
    return [found[0] for found in _walk(step, state, memory, pick, limits, pool_type)]


def beam_search(
    step: StepFunction,
    state: Selectable,
    memory: Selectable,
    *,
    batch: int,
    beam_size: int,
    max_lengths: Int[Tensor, " B"],
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    n_best: int = 1,
    horizon: int | None = None,
    prune: float | None = None,
    source_mask: Bool[Tensor, "B S"] | None = None,
    bos: int = 2,
    eos: int = 3,
    forbid: tuple[int, ...] = (0, 2),
    pool_type: type[Pool] = Pool,
) -> list[list[Hypothesis]]:
    """The best hypotheses that a beam comes across, by log P(y | x) / lp(y) + cp(x; y) (Wu et al. 2016, eq. 14).

    Each step keeps the `beam_size` most probable continuations; those that end leave the beam for the pool of the
    `n_best`. A sentence stops once no live hypothesis can reach the last place of its pool any more, which is certain
    because log-probabilities only fall and the length penalty is largest at the maximum length. A `horizon` looks less far:
    it is enough that none could by ending within so many tokens, even if these had probability 1.

    Args:
        step: one decoder step for N hypotheses, see `StepFunction`.
        state: the state before the first step, one row per sentence, on the device of `max_lengths`.
        memory: what the step reads of the source, one row per sentence.
        batch: sentences, B.
        beam_size: hypotheses kept alive for each, K.
        max_lengths: the most tokens of an output, end mark included. What has not ended by then is cut, and is
            returned (with finished=False) only for a sentence of which nothing has finished.
        length_penalty: alpha.
        coverage_penalty: beta.
        n_best: most hypotheses to return a sentence.
        horizon: tokens that a live hypothesis is given to end in when it is judged whether a sentence can stop; None is up to
            the maximum length. Without a length penalty it changes nothing.
        prune: a continuation whose log-probability is more than so many nats below that of the best one of its sentence and
            step is dropped (the absolute threshold of Freitag and Al-Onaizan 2017); None drops none. Fewer than
            `n_best` may then be found.
        source_mask: True at real positions, for the coverage penalty; None if all are.
        bos: the token that starts an output.
        eos: the token that ends one.
        forbid: tokens that are never produced.
        pool_type: `Pool`, or a subclass that does the same faster.

    Returns:
        For each sentence 1 to `n_best` hypotheses, best first. If every path has probability 0 that is an empty,
        unfinished one that scores -inf.

    Raises:
        ValueError: if a number is out of its range.
    """
    penalties = _check(batch, max_lengths, length_penalty, coverage_penalty)
    if beam_size < 1:
        raise ValueError(f"beam_size must be at least 1, but is {beam_size}.")
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"n_best must be between 1 and beam_size, which is {beam_size}, but is {n_best}.")
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon must be at least 1, but is {horizon}.")
    if prune is not None and not prune >= 0:
        raise ValueError(f"prune must be at least 0, but is {prune}.")
    pick = partial(_pick_best, size=beam_size, prune=prune, forbid=forbid)
    limits = Limits(max_lengths, penalties, source_mask, n_best, bos, eos, horizon)
    return _walk(step, state, memory, pick, limits, pool_type)


def sample(
    step: StepFunction,
    state: Selectable,
    memory: Selectable,
    *,
    uniform: Float[Tensor, "B n L"],
    max_lengths: Int[Tensor, " B"],
    temperature: float = 1.0,
    top_k: int | None = None,
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    source_mask: Bool[Tensor, "B S"] | None = None,
    bos: int = 2,
    eos: int = 3,
    forbid: tuple[int, ...] = (0, 2),
    pool_type: type[Pool] = Pool,
) -> list[list[Hypothesis]]:
    """Draw n outputs of each sentence, in the order of their random numbers.

    Each token is drawn from p(y)^(1 / temperature), renormalised over the `top_k` most probable ones (None: over all).
    The log-probabilities reported are the model's own, whatever the temperature. Other arguments as in `beam_search`.

    Args:
        uniform: numbers from [0, 1): `uniform[b, k, t]` decides on token t of sample k of sentence b and on nothing else.
    """
    batch, samples, length = uniform.shape
    penalties = _check(batch, max_lengths, length_penalty, coverage_penalty)
    if batch and length < int(max_lengths.max()):
        raise ValueError(f"uniform must hold a number for each of {int(max_lengths.max())} steps, but has {length}.")
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, but is {temperature}.")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, but is {top_k}.")
    pick = partial(_pick_drawn, uniform=uniform.flatten(0, 1), temperature=temperature, top_k=top_k, forbid=forbid)
    sentences = torch.arange(batch, device=max_lengths.device).repeat_interleave(samples)
    mask = None if source_mask is None else source_mask[sentences]
    limits = Limits(max_lengths[sentences], penalties, mask, n_best=1, bos=bos, eos=eos)
    hypotheses = [
        best for [best] in _walk(step, state.select(sentences), memory.select(sentences), pick, limits, pool_type)
    ]
    return [hypotheses[start : start + samples] for start in range(0, len(hypotheses), samples)]


def _check(batch: int, max_lengths: Tensor, length_penalty: float, coverage_penalty: float) -> Penalties:
    if max_lengths.shape != (batch,):
        raise ValueError(f"max_lengths must hold one number a sentence, [{batch}], but is {list(max_lengths.shape)}.")
    if batch and int(max_lengths.min()) < 1:
        raise ValueError(f"max_lengths must be at least 1 everywhere, but holds {int(max_lengths.min())}.")
    if not length_penalty >= 0:
        raise ValueError(f"length_penalty must be at least 0, but is {length_penalty}.")
    if not coverage_penalty >= 0:
        raise ValueError(f"coverage_penalty must be at least 0, but is {coverage_penalty}.")
    return Penalties(length_penalty, coverage_penalty)


# --- the walk ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Front:
    """The N live hypotheses that the next step starts from, a row each.

    Which of the B sentences each row belongs to; what is done has none. For each row the log-probability of the path so far, the
    token to feed, the node of the step before behind it, and the sum of the weights of all steps behind it, kept only if it is
    asked for. `time` counts the steps that were made.
    """

    time: int
    rows: Segments
    total: Float[Tensor, " N"]
    tokens: Int[Tensor, " N"]
    nodes: Int[Tensor, " N"]
    coverage: Float[Tensor, "N S"] | None


def _walk(
    step: StepFunction,
    state: Selectable,
    memory: Selectable,
    pick: Pick,
    limits: Limits,
    pool_type: type[Pool],
) -> list[list[Hypothesis]]:
    """Step until no sentence can find anything better, then read back the hypotheses."""
    batch = len(limits.max_lengths)
    if not batch:
        return []
    everyone = torch.arange(batch, device=limits.max_lengths.device)
    trace, pool = Trace(), pool_type(limits)
    start, tokens = torch.zeros(batch, device=everyone.device), torch.full_like(everyone, limits.bos)
    front = _Front(0, Segments(everyone, batch), start, tokens, everyone, None)
    sources = _Sources(memory, everyone, everyone, most=0)
    for time in range(int(limits.max_lengths.max())):
        result = step(front.tokens, state, sources.memory, sources.rows)
        picked = pick(front, result.log_probs)
        first = trace.add(picked, result.weights, front.nodes)
        coverage = _cover(front.coverage, result.weights, picked.rows) if limits.penalties.coverage else None
        total = pool.settle(picked, coverage, first, time)
        front = _advance(front, picked, total, coverage)
        if not len(front.nodes):
            break
        order = picked.rows.flatten()[front.nodes]
        if not _is_identity(order, len(result.weights)):
            state, sources = result.state.select(order), sources.of(front.rows.segment_ids)
        else:
            state = result.state
    return pool.hypotheses(trace, limits.eos)


@dataclass(frozen=True)
class _Sources:
    """The memory, and which of its rows each hypothesis reads."""

    memory: Selectable
    sentences: Int[Tensor, " M"]
    """The sentence that each row of the memory is of, rising."""
    rows: Int[Tensor, " N"]
    most: int
    """The most hypotheses there have been since the memory was last selected from."""

    def of(self, group: Int[Tensor, " N"]) -> _Sources:
        """For the hypotheses of the given sentences, rising. Once half of them are gone, the memory of done sentences is dropped."""
        if 2 * len(group) <= self.most:
            going, rows = torch.unique_consecutive(group, return_inverse=True)
            return _Sources(self.memory.select(torch.searchsorted(self.sentences, going)), going, rows, len(group))
        rows = torch.searchsorted(self.sentences, group)
        return replace(self, rows=rows, most=max(self.most, len(group)))


def _cover(
    coverage: Float[Tensor, "N S"] | None, weights: Float[Tensor, "N S"], rows: Int[Tensor, "B W"]
) -> Float[Tensor, "B W S"]:
    """sum_i a_ij of each candidate."""
    return (weights.float() if coverage is None else coverage + weights.float())[rows]


def _advance(
    front: _Front, picked: Picked, total: Float[Tensor, "B W"], coverage: Float[Tensor, "B W S"] | None
) -> _Front:
    """The next front, made of the candidates that live on."""
    nodes = _going_on(front.rows, total > IMPOSSIBLE)
    covered = None if coverage is None else coverage.flatten(0, 1)[nodes]
    rows = Segments(nodes.div(total.shape[1], rounding_mode="floor"), front.rows.count)
    return _Front(front.time + 1, rows, total.flatten()[nodes], picked.tokens.flatten()[nodes], nodes, covered)


def _going_on(rows: Segments, alive: Bool[Tensor, "B W"]) -> Int[Tensor, " M"]:
    """The candidates that are alive; of greedy search all that there were if most are, each in its own place."""
    nodes = alive.flatten().nonzero().squeeze(1)
    if alive.shape[1] == 1 and len(nodes) > (1 - COMPACT_AT) * len(rows.segment_ids):
        return rows.segment_ids
    return nodes


def _is_identity(order: Int[Tensor, " N"], rows: int) -> bool:
    """Whether to select these rows would change nothing."""
    return len(order) == rows and torch.equal(order, torch.arange(rows, device=order.device))


# --- how a step picks -------------------------------------------------------------------------------------------


def _pick_best(
    front: _Front, log_probs: IndexedLogProbs, *, size: int, forbid: tuple[int, ...], prune: float | None = None
) -> Picked:
    """The `size` most probable continuations of each sentence, or all if they are fewer; none that is pruned."""
    best = None
    if isinstance(log_probs, RankedLogProbs):
        best = log_probs.best_continuations(front.total, front.rows, size, forbid, prune)
    if best is None:
        best = _best_continuations(front, *top_tokens(log_probs, size, forbid), size, prune)
    total, row, tokens, of_tokens = best
    return Picked(rows=row, tokens=tokens, log_probs=of_tokens, total=total)


def _best_continuations(
    front: _Front, log_probs: Float[Tensor, "N k"], ids: Int[Tensor, "N k"], size: int, prune: float | None
) -> tuple[Float[Tensor, "B W"], Int[Tensor, "B W"], Int[Tensor, "B W"], Float[Tensor, "B W"]]:
    """The best paths of each sentence, from the best tokens of each row: of equals the earlier row, then the lower id.

    Returns:
        Their log-probabilities, the rows that they continue, their last tokens, and the log-probabilities of these.
    """
    each = ids.shape[1]
    candidates = front.rows.to_padded(front.total.unsqueeze(1) + log_probs, IMPOSSIBLE).flatten(1)
    best, choice = candidates.sort(dim=1, descending=True, stable=True)
    best, choice = best[:, :size], choice[:, :size]
    if prune is not None:
        best = best.masked_fill(best < best[:, :1] - prune, IMPOSSIBLE)
    row, token = front.rows.rows_at(choice.div(each, rounding_mode="floor")), choice % each
    return best, row, ids[row, token], log_probs[row, token]


def top_tokens(
    log_probs: IndexedLogProbs, size: int, forbid: tuple[int, ...] = ()
) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """Log-probability and id of the `size` most probable tokens of each row, or of all if they are fewer.

    Best first, of equals the lower id. Where there are fewer that are not forbidden the rest is -inf; so is what is not a number.
    """
    parts = []
    for part in _parts(log_probs):
        values, ids = part.topk(min(size + len(forbid), part.shape[1]), dim=1)
        parts.append(_allowed(values, ids, size, forbid))
    values, ids = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return values, ids


def _parts(log_probs: IndexedLogProbs) -> Iterator[Float[Tensor, "n V"]]:
    """All rows, so many at a time as may be held."""
    for start in range(0, len(log_probs), _ROWS_AT_ONCE):
        yield log_probs[start : start + _ROWS_AT_ONCE]


def _pick_drawn(
    front: _Front,
    log_probs: IndexedLogProbs,
    *,
    uniform: Float[Tensor, "B L"],
    temperature: float,
    top_k: int | None,
    forbid: tuple[int, ...],
) -> Picked:
    """One continuation of each sentence that is alive, drawn at random."""
    numbers = uniform[front.rows.segment_ids, front.time]
    log_prob, token = _draw(log_probs, numbers, temperature, top_k, forbid)
    row = torch.arange(len(token), device=token.device)
    rows, tokens, of_tokens = (front.rows.to_padded(part) for part in (row, token, log_prob))
    return Picked(rows, tokens, of_tokens, front.rows.to_padded(front.total + log_prob, IMPOSSIBLE))


def _draw(
    log_probs: IndexedLogProbs,
    uniform: Float[Tensor, " N"],
    temperature: float,
    top_k: int | None,
    forbid: tuple[int, ...],
) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
    """Log-probability and id of one token of each row."""
    if top_k is not None:
        return drawn(*by_id(*top_tokens(log_probs, top_k, forbid)), uniform, temperature, forbid)
    parts, start = [], 0
    for part in _parts(log_probs):
        ids = torch.arange(part.shape[1], device=part.device).expand_as(part)
        parts.append(drawn(part, ids, uniform[start : start + len(part)], temperature, forbid))
        start += len(part)
    values, tokens = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return values, tokens


def drawn(
    values: Float[Tensor, "N m"],
    ids: Int[Tensor, "N m"],
    uniform: Float[Tensor, " N"],
    temperature: float,
    forbid: tuple[int, ...],
) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
    """Log-probability and id of one of each row's tokens, whose ids rise.

    It is the first at which the distribution function of p(y)^(1 / temperature) exceeds the row's number from [0, 1). That is safer
    from rounding than an order by probability, in which tokens change places. Forbidden tokens and nan have probability 0.
    """
    values = _possible(values, ids, forbid)
    weights = torch.softmax((values - values.amax(dim=1, keepdim=True)) / temperature, dim=1)
    sums = weights.cumsum(dim=1)
    total = sums[:, -1:].contiguous()
    place = torch.searchsorted(sums, uniform.unsqueeze(1) * total, right=True)
    place = torch.minimum(place, torch.searchsorted(sums, total)).clamp(max=ids.shape[1] - 1)
    return values.gather(1, place).squeeze(1), ids.gather(1, place).squeeze(1)


def by_id(values: Float[Tensor, "N m"], ids: Int[Tensor, "N m"]) -> tuple[Float[Tensor, "N m"], Int[Tensor, "N m"]]:
    """The same in the order of ids."""
    ids, order = ids.sort(dim=1)
    return values.gather(1, order), ids


def _possible(values: Float[Tensor, "N m"], ids: Int[Tensor, "N m"], forbid: tuple[int, ...]) -> Float[Tensor, "N m"]:
    """Log-probabilities; -inf of what is forbidden or not a number."""
    values = values.float()
    banned = values.isnan()
    for token in forbid:
        banned |= ids == token
    return values.masked_fill(banned, IMPOSSIBLE)


def _allowed(
    values: Float[Tensor, "N m"], ids: Int[Tensor, "N m"], size: int, forbid: tuple[int, ...]
) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """The `size` most probable tokens that are allowed, of these and as many more as are forbidden."""
    values, ids = by_id(values, ids)
    values, order = _possible(values, ids, forbid).sort(dim=1, descending=True, stable=True)
    return values[:, :size], ids.gather(1, order)[:, :size]
