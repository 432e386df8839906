"""The n-best list of a line that was translated in parts, from those of its parts."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from nmt.decoding.hypothesis import IMPOSSIBLE, Penalties, joint_length
from nmt.decoding.translation import TranslationHypothesis, join


def join_ranked(
    parts: Sequence[Sequence[TranslationHypothesis]], penalties: Penalties, count: int
) -> tuple[TranslationHypothesis, ...]:
    """Up to `count` joined hypotheses of a line, by the score of the whole, best first.

    The combinations are too many to score them all: those with the largest sums (see `_value`) are joined.
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
        join([ranked[place] for ranked, place in zip(ordered, places, strict=True)], penalties) for places in choices
    ]
    return tuple(sorted(joined, key=lambda hypothesis: hypothesis.score, reverse=True))


def _value(best: Sequence[TranslationHypothesis], penalties: Penalties) -> Callable[[TranslationHypothesis], float]:
    """What a hypothesis of one part adds to the sum that is to be large.

    Log-probabilities add up, but the length penalty is that of the whole y; by log-probability alone short ones would win. So a
    token is worth what makes up for it in the score of y', the best of each part joined:

        s(y) > s(y')  <=>  log P(y | x) + r |y| > log P(y' | x) + r |y'|,    r = alpha |log P(y' | x)| / (5 + |y'|)

    for alpha = 1 (and 0, where r = 0), and to first order for any other. Coverage penalties are added on the same scale.
    """
    total, length = sum(part.log_probability for part in best), joint_length(best)
    reward, scale = penalties.reward(total, length), penalties.of_length(length)
    return lambda item: item.log_probability + reward * len(item.ids) + scale * penalties.coverage_of(item)


def largest_sums(rows: Sequence[Sequence[float]]) -> Iterator[tuple[int, ...]]:
    """Places of one value per row, in falling order of their sums; the next is sought when it is asked for.

    Args:
        rows: values in falling order.
    """
    heap = [(-sum(row[0] for row in rows), (0,) * len(rows))]
    while heap:
        _, places = heapq.heappop(heap)
        yield places
        for following in _following(places, rows):
            heapq.heappush(heap, (-sum(row[place] for row, place in zip(rows, following, strict=True)), following))


def _following(places: tuple[int, ...], rows: Sequence[Sequence[float]]) -> Iterator[tuple[int, ...]]:
    """One step down in one row, not before the last that was stepped down in: so each choice is reached once."""
    last = max((number for number, place in enumerate(places) if place), default=0)
    for number in range(last, len(rows)):
        if places[number] + 1 < len(rows[number]):
            yield (*places[:number], places[number] + 1, *places[number + 1 :])
