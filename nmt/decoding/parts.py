"""Combine the n-best lists of the parts of a long line."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from nmt.decoding.hypothesis import IMPOSSIBLE, Penalties, joint_length
from nmt.decoding.translation import TranslationHypothesis, join


def join_ranked(
    parts: Sequence[Sequence[TranslationHypothesis]], penalties: Penalties, count: int
) -> tuple[TranslationHypothesis, ...]:
    """Join hypotheses of the parts of a line; up to `count`, by the score of the whole, best first.

    There are too many combinations to score them all, so only those with the largest sums of `_value` are joined.
    """
    if len(parts) == 1:
        return tuple(parts[0])
    best = [ranked[0] for ranked in parts]
    if any(part.score == IMPOSSIBLE for part in best):
        return (join(best, penalties),)
    value = _value(best, penalties)
    ordered = [sorted(ranked, key=value, reverse=True) for ranked in parts]
    choices = islice(largest_sums([list(map(value, ranked)) for ranked in ordered]), count)
    joined = [
        join([ranked[index] for ranked, index in zip(ordered, indices, strict=True)], penalties) for indices in choices
    ]
    return tuple(sorted(joined, key=lambda hypothesis: hypothesis.score, reverse=True))


def _value(best: Sequence[TranslationHypothesis], penalties: Penalties) -> Callable[[TranslationHypothesis], float]:
    """The value of a hypothesis of one part, such that large sums of values mean large scores of the whole.

    Log-probabilities add up, but the length penalty applies to the whole y, so by log-probability alone short hypotheses
    would win. Each token therefore gets a reward r, taken from the score of y', the best hypotheses of all parts joined:

        s(y) > s(y')  <=>  log P(y | x) + r |y| > log P(y' | x) + r |y'|,    r = alpha |log P(y' | x)| / (5 + |y'|)

    for alpha = 1 (and 0, where r = 0), and to first order for any other. Coverage penalties are added on the same scale.
    """
    total, length = sum(part.log_probability for part in best), joint_length(best)
    reward, scale = penalties.reward(total, length), penalties.of_length(length)
    return lambda item: item.log_probability + reward * len(item.ids) + scale * penalties.coverage_of(item)


def largest_sums(rows: Sequence[Sequence[float]]) -> Iterator[tuple[int, ...]]:
    """Choose one index per row, in descending order of the sums of the values there; computed lazily.

    Args:
        rows: values in descending order.
    """
    heap = [(-sum(row[0] for row in rows), (0,) * len(rows))]
    while heap:
        _, indices = heapq.heappop(heap)
        yield indices
        for following in _following(indices, rows):
            heapq.heappush(heap, (-sum(row[index] for row, index in zip(rows, following, strict=True)), following))


def _following(indices: tuple[int, ...], rows: Sequence[Sequence[float]]) -> Iterator[tuple[int, ...]]:
    """Increase one index, in the last row that was changed or a later one, so that each choice is reached once."""
    last = max((number for number, index in enumerate(indices) if index), default=0)
    for number in range(last, len(rows)):
        if indices[number] + 1 < len(rows[number]):
            yield (*indices[:number], indices[number] + 1, *indices[number + 1 :])
