"""Hidden Markov word alignment against the enumeration of all alignments, and what agreement brings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from math import exp

import numpy as np
import pytest
import torch

from nmt.alignment.statistical import hmm, word_pairs
from nmt.alignment.statistical.hmm import (
    ALPHA,
    BETA,
    EMPTY,
    GAMMA,
    HMM,
    STEM_ALPHA,
    Posteriors,
    SmoothTable,
    agreement,
    forward_backward,
    learn,
)
from nmt.alignment.statistical.ibm1 import TranslationTable, learn_counts
from nmt.alignment.statistical.word_forms import SHORTEST_PREFIX, STEM, WordForms, Words
from nmt.alignment.statistical.word_pairs import Cells
from tests.reference import hmm as reference


def random_text(pairs: int = 12) -> Cells:
    draw = random.Random(3)
    sides = [[[draw.randint(0, 5) for _ in range(draw.randint(1, 4))] for _ in range(pairs)] for _ in range(2)]
    return Cells.of(zip(*sides, strict=True))


SOURCE = ["walk", "walks", "walking", "dog", "doggo", "for"]
TARGET = ["walken", "walkt", "walkte", "walktet", "dogge", "for"]


def forms_of(cells: Cells, source: Sequence[str] = SOURCE, target: Sequence[str] = TARGET) -> WordForms:
    """The forms of some words with these ids, as often as they are in the text."""
    sides = ([group.sources for group in cells.groups], source), ([group.targets for group in cells.groups], target)
    words = [
        Words(
            {
                form: int((np.concatenate([group_ids.reshape(-1) for group_ids in ids]) == word).sum())
                for word, form in enumerate(forms)
            }
        )
        for ids, forms in sides
    ]
    return WordForms.of(cells, *words)


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
    assert jumps == pytest.approx(sum(jumped for *_, jumped in expected), abs=1e-5)


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
    model = HMM(TranslationTable(np.ones(0), np.ones(0)), jumps)
    assert model.transitions(9).sum(axis=1) == pytest.approx(np.ones(10))  # longer than any source before
    chance = model.transitions(4)
    assert chance.sum(axis=1) == pytest.approx(np.ones(5))
    assert (chance > 0).all()
    for before in range(4):
        within = [jumps[4 + after - before] for after in range(4)]
        expected = [(1 - hmm.SMOOTHING) * value / sum(within) + hmm.SMOOTHING / 4 for value in within]
        assert chance[before + 1] == pytest.approx(expected, abs=1e-6)


def psi(value: float) -> float:
    return float(torch.digamma(torch.tensor(value, dtype=torch.float64)))


@pytest.fixture
def start() -> tuple[Cells, dict[tuple[int, int], float], SmoothTable]:
    """A text, the counts of its pairs of words before the first round, and the table of the model then."""
    cells = random_text()
    counts = learn_counts(cells)
    count = {
        (int(x), int(y)): c * exp(GAMMA * common_prefix(x, y))
        for x, y, c in zip(cells.source, cells.target, counts.translation, strict=True)
    }
    return cells, count, learn(cells, forms_of(cells), rounds=())[0].table


def mean_of(cells: Cells, count: dict[tuple[int, int], float], x: int, y: int) -> float:
    """t(stem of y | stem of x) p(y | stem of y)."""
    frequency = Counter(int(word) for group in cells.groups for word in group.targets.reshape(-1))
    of_source = {pair: c for pair, c in count.items() if SOURCE[pair[0]][:STEM] == SOURCE[x][:STEM]}
    both = sum(c for (_, word), c in of_source.items() if TARGET[word][:STEM] == TARGET[y][:STEM])
    stems = len({form[:STEM] for form in TARGET})
    same = sum(n for word, n in frequency.items() if TARGET[word][:STEM] == TARGET[y][:STEM])
    return exp(psi(both + STEM_ALPHA) - psi(sum(of_source.values()) + stems * STEM_ALPHA)) * frequency[y] / same


def test_the_translation_table_is_that_of_the_prior(
    start: tuple[Cells, dict[tuple[int, int], float], SmoothTable],
) -> None:
    cells, count, table = start
    words = 1 + int(cells.target.max())
    for entry, (x, y) in enumerate(zip(cells.source.tolist(), cells.target.tolist(), strict=True)):
        total = sum(c for (word, _), c in count.items() if word == x)
        part = psi(count[x, y] + ALPHA + BETA * mean_of(cells, count, x, y))
        assert table.translation[entry] == pytest.approx(exp(part - psi(total + words * ALPHA + BETA)))
    empty = learn_counts(cells).empty
    total = float(empty.sum())
    assert table.empty == pytest.approx([exp(psi(c + ALPHA) - psi(total + words * ALPHA)) for c in empty])


def test_words_that_never_occurred_together_translate_as_their_stems_do(
    start: tuple[Cells, dict[tuple[int, int], float], SmoothTable],
) -> None:
    cells, count, table = start
    words = 1 + int(cells.target.max())
    for x in range(len(SOURCE)):
        mean = mean_of(cells, count, x, 3)
        total = sum(c for (word, _), c in count.items() if word == x)
        expected = exp(psi(ALPHA + BETA * mean) - psi(total + words * ALPHA + BETA))
        assert table.unseen(np.array([mean]), np.array([x])) == pytest.approx([expected])
    expected = exp(psi(ALPHA + BETA * 0.25) - psi(words * ALPHA + BETA))
    assert table.unseen(np.array([0.25]), np.array([-1])) == pytest.approx([expected])  # of an unknown word


def test_the_prior_falls_with_the_square_of_a_large_vocabulary() -> None:
    for words, alpha in ((100, ALPHA), (2 * hmm.FEW_WORDS, ALPHA / 4)):
        table = SmoothTable(np.ones(0), np.ones(words), np.ones(0), np.ones(1))
        expected = exp(psi(alpha + BETA * 0.25) - psi(words * alpha + BETA))
        assert table.unseen(np.array([0.25]), np.array([-1])) == pytest.approx([expected])


def test_blocks_of_cells_teach_what_all_at_once_do(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = learn(random_text(), forms_of(random_text()))
    monkeypatch.setattr(word_pairs, "BLOCK", 10)
    cells = random_text()
    assert len([*cells.blocks()]) > 3
    for model, other in zip(learn(cells, forms_of(cells)), whole, strict=True):
        assert model.table.translation == pytest.approx(other.table.translation)
        assert model.jumps == pytest.approx(other.jumps)


def common_prefix(x: int, y: int) -> float:
    source, target = SOURCE[x], TARGET[y]
    length = sum(1 for _ in takewhile(lambda letters: letters[0] == letters[1], zip(source, target, strict=False)))
    return length / max(len(source), len(target)) if length >= SHORTEST_PREFIX else 0.0


def test_stems_translate_a_word_seen_once() -> None:
    source = ["negotiate", "negotiates", "negotiated", "dog", "far"]
    target = ["verhandeln", "verhandelt", "verhandle", "hund", "weit"]
    once = [2, 4], [4, 2]  # "negotiated far", "weit verhandle": nothing but the stems tells which is which
    pairs = [([0, 3], [3, 0]), ([1, 3], [3, 1]), ([0], [0]), ([1], [1])] * 5 + [once]
    cells = Cells.of(pairs)
    group, row = next(
        (group, group.rows.tolist().index(len(pairs) - 1)) for group in cells.groups if len(pairs) - 1 in group.rows
    )

    def posterior(source: list[str], target: list[str]) -> float:
        return float(group.of(agreement(*learn(cells, forms_of(cells, source, target)), cells))[row, 1, 0])

    assert posterior(source, target) > 0.9
    assert posterior([word[::-1] for word in source], target) < 0.1


def test_spelling_tells_names_apart_that_always_occur_together() -> None:
    source, target = ["british", "columbia", "in"], ["colombie", "britannique", "en"]
    pairs = [([2, 0, 1], [2, 0, 1]), ([0, 1], [0, 1]), ([2], [2])] * 10
    cells = Cells.of(pairs)

    def links(source: list[str]) -> list[list[bool]]:
        posterior = agreement(*learn(cells, forms_of(cells, source, target)), cells)
        names = next(group for group in cells.groups if group.sources.shape[1] == 2)
        return [[float(value) >= hmm.THRESHOLD for value in row] for row in names.of(posterior)[0]]

    assert links(source) == [[False, True], [True, False]]
    assert links(["x", "y", "in"]) == [[True, False], [False, True]]  # the order decides


def test_agreement_is_the_same_from_either_side() -> None:
    cells = random_text()
    forms = forms_of(cells)
    forward, backward = learn(cells, forms, range(2))
    flipped = agreement(*learn(cells.flipped(), forms.flipped(), range(2)), cells.flipped())
    confidences = agreement(forward, backward, cells)
    assert confidences == pytest.approx(flipped, abs=1e-6)
    assert ((confidences >= 0) & (confidences <= 1 + 1e-6)).all()


def test_weights_of_counts_have_the_digamma_function_of_torch() -> None:
    counts = np.concatenate([10.0 ** np.arange(-3, 7), np.linspace(0.01, 20, 500)])
    expected = torch.special.digamma(torch.from_numpy(counts)).exp().numpy()
    np.testing.assert_allclose(hmm._weight(counts), expected, rtol=1e-8)
