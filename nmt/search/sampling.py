"""Ancestral sampling: draw each token from the model's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt.errors import UsageError
from nmt.search.beam import Beam, Candidates
from nmt.search.candidates import IndexedLogProbs, row_chunks, top_tokens, without_forbidden
from nmt.search.hypothesis import NEG_INF
from nmt.search.options import SearchOptions


@dataclass(frozen=True)
class Sampling:
    """Draw translations, y_t ~ p(y_t | y_<t, x)^(1 / temperature), instead of searching for the best.

    The random numbers depend only on the seed, the line number and the number of the sample. A line therefore gets the same
    samples whatever lines are decoded with it, and the first of five samples equals a single sample.

    Raises:
        UsageError: a number is out of range.
    """

    temperature: float = 1.0
    """Below 1 probable tokens become more probable, above 1 less."""
    top_k: int | None = None
    """Draw only from the k most probable tokens; None draws from all."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0.001 <= self.temperature <= 1000:
            raise UsageError(f"temperature must be between 0.001 and 1000, but is {self.temperature}.")
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top_k must be at least 1, but is {self.top_k}.")
        if self.seed < 0:
            raise UsageError(f"seed must be at least 0, but is {self.seed}.")

    def uniform(self, places: Sequence[tuple[int, int]], samples: int, length: int) -> Float[Tensor, "B n L"]:
        """Random numbers in [0, 1) for each text, sample and step.

        Args:
            places: line number, and number of the part of the line, of each text.
            samples: n, samples per text.
            length: L, steps per sample.
        """
        rows = [
            [np.random.default_rng([self.seed, *place, number]).random(length, np.float32) for number in range(samples)]
            for place in places
        ]
        return torch.from_numpy(np.array(rows, dtype=np.float32).reshape(len(places), samples, length))


def sampled_candidates(
    beam: Beam, log_probs: IndexedLogProbs, options: SearchOptions, uniform: Float[Tensor, "B L"]
) -> Candidates:
    """One random continuation of each sentence, which has at most one hypothesis."""
    numbers = uniform[beam.sentences.segment_ids, beam.time]
    token_log_probs, tokens = _sample_tokens(log_probs, numbers, options)
    rows = torch.arange(len(tokens), device=tokens.device)
    return Candidates(
        parents=beam.sentences.to_padded(rows),
        tokens=beam.sentences.to_padded(tokens),
        token_log_probs=beam.sentences.to_padded(token_log_probs),
        log_probs=beam.sentences.to_padded(beam.log_probs + token_log_probs, NEG_INF),
    )


def _sample_tokens(
    log_probs: IndexedLogProbs, uniform: Float[Tensor, " N"], options: SearchOptions
) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
    """Log-probability and id of one random token per row."""
    if options.top_k is not None:
        values, ids = top_tokens(log_probs, options.top_k, options.forbid, breaks_ties=options.check_every == 1)
        ids, order = ids.sort(dim=1)
        return _inverse_transform(values.gather(1, order), ids, uniform, options.temperature, options.forbid)
    samples, start = [], 0
    for chunk in row_chunks(log_probs):
        ids = torch.arange(chunk.shape[1], device=chunk.device).expand_as(chunk)
        numbers = uniform[start : start + len(chunk)]
        samples.append(_inverse_transform(chunk, ids, numbers, options.temperature, options.forbid))
        start += len(chunk)
    values, tokens = (torch.cat(columns) for columns in zip(*samples, strict=True))
    return values, tokens


def _inverse_transform(
    log_probs: Float[Tensor, "N m"],
    ids: Int[Tensor, "N m"],
    uniform: Float[Tensor, " N"],
    temperature: float,
    forbid: tuple[int, ...],
) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
    """Log-probability and id of one token per row, by inverse transform sampling.

    It is the first token at which the distribution function of p(y)^(1 / temperature) exceeds the row's number. The function
    runs over rising `ids`: in order of probability, rounding could swap two tokens and so change the sample. Forbidden
    tokens and nan have probability 0.
    """
    log_probs = without_forbidden(log_probs, ids, forbid)
    weights = torch.softmax((log_probs - log_probs.amax(dim=1, keepdim=True)) / temperature, dim=1)
    sums = weights.cumsum(dim=1)
    total = sums[:, -1:].contiguous()
    place = torch.searchsorted(sums, uniform.unsqueeze(1) * total, right=True)
    # Rounding may lead beyond the last token with a probability above 0, which is where the sum reaches its total.
    place = torch.minimum(place, torch.searchsorted(sums, total)).clamp(max=ids.shape[1] - 1)
    return log_probs.gather(1, place).squeeze(1), ids.gather(1, place).squeeze(1)
