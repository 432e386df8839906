"""The loop of search: a step function -> hypotheses. Greedy search, beam search and sampling differ only in their candidates.

Hypotheses are rows of flat tensors [N], sorted by sentence, so that no step is spent on what has ended. On a GPU that would have the
CPU wait for every step, so it looks only every so many steps; until then what has ended stays, at log P = -inf, where it counts for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.errors import UsageError
from nmt.search.beam import Beam, Candidates, Selectable
from nmt.search.candidates import IndexedLogProbs, top_tokens
from nmt.search.finished import BackPointers, FinishedHypotheses
from nmt.search.hypothesis import NEG_INF, Hypothesis
from nmt.search.options import SearchOptions
from nmt.search.sampling import sampled_candidates


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


class Search:
    """Searches for the best hypotheses by log P(y | x) / lp(y) + cp(x; y) (Wu et al. 2016, eq. 14), or draws some.

    Each step keeps the `beam_size` most probable continuations of a sentence. Those that end leave the beam for the `n_best` finished
    hypotheses. A sentence is done when no live hypothesis can still reach the score of the last of these. This early stop loses
    nothing: log-probabilities only fall, and the length penalty is largest at the maximum length. A `horizon` stops earlier: it
    assumes that a live hypothesis ends within so many tokens.
    """

    def __init__(self, options: SearchOptions) -> None:
        self.options = options

    def run(
        self,
        step: StepFunction,
        state: Selectable,
        memory: Selectable,
        max_lengths: Int[Tensor, " B"],
        *,
        source_mask: Bool[Tensor, "B S"] | None = None,
        uniform: Float[Tensor, "B L"] | None = None,
    ) -> list[list[Hypothesis]]:
        """Extend the beam until every sentence is done, then read the hypotheses back.

        Args:
            step: one decoder step for N hypotheses, see `StepFunction`.
            state: the state before the first step, one row per sentence.
            memory: what the step reads of the source, one row per sentence.
            max_lengths: most tokens of each output, end mark included. A hypothesis that has not ended by then is cut, and
                returned (with finished=False) only if none of its sentence has finished.
            source_mask: True at real positions, for the coverage penalty; None if all are real.
            uniform: draw token t of sentence b by number `uniform[b, t]`, from [0, 1); None takes the most probable tokens.

        Returns:
            For each sentence 1 to `n_best` hypotheses, best first. If every path has probability 0, an empty, unfinished one
            that scores -inf.

        Raises:
            UsageError: a maximum length is below 1.
        """
        if not len(max_lengths):
            return []
        options, back_pointers = self.options, BackPointers()
        finished = FinishedHypotheses(options, max_lengths, source_mask)
        beam: Beam | None = Beam.start(state, memory, finished.max_lengths, bos=options.bos)
        while beam is not None and beam.time < finished.longest:
            result = step(
                beam.tokens, beam.state, beam.sources.memory, beam.sources.rows
            )  # log_probs [N V], weights [N S]
            candidates = self.candidates(beam, result.log_probs, uniform)  # [B W]
            first_node = back_pointers.add(candidates, result.weights, beam.origins)
            coverage = None  # [B W S]: sum_i a_ij
            if options.coverage_penalty:
                weights = result.weights.float()
                coverage = (weights if beam.coverage is None else beam.coverage + weights)[candidates.parents]
            log_probs = self.update_finished(
                finished, candidates, coverage, first_node, beam.time
            )  # [B W], -inf where not live
            beam = beam.next(candidates, log_probs, coverage, result.state, options.check_every)
        return finished.finalize(back_pointers)

    def sample(
        self,
        step: StepFunction,
        state: Selectable,
        memory: Selectable,
        max_lengths: Int[Tensor, " B"],
        *,
        uniform: Float[Tensor, "B n L"],
        source_mask: Bool[Tensor, "B S"] | None = None,
    ) -> list[list[Hypothesis]]:
        """Draw n outputs of each sentence, in the order of their random numbers.

        Each token is drawn from p(y)^(1 / temperature), renormalized over the `top_k` most probable ones. The log-probabilities
        reported are the model's own, whatever the temperature. Other arguments as in `run`.

        Args:
            uniform: numbers from [0, 1): `uniform[b, k, t]` decides token t of sample k of sentence b, and nothing else.
        """
        batch, samples, length = uniform.shape
        if batch and length < int(max_lengths.max()):
            raise UsageError(
                f"uniform must hold a number for each of {int(max_lengths.max())} steps, but has {length}."
            )
        # Each sample is a sentence of its own.
        sentences = torch.arange(batch, device=uniform.device).repeat_interleave(samples)
        hypotheses = self.run(
            step,
            state.select(sentences),
            memory.select(sentences),
            max_lengths.repeat_interleave(samples),
            source_mask=None if source_mask is None else source_mask[sentences],
            uniform=uniform.flatten(0, 1),
        )
        drawn = [hypothesis for [hypothesis] in hypotheses]
        return [drawn[start : start + samples] for start in range(0, len(drawn), samples)]

    def candidates(self, beam: Beam, log_probs: IndexedLogProbs, uniform: Float[Tensor, "B L"] | None) -> Candidates:
        """The continuations of each sentence that a step keeps: a random one, or the `beam_size` most probable ones.

        These are among the best tokens of each hypothesis. Those that are pruned are left out. Ties go to the earlier hypothesis,
        then to the lower id.
        """
        if uniform is not None:
            return sampled_candidates(beam, log_probs, self.options, uniform)
        options, sentences = self.options, beam.sentences
        token_log_probs, ids = top_tokens(
            log_probs, options.beam_size, options.forbid, breaks_ties=options.check_every == 1
        )  # [N k]
        totals = sentences.to_padded(beam.log_probs.unsqueeze(1) + token_log_probs, NEG_INF).flatten(1)  # [B K*k]
        totals, order = totals.sort(dim=1, descending=True, stable=True)
        totals, order = totals[:, : options.beam_size], order[:, : options.beam_size]
        if options.prune is not None:
            totals = totals.masked_fill(totals < totals[:, :1] - options.prune, NEG_INF)
        rows = sentences.to_padded(torch.arange(len(ids), device=ids.device))  # [B K]: the hypotheses of each sentence
        parents, ranks = rows.gather(1, order.div(ids.shape[1], rounding_mode="floor")), order % ids.shape[1]
        return Candidates(parents, ids[parents, ranks], token_log_probs[parents, ranks], totals)

    def update_finished(
        self,
        finished: FinishedHypotheses,
        candidates: Candidates,
        coverage: Float[Tensor, "B W S"] | None,
        first_node: int,
        time: int,
    ) -> Float[Tensor, "B W"]:
        """Collect the candidates that end; return the log-probabilities of those that stay live, -inf for all others.

        None stays live in a sentence that is done: whose live candidates can no longer replace a finished hypothesis.

        Args:
            finished: what has ended before; it is changed.
            candidates: the candidates of a step.
            coverage: the summed attention weights of each, for a coverage penalty.
            first_node: the node of the step's first candidate.
            time: the number of the step, from 0.
        """
        options, penalties, log_probs = self.options, finished.penalties, candidates.log_probs
        ended = (candidates.tokens == options.eos) & (log_probs > NEG_INF)
        # On a CPU a look at the values is quick, and in most steps none ends.
        if options.check_every > 1 or time + 1 >= finished.shortest or bool(ended.any()):
            is_last_step = finished.max_lengths <= time + 1
            mask = None if finished.source_mask is None else finished.source_mask[:, None, :]
            scores = penalties.score(log_probs, time + 1, coverage, mask)
            finished.insert(scores, first_node=first_node, ended=ended, is_last_step=is_last_step)
            log_probs = log_probs.masked_fill(ended | is_last_step[:, None], NEG_INF)
        last_lengths: Tensor | int = finished.max_lengths  # by which a live hypothesis is assumed to end
        if options.horizon is not None:
            length = time + 1 + options.horizon
            last_lengths = length if length <= finished.shortest else finished.max_lengths.clamp(max=length)
        # The best score that a live hypothesis can reach: log P can only fall, lp(y) grows with the length, and cp(x; y) <= 0.
        bound = log_probs.amax(dim=1) / penalties.length_penalty(last_lengths)
        is_done = bound <= finished.scores[:, -1]  # also if none is live
        return log_probs.masked_fill(is_done[:, None], NEG_INF)
