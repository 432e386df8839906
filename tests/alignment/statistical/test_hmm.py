"""Hidden Markov word alignment against the enumeration of all alignments, and what agreement brings."""

from __future__ import annotations

import random
from math import exp

import numpy as np
import pytest
import torch

from nmt.alignment.statistical import hmm
from nmt.alignment.statistical.hmm import ALPHA, EMPTY, HMM, Posteriors, agreement, forward_backward, learn
from nmt.alignment.statistical.ibm1 import TranslationTable, learn_counts
from nmt.alignment.statistical.word_pairs import Cells
from tests.reference import hmm as reference


def random_text(pairs: int = 12) -> Cells:
    draw = random.Random(3)
    sides = [[[draw.randint(0, 5) for _ in range(draw.randint(1, 4))] for _ in range(pairs)] for _ in range(2)]
    return Cells.of(*sides)


def random_model(cells: Cells, seed: int = 0) -> HMM:
    draw = np.random.default_rng(seed)
    longest = max(group.sources.shape[1] for group in cells.groups)
    words = 1 + int(cells.target.max())
    return HMM(TranslationTable(draw.random(len(cells.source)), draw.random(words)), draw.random(2 * longest + 1))


@pytest.mark.parametrize(("steps", "length"), [(1, 1), (1, 3), (4, 1), (3, 3), (4, 3), (2, 4)])
def test_posteriors_are_those_of_all_alignments(steps: int, length: int) -> None:
    draw = np.random.default_rng(steps * 10 + length)
    emission, empty = (draw.random(shape).astype(np.float32) for shape in ((2, steps, length), (2, steps)))
    transition = draw.dirichlet(np.ones(length), length + 1).astype(np.float32)
    links, unlinked, jumps = forward_backward(emission, empty, transition)
    expected = [reference.posteriors(emission[b], empty[b].tolist(), transition, EMPTY) for b in range(2)]
    for b, (_, linked, from_empty, _) in enumerate(expected):
        assert links[b] == pytest.approx(linked, abs=1e-5)
        assert unlinked[b] == pytest.approx(from_empty, abs=1e-5)
    assert jumps == pytest.approx(sum(item[3] for item in expected), abs=1e-5)


def test_long_sentences_do_not_underflow() -> None:
    emission, empty = np.full((1, 400, 5), 1e-9, np.float32), np.full((1, 400), 1e-9, np.float32)
    links, unlinked, _ = forward_backward(emission, empty, np.full((6, 5), 0.2, np.float32))
    assert links.sum(axis=-1) + unlinked == pytest.approx(np.ones((1, 400)), abs=1e-4)


def test_expected_counts_of_a_text_are_the_sums_of_its_pairs() -> None:
    cells = random_text()
    model = random_model(cells)
    result = Posteriors.of(model, cells)
    empty, jumps = np.zeros_like(result.empty), np.zeros_like(result.jumps)
    for group in cells.groups:
        length = group.sources.shape[1]
        for b in range(len(group.rows)):
            emission = model.table.translation[group.of(cells.entry)[b]]
            chances = model.table.empty[group.targets[b]].tolist()
            _, links, unlinked, jumped = reference.posteriors(emission, chances, model.transitions(length), EMPTY)
            assert group.of(result.links)[b] == pytest.approx(links, abs=1e-5)
            for word, share in zip(group.targets[b], unlinked, strict=True):
                empty[word] += share
            for before, row in enumerate(jumped):
                for after, share in enumerate(row):
                    jumps[len(jumps) // 2 + after - (before - 1)] += share
    assert result.empty == pytest.approx(empty, abs=1e-4)
    assert result.jumps == pytest.approx(jumps, abs=1e-4)


def test_transitions_depend_on_the_distance_alone_and_sum_to_one() -> None:
    jumps = np.array([0.0, 0.0, 1.0, 2.0, 8.0, 3.0, 1.0, 0.0, 0.0])
    chance = HMM(TranslationTable(np.ones(0), np.ones(0)), jumps).transitions(4)
    assert chance.sum(axis=1) == pytest.approx(np.ones(5))
    assert (chance > 0).all()
    for before in range(4):
        within = [jumps[4 + after - before] for after in range(4)]
        expected = [(1 - hmm.SMOOTHING) * value / sum(within) + hmm.SMOOTHING / 4 for value in within]
        assert chance[before + 1] == pytest.approx(expected, abs=1e-6)


def test_a_source_longer_than_any_seen_before_has_transitions_too() -> None:
    chance = HMM(TranslationTable(np.ones(0), np.ones(0)), np.array([1.0, 5.0, 2.0])).transitions(6)
    assert chance.sum(axis=1) == pytest.approx(np.ones(7))


def test_the_translation_table_is_that_of_the_prior() -> None:
    cells = random_text()
    counts, words = learn_counts(cells), 1 + int(cells.target.max())
    result = learn(cells, rounds=())[0].table  # before the first round

    def psi(value: float) -> float:
        return float(torch.digamma(torch.tensor(value, dtype=torch.float64)))

    for entry, count in enumerate(counts.translation):
        total = sum(c for c, x in zip(counts.translation, cells.source, strict=True) if x == cells.source[entry])
        assert result.translation[entry] == pytest.approx(exp(psi(count + ALPHA) - psi(total + words * ALPHA)))
    total = float(counts.empty.sum())
    assert result.empty == pytest.approx([exp(psi(c + ALPHA) - psi(total + words * ALPHA)) for c in counts.empty])


def test_agreement_is_the_same_from_either_side() -> None:
    cells = random_text()
    forward, backward = learn(cells, range(2))
    other_forward, other_backward = learn(cells.flipped(), range(2))
    one, other = agreement(forward, backward, cells), agreement(other_forward, other_backward, cells.flipped())
    assert one == pytest.approx(other, abs=1e-6)
    assert ((one >= 0) & (one <= 1 + 1e-6)).all()
