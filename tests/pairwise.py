"""Pairwise testing: few cases in which every pair of values that can meet does meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Case = dict[str, Any]
Place = tuple[str, int]
"""A factor, and the number of one of its values."""


def pairwise_cases(
    factors: Mapping[str, Sequence[Any]], clashes: Callable[[Case], bool] = lambda case: False
) -> list[Case]:
    """The same cases at every call: each holds one value of each factor, and together they hold every possible pair.

    A case starts from the first pair that is still missing. Each further factor takes the value that brings most of the missing
    pairs, and steps back where no value is left.

    Args:
        factors: the values of each factor.
        clashes: whether a case is impossible; of a case that is not complete, whether it already is.
    """
    places = {name: [(name, number) for number in range(len(values))] for name, values in factors.items()}
    pairs = (product(places[one], places[other]) for one, other in combinations(factors, 2))
    missing = dict.fromkeys(frozenset(pair) for both in pairs for pair in both)  # in order, unlike a set

    def valued(chosen: Sequence[Place]) -> Case:
        return {name: factors[name][number] for name, number in chosen}

    def new_pairs(place: Place, chosen: Sequence[Place]) -> int:
        return sum(frozenset((place, other)) in missing for other in chosen)

    def completed(chosen: list[Place]) -> list[Place] | None:
        if clashes(valued(chosen)):
            return None
        name = next((name for name in factors if name not in dict(chosen)), None)
        if name is None:
            return chosen
        shift = len(missing) % len(places[name])  # so that values of equal worth take turns
        by_turns = places[name][shift:] + places[name][:shift]
        ranked = sorted(by_turns, key=lambda place: -new_pairs(place, chosen))
        return next((case for place in ranked if (case := completed([*chosen, place])) is not None), None)

    cases = []
    while missing:
        pair = next(iter(missing))
        case = completed(sorted(pair, key=lambda place: list(factors).index(place[0])))
        for both in combinations(case, 2) if case else [tuple(pair)]:  # a pair in no case at all is impossible
            missing.pop(frozenset(both), None)
        if case:
            cases.append({name: valued(case)[name] for name in factors})
    return cases
