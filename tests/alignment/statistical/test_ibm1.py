"""Cells, and IBM model 1 against straight-line loops."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from nmt.alignment.statistical.ibm1 import learn_counts
from nmt.alignment.statistical.word_pairs import Cells

Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]
EMPTY = -1


def random_pairs() -> Pairs:
    draw = random.Random(1)
    return [
        (
            [draw.randint(0, 8) for _ in range(draw.randint(0, 5))],
            [draw.randint(0, 6) for _ in range(draw.randint(0, 5))],
        )
        for _ in range(40)
    ]


def cells_of(pairs: Pairs) -> Cells:
    return Cells.of(pairs)


def reference(pairs: Pairs, rounds: int) -> dict[tuple[int, int], float]:
    """Brown et al. 1993, model 1, in loops. Pairs with a blank side teach nothing."""
    probability: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    count: dict[tuple[int, int], float] = {}
    of_source: dict[int, float]
    for _ in range(rounds):
        count, of_source = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for y in target if source else ():
                total = sum(probability[x, y] for x in (EMPTY, *source))
                for x in (EMPTY, *source):
                    count[x, y] += probability[x, y] / total
                    of_source[x] += probability[x, y] / total
        probability = defaultdict(float, {(x, y): value / of_source[x] for (x, y), value in count.items()})
    return count


def test_every_cell_has_the_entry_of_its_two_words() -> None:
    pairs = random_pairs()
    cells, counts = cells_of(pairs), Counter[int]()
    for group in cells.groups:
        entries = group.of(cells.entry)
        for b, row in enumerate(group.rows):
            source, target = pairs[row]
            counts[row] += 1
            assert [[cells.source[e] for e in line] for line in entries[b]] == [list(source)] * len(target)
            assert [[cells.target[e] for e in line] for line in entries[b]] == [[y] * len(source) for y in target]
    assert counts == {row: 1 for row, (source, target) in enumerate(pairs) if source and target}


def test_flipped_cells_are_those_of_the_flipped_text() -> None:
    pairs = random_pairs()
    flipped = cells_of(pairs).flipped()
    for group in flipped.groups:
        for b, row in enumerate(group.rows):
            source, target = pairs[row]
            assert flipped.source[group.of(flipped.entry)[b]].tolist() == [list(target)] * len(source)
            assert (list(target), list(source)) == (group.sources[b].tolist(), group.targets[b].tolist())


@pytest.mark.parametrize("rounds", [1, 4])
def test_counts_are_those_of_the_loops(rounds: int) -> None:
    pairs = random_pairs()
    cells = cells_of(pairs)
    table, expected = learn_counts(cells, rounds=rounds), reference(pairs, rounds)
    assert len(expected) > 40
    counts = dict(zip(zip(cells.source.tolist(), cells.target.tolist(), strict=True), table.translation, strict=True))
    empty = {(EMPTY, y): count for y, count in enumerate(table.empty) if count}
    assert counts | empty == pytest.approx(expected)


def test_no_text_has_no_counts() -> None:
    result = learn_counts(cells_of([([4], [])]))
    assert result.translation.size == 0
    assert np.isfinite(result.empty).all()
