"""Search with terms against all outputs of a random table of transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.search import SearchOptions
from nmt.search.terms import Term, TermProgress, TermSearch

SIZE, LENGTH = 8, 6
BOS, EOS = 2, 3
TABLE = 2 * torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(1))
TABLE[:, [0, BOS]] = -torch.inf
LOG_PROBS = TABLE.log_softmax(1)
TERMS: list[list[Term]] = [[], [(5,)], [(4, 6)], [(5,), (7, 4)], [(4, 5, 6)], [(5,), (5,)]]


@dataclass(frozen=True)
class Row:
    """A state or a memory of which nothing is read."""

    def select(self, rows: Tensor) -> Row:
        return self


@dataclass(frozen=True)
class Result:
    log_probs: Tensor
    weights: Tensor
    state: Any = Row()


def step(tokens: Tensor, state: Any, memory: Any, rows: Tensor) -> Result:
    return Result(LOG_PROBS[tokens], torch.ones(len(tokens), 1))


def found(
    terms: Sequence[Sequence[Term]], beam_size: int, inner: frozenset[int] = frozenset(), **options: Any
) -> list[Any]:
    settings = SearchOptions(beam_size=beam_size, n_best=1, length_penalty=0.0, **options)
    return TermSearch(settings, terms, inner).run(step, Row(), Row(), torch.full((len(terms),), LENGTH))


def holds(ids: tuple[int, ...], terms: Sequence[Term]) -> bool:
    """Whether the terms occur, each at a place of its own."""
    progress = TermProgress(tuple(terms))
    for token in ids:
        progress = progress.after(token)
    return not progress.missing


def best(terms: Sequence[Term]) -> tuple[int, ...]:
    """The most probable output that holds the terms."""
    outputs = (ids for count in range(LENGTH) for ids in product(range(4, SIZE), repeat=count) if holds(ids, terms))
    return max(outputs, key=log_probability)


def log_probability(ids: tuple[int, ...]) -> float:
    path = [BOS, *ids, EOS]
    return float(LOG_PROBS[path[:-1], path[1:]].sum())


def test_a_wide_beam_finds_the_best_output_that_holds_the_terms() -> None:
    for terms, [hypothesis] in zip(TERMS, found(TERMS, 400), strict=True):
        assert hypothesis.ids == best(terms)
        assert hypothesis.log_probability == pytest.approx(log_probability(best(terms)), abs=1e-4)


@pytest.mark.parametrize("check_every", [1, 3])
@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_a_narrow_beam_uses_all_terms_too(beam_size: int, check_every: int) -> None:
    together = found(TERMS, beam_size, check_every=check_every)
    for terms, [hypothesis] in zip(TERMS, together, strict=True):
        assert holds(hypothesis.ids, terms)
        [[alone]] = found([terms], beam_size)
        assert alone.ids == hypothesis.ids


def test_no_token_goes_on_in_the_last_word_of_a_term() -> None:
    term, ids = (5,), best([(5,)])
    follower = ids[ids.index(5) + 1]
    [[hypothesis]] = found([[term]], 400, inner=frozenset({follower}))
    assert hypothesis.ids != ids
    assert hypothesis.ids[hypothesis.ids.index(5) + 1 :][:1] != (follower,)


def test_a_term_that_breaks_off_begins_again() -> None:
    progress = TermProgress(((4, 5, 6), (7,)))
    for token, missing, begun in ((4, 4, 1), (5, 4, 2), (7, 3, 0), (4, 3, 1), (4, 3, 1), (5, 3, 2), (6, 0, 0)):
        progress = progress.after(token)
        assert (sum(map(len, progress.missing)), progress.begun) == (missing, begun)
    assert progress.is_complete
    assert not progress.after(4).is_complete
