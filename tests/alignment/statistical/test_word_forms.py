"""Stems and spelling of words, against loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from nmt.alignment.statistical.word_forms import WordForms, Words, spelling_similarity
from nmt.alignment.statistical.word_pairs import Cells

SOURCE = ["british", "columbia", "negotiate", "negotiating", "of", "日本"]
TARGET = ["britannique", "colombie", "négocie", "négocié", "de", "negotiation", "日本"]
TEXT = [([0, 1, 4], [1, 4, 0]), ([2, 4], [2, 5]), ([3, 3], [3]), ([3, 5], [3, 6, 2]), ([2], [])]


def words(side: int) -> Words:
    """The words of a side of the text, as often as they are in pairs with words on both sides."""
    count = Counter(word for pair in TEXT if all(pair) for word in pair[side])
    return Words({form: count[word] for word, form in enumerate((SOURCE, TARGET)[side])})


@pytest.fixture
def cells() -> Cells:
    return Cells.of(TEXT)


@pytest.fixture
def forms(cells: Cells) -> WordForms:
    return WordForms.of(cells, words(0), words(1))


def test_entries_share_a_pair_of_stems_if_both_words_do(cells: Cells, forms: WordForms) -> None:
    pairs = [(SOURCE[x][:5], TARGET[y][:5]) for x, y in zip(cells.source, cells.target, strict=True)]
    stems = [(entry, forms.source[entry], forms.target[entry]) for entry in forms.entry]
    for first, (x, y) in zip(stems, pairs, strict=True):
        for second, (x2, y2) in zip(stems, pairs, strict=True):
            same = [number == second_number for number, second_number in zip(first, second, strict=True)]
            assert same == [(x, y) == (x2, y2), x == x2, y == y2]


def test_shares_are_those_among_the_words_of_a_stem(forms: WordForms) -> None:
    for side, spelled, shares in ((0, SOURCE, forms.source_share), (1, TARGET, forms.target_share)):
        count = words(side).frequency
        for word, share in enumerate(shares):
            of_stem = sum(count[at] for at, form in enumerate(spelled) if form[:5] == spelled[word][:5])
            assert share == pytest.approx(count[word] / of_stem)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("british", "britannique", 4 / 11),
        ("columbia", "colombie", 3 / 8),
        ("negotiate", "negotiation", 8 / 11),
        ("of", "de", 0),
        ("日本", "日本", 0),  # shorter than a prefix that counts
        ("internationalization", "internationalization", 12 / 20),  # the first twelve letters are compared
        ("1867", "1867", 1),
    ],
)
def test_similarity_is_the_share_of_the_common_prefix(source: str, target: str, expected: float) -> None:
    similarity = spelling_similarity(Cells.of([([0], [0])]), Words({source: 1}), Words({target: 1}))
    assert similarity == pytest.approx([expected])


def test_flipped_forms_are_those_of_the_flipped_text(cells: Cells, forms: WordForms) -> None:
    flipped, expected = forms.flipped(), WordForms.of(cells.flipped(), words(1), words(0))
    assert np.array_equal(flipped.source[flipped.entry], expected.source[expected.entry])
    assert np.array_equal(flipped.target[flipped.entry], expected.target[expected.entry])
    assert np.array_equal(flipped.similarity, expected.similarity)
    assert np.array_equal(flipped.source_share, expected.source_share)
    assert np.array_equal(flipped.target_share, expected.target_share)


def test_no_text_has_no_forms() -> None:
    forms = WordForms.of(Cells.of([([], [])]), Words({}), Words({}))
    assert forms.similarity.size == forms.entry.size == forms.source_share.size == 0


def test_a_stem_is_four_letters_or_one_character_of_a_script_without_spaces() -> None:
    words = Words(dict.fromkeys(["negotiation", "negotiate", "京都", "京", "ไทย"], 1))
    assert words.stems.tolist() == ["nego", "ไ", "京"]
    assert words.stem_of.tolist() == [0, 0, 2, 2, 1]
