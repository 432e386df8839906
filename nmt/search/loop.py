"""Greedy search, beam search and sampling over a step function. Search knows no model.

All three are one loop, and differ only in how they select candidates:

    result = step(tokens, state, memory, rows)          N hypotheses of B sentences
    candidates = select(beam, result.log_probs)         the W continuations to keep, per sentence
    finished.update(candidates)                         those that end leave the beam
    beam = the candidates that stay live                a sentence that cannot improve has none

Hypotheses are rows of flat tensors [N], sorted by sentence, so that no step is spent on what has ended. On a GPU that would have the
CPU wait for every step, so it looks only every so many steps; until then what has ended stays, at log P = -inf, where it counts for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.search.candidates import Beam, Candidates, IndexedLogProbs, top_candidates
from nmt.search.finished import BackPointers, FinishedHypotheses, SearchSettings
from nmt.search.hypothesis import NEG_INF, Hypothesis, Penalties
from nmt.search.sampling import sampled_candidates
from nmt.search.segments import Segments

__all__ = ["Hypothesis", "StepFunction", "StepResult", "beam_search", "greedy", "sample"]

_COMPACT_AT = 0.25
"""Share of finished hypotheses at which greedy search removes them from the batch. Removing copies the state."""

SelfT = TypeVar("SelfT")


@runtime_checkable
class Selectable(Protocol):
    """A state, with one row per hypothesis, or a memory, with one row per sentence."""

    def select(self: SelfT, rows: Int[Tensor, " N"]) -> SelfT:  # noqa: PYI019 -- the tests' checker refuses Self
        """The given rows, in their order."""
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
"""(tokens, state, memory, rows) -> result: one step for N hypotheses; hypothesis n reads row `rows[n]` of the memory."""
SelectCandidates = Callable[[Beam, IndexedLogProbs], Candidates]
"""(beam, log-probabilities of its next tokens) -> the candidates for the next beam."""


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
    device: torch.device | None = None,
    check_every: int = 1,
    finished_type: type[FinishedHypotheses] = FinishedHypotheses,
) -> list[Hypothesis]:
    """Take the most probable token at every step; ties go to the lowest id. Arguments as in `beam_search`."""
    penalties = _checked_penalties(batch, max_lengths, length_penalty, coverage_penalty)
    select = partial(top_candidates, size=1, forbid=forbid)
    settings = SearchSettings(
        max_lengths, penalties, source_mask, n_best=1, bos=bos, eos=eos, device=device, check_every=check_every
    )
    return [best for [best] in _search(step, state, memory, select, settings, finished_type)]


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
    device: torch.device | None = None,
    check_every: int = 1,
    finished_type: type[FinishedHypotheses] = FinishedHypotheses,
) -> list[list[Hypothesis]]:
    """Search for the best hypotheses by log P(y | x) / lp(y) + cp(x; y) (Wu et al. 2016, eq. 14).

    Each step keeps the `beam_size` most probable continuations of a sentence. Those that end leave the beam for the
    `n_best` finished hypotheses. A sentence is done when no live hypothesis can still reach the score of the last of these.
    This early stop loses nothing: log-probabilities only fall, and the length penalty is largest at the maximum length. A
    `horizon` stops earlier: it assumes that a live hypothesis ends within so many tokens.

    Args:
        step: one decoder step for N hypotheses, see `StepFunction`.
        state: the state before the first step, one row per sentence.
        memory: what the step reads of the source, one row per sentence.
        batch: number of sentences, B.
        beam_size: most live hypotheses per sentence, K.
        max_lengths: most tokens of each output, end mark included. A hypothesis that has not ended by then is cut, and
            returned (with finished=False) only if none of its sentence has finished.
        length_penalty: alpha.
        coverage_penalty: beta.
        n_best: most hypotheses to return per sentence.
        horizon: tokens within which a live hypothesis is assumed to end when an early stop is considered; None allows
            all up to the maximum length. It has no effect without a length penalty.
        prune: drop a continuation whose log-probability is more than this below that of the best one of its sentence and
            step, in nats (the absolute threshold of Freitag and Al-Onaizan 2017); None drops none. There may then be
            fewer than `n_best` hypotheses.
        source_mask: True at real positions, for the coverage penalty; None if all are real.
        bos: the start mark, the first token that is fed.
        eos: the end mark.
        forbid: tokens that are never produced.
        device: where the search runs; None stands for the device of `max_lengths`, which may be on the CPU.
        check_every: steps between looks at which hypotheses have ended; results are the same. A GPU works on without waiting for
            the CPU in between, on a few more hypotheses.
        finished_type: `FinishedHypotheses` or a faster subclass.

    Returns:
        For each sentence 1 to `n_best` hypotheses, best first. If every path has probability 0, an empty, unfinished one
        that scores -inf.

    Raises:
        ValueError: a number is out of range.
    """
    penalties = _checked_penalties(batch, max_lengths, length_penalty, coverage_penalty)
    if beam_size < 1:
        raise ValueError(f"beam_size must be at least 1, but is {beam_size}.")
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"n_best must be between 1 and beam_size, which is {beam_size}, but is {n_best}.")
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon must be at least 1, but is {horizon}.")
    if prune is not None and not prune >= 0:
        raise ValueError(f"prune must be at least 0, but is {prune}.")
    select = partial(top_candidates, size=beam_size, prune=prune, forbid=forbid)
    settings = SearchSettings(
        max_lengths, penalties, source_mask, n_best, bos, eos, horizon, device=device, check_every=check_every
    )
    return _search(step, state, memory, select, settings, finished_type)


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
    device: torch.device | None = None,
    check_every: int = 1,
    finished_type: type[FinishedHypotheses] = FinishedHypotheses,
) -> list[list[Hypothesis]]:
    """Draw n outputs of each sentence, in the order of their random numbers.

    Each token is drawn from p(y)^(1 / temperature), renormalised over the `top_k` most probable ones (None: over all).
    The log-probabilities reported are the model's own, whatever the temperature. Other arguments as in `beam_search`.

    Args:
        uniform: numbers from [0, 1): `uniform[b, k, t]` decides token t of sample k of sentence b, and nothing else.
    """
    batch, samples, length = uniform.shape
    penalties = _checked_penalties(batch, max_lengths, length_penalty, coverage_penalty)
    if batch and length < int(max_lengths.max()):
        raise ValueError(f"uniform must hold a number for each of {int(max_lengths.max())} steps, but has {length}.")
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, but is {temperature}.")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, but is {top_k}.")
    select = partial(
        sampled_candidates, uniform=uniform.flatten(0, 1), temperature=temperature, top_k=top_k, forbid=forbid
    )
    # Each sample is a sentence of its own.
    sentences = torch.arange(batch, device=device or max_lengths.device).repeat_interleave(samples)
    mask = None if source_mask is None else source_mask[sentences]
    limits = max_lengths.repeat_interleave(samples)
    settings = SearchSettings(
        limits, penalties, mask, n_best=1, bos=bos, eos=eos, device=device, check_every=check_every
    )
    state, memory = state.select(sentences), memory.select(sentences)
    hypotheses = [best for [best] in _search(step, state, memory, select, settings, finished_type)]
    return [hypotheses[start : start + samples] for start in range(0, len(hypotheses), samples)]


def _checked_penalties(batch: int, max_lengths: Tensor, length_penalty: float, coverage_penalty: float) -> Penalties:
    if max_lengths.shape != (batch,):
        raise ValueError(f"max_lengths must hold one number per sentence, [{batch}], but is {list(max_lengths.shape)}.")
    if batch and int(max_lengths.min()) < 1:
        raise ValueError(f"max_lengths must be at least 1 everywhere, but holds {int(max_lengths.min())}.")
    if not length_penalty >= 0:
        raise ValueError(f"length_penalty must be at least 0, but is {length_penalty}.")
    if not coverage_penalty >= 0:
        raise ValueError(f"coverage_penalty must be at least 0, but is {coverage_penalty}.")
    return Penalties(length_penalty, coverage_penalty)


# --- the loop -------------------------------------------------------------------------------------------------------


def _search(
    step: StepFunction,
    state: Selectable,
    memory: Selectable,
    select: SelectCandidates,
    settings: SearchSettings,
    finished_type: type[FinishedHypotheses],
) -> list[list[Hypothesis]]:
    """Extend the beam until every sentence is done, then read the hypotheses back."""
    if not len(settings.max_lengths):
        return []
    back_pointers, finished = BackPointers(), finished_type(settings)
    _extend(step, state, memory, select, settings, back_pointers, finished)
    return finished.finalize(back_pointers)


def _extend(
    step: StepFunction,
    state: Selectable,
    memory: Selectable,
    select: SelectCandidates,
    settings: SearchSettings,
    back_pointers: BackPointers,
    finished: FinishedHypotheses,
) -> None:
    """Extend the beam until every sentence is done."""
    batch = len(settings.limits)
    sentences = torch.arange(batch, device=settings.limits.device)
    log_probs, tokens = torch.zeros(batch, device=sentences.device), torch.full_like(sentences, settings.bos)
    beam = Beam(0, Segments(sentences, batch, rows_each=1), log_probs, tokens, origins=sentences, coverage=None)
    sources = _Sources(memory, sentences, sentences, most_hypotheses=0)
    for time in range(settings.longest):
        result = step(beam.tokens, state, sources.memory, sources.rows)  # log_probs [N V], weights [N S]
        candidates = select(beam, result.log_probs)  # [B W]
        first_node = back_pointers.add(candidates, result.weights, beam.origins)
        coverage = _coverage(beam, result.weights, candidates) if settings.penalties.coverage else None
        log_probs = finished.update(candidates, coverage, first_node, time)  # [B W], -inf where not live
        beam = _next_beam(beam, candidates, log_probs, coverage, settings.check_every)
        if not len(beam.tokens):
            break
        parents = candidates.parents.flatten()[beam.origins]
        if settings.check_every == 1 and _is_identity(parents, len(result.weights)):
            state = result.state  # selecting would only copy it
        else:
            state, sources = result.state.select(parents), sources.for_beam(beam.sentences)


def _coverage(beam: Beam, weights: Float[Tensor, "N S"], candidates: Candidates) -> Float[Tensor, "B W S"]:
    """sum_i a_ij of each candidate."""
    coverage = weights.float() if beam.coverage is None else beam.coverage + weights.float()
    return coverage[candidates.parents]


def _next_beam(
    beam: Beam,
    candidates: Candidates,
    log_probs: Float[Tensor, "B W"],
    coverage: Float[Tensor, "B W S"] | None,
    check_every: int,
) -> Beam:
    """The candidates that stay live, which are those with `log_probs` above -inf; with `check_every`, others may stay too."""
    width = log_probs.shape[1]
    if check_every == 1:
        origins, rows_each = _live_candidates(beam, log_probs), None
    else:
        is_due = (beam.time + 1) % check_every == 0
        remaining = (log_probs > NEG_INF).any(1).nonzero().squeeze(1) if is_due else beam.sentences.present
        origins = (remaining.unsqueeze(1) * width + torch.arange(width, device=remaining.device)).flatten()
        rows_each = width
    return Beam(
        time=beam.time + 1,
        sentences=Segments(origins.div(width, rounding_mode="floor"), beam.sentences.count, rows_each),
        log_probs=log_probs.flatten()[origins],
        tokens=candidates.tokens.flatten()[origins],
        origins=origins,
        coverage=None if coverage is None else coverage.flatten(0, 1)[origins],
    )


def _live_candidates(beam: Beam, log_probs: Float[Tensor, "B W"]) -> Int[Tensor, " M"]:
    """The indices of the live candidates; in greedy search those of the whole beam until `_COMPACT_AT` of it has ended.

    An ended hypothesis that stays has log-probability -inf, so nothing that continues it counts.
    """
    live = (log_probs > NEG_INF).flatten().nonzero().squeeze(1)
    if log_probs.shape[1] == 1 and len(live) > (1 - _COMPACT_AT) * len(beam.tokens):
        return beam.sentences.segment_ids
    return live


def _is_identity(order: Int[Tensor, " N"], rows: int) -> bool:
    """Whether selecting these rows would change nothing."""
    return len(order) == rows and torch.equal(order, torch.arange(rows, device=order.device))


@dataclass(frozen=True)
class _Sources:
    """The memory of the sentences that are not done, and the row of it that each hypothesis reads."""

    memory: Selectable
    sentences: Int[Tensor, " M"]
    """The sentence of each row of the memory, in rising order."""
    rows: Int[Tensor, " N"]
    """The row of the memory that each hypothesis reads."""
    most_hypotheses: int
    """The largest N since rows of the memory were last dropped."""

    def for_beam(self, beam: Segments) -> _Sources:
        """The sources of the hypotheses of a beam; it holds the sentence of each.

        Rows of sentences that are done are dropped only once N has halved: dropping copies the memory.
        """
        count = len(beam.segment_ids)
        if 2 * count <= self.most_hypotheses:
            remaining = beam.present
            memory = self.memory.select(torch.searchsorted(self.sentences, remaining))
            return _Sources(memory, remaining, torch.searchsorted(remaining, beam.segment_ids), count)
        rows = torch.searchsorted(self.sentences, beam.segment_ids)
        return replace(self, rows=rows, most_hypotheses=max(self.most_hypotheses, count))
