"""Pairwise cases hold every possible pair of values, and nothing that is impossible."""

from itertools import combinations, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pairwise import Case, pairwise_cases

Pair = tuple[tuple[str, Any], ...]


def pairs_of(cases: list[Case]) -> set[Pair]:
    return {pair for case in cases for pair in combinations(case.items(), 2)}


def all_cases(factors: dict[str, list[int]]) -> list[Case]:
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]


sizes = st.lists(st.integers(1, 3), min_size=2, max_size=4)


@settings(max_examples=50)
@given(sizes, st.integers(0, 9), st.integers(2, 9))
def test_every_possible_pair_is_in_some_case_and_no_case_is_impossible(sizes: list[int], first: int, each: int) -> None:
    factors = {f"factor {number}": list(range(size)) for number, size in enumerate(sizes)}
    everything = all_cases(factors)
    impossible = everything[first::each]  # whole cases, so that a partial one rarely shows what it comes to
    possible = [case for case in everything if case not in impossible]
    cases = pairwise_cases(factors, impossible.__contains__)
    assert all(case in possible for case in cases)
    assert pairs_of(cases) == pairs_of(possible)
    assert len(cases) <= len(possible)
    assert cases == pairwise_cases(factors, impossible.__contains__)
