"""Joined pairs and copied words: drawn anew in every epoch, within the longest length, after tags."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nmt.data.arrays import Lists
from nmt.data.augmentation import Part, add_copied_words, join_pairs, rare_words
from nmt.data.encoded import EncodedPairs
from nmt.text.subwords import Subwords

SOURCES = [[9, 1], [9, 2, 3], [9], [9, 4, 5, 6], [7, 8]]
TARGETS = [[11], [12, 13], [14, 15, 16], [17], [18]]
PAIRS = EncodedPairs(Lists.of(SOURCES, np.uint16), Lists.of(TARGETS, np.uint16))


def joined(share: float = 1.0, most: int = 100, epoch: int = 0, tag: int = 0) -> list[tuple[list[int], list[int]]]:
    """The pairs of an epoch, then the joined ones."""
    parts = [Part(np.arange(4, dtype=np.int32), tag), Part(np.array([4], np.int32), 0)]
    pairs, extended = join_pairs(PAIRS, parts, (SUBWORDS, SUBWORDS), share=share, most=most, seed=1, epoch=epoch)
    assert [part.tag for part in extended] == [tag, 0]
    assert [part.rows[:size].tolist() for part, size in zip(extended, (4, 1), strict=True)] == [[0, 1, 2, 3], [4]]
    shown = [*range(5), *(row for part in extended for row in part.rows.tolist() if row >= 5)]
    assert (pairs.source_lengths[shown] == [len(source) for source, _ in pairs[shown]]).all()
    return pairs[shown]


def test_the_pairs_stay_and_joined_ones_of_the_same_part_follow() -> None:
    pairs = joined()
    assert pairs[:5] == list(zip(SOURCES, TARGETS, strict=True))
    possible = [
        (SOURCES[a] + SOURCES[b], TARGETS[a] + TARGETS[b]) for part in ((0, 1, 2, 3), (4,)) for a in part for b in part
    ]
    assert len(pairs) == 10
    assert all(pair in possible for pair in pairs[5:])
    assert joined(epoch=0) == pairs != joined(epoch=1), "every epoch draws anew"
    assert all(source[0] == 9 and source.count(9) == 1 for source, _ in joined(tag=1)[5:9]), "tags come once"


@pytest.mark.parametrize(("share", "count"), [(0, 0), (0.5, 2), (2, 10)])
def test_so_many_are_joined_per_pair_of_a_part(share: float, count: int) -> None:
    assert len(joined(share=share)) == 5 + count


def test_pairs_that_would_be_too_long_are_left_out() -> None:
    lengths = [max(map(len, pair)) for pair in joined(share=5, most=4)[5:]]
    assert lengths
    assert max(lengths) <= 4


# --- copied words ------------------------------------------------------------------------------------------------

LINES = ["<2b> Anna sees the old house", "<2b> the old house", "<2b> Anna sees the sea by the old port"] * 20
TEXT = [*LINES, "<2b> Quetzal lives in Ocotlán (Jalisco)."]
SUBWORDS = Subwords.train(TEXT, kind="bpe", size=310, tags=["<2b>"], byte_fallback=True, seed=1)
TAGGED = EncodedPairs(
    Lists.of(SUBWORDS.encode_batch(TEXT), np.uint16),
    Lists.of(SUBWORDS.encode_batch([line.removeprefix("<2b> ")[::-1] for line in TEXT]), np.uint16),
)
WORDS = ["Quetzal", "Ocotlán"]


def copied(share: float = 1.0, words: Sequence[str] = WORDS, most: int = 1000, epoch: int = 0) -> list[tuple[str, str]]:
    """The text of the pairs that an epoch shows."""
    part = Part(np.arange(len(TEXT), dtype=np.int32), 1)
    subwords = (SUBWORDS, SUBWORDS)
    pairs, [part] = add_copied_words(TAGGED, [part], words, subwords, share=share, most=most, seed=1, epoch=epoch)
    assert part.tag == 1
    return [(SUBWORDS.decode(source), SUBWORDS.decode(target)) for source, target in pairs[part.rows]]


def test_words_that_occur_once_or_twice_are_rare() -> None:
    words = rare_words(["A cat, a Dog (Dog) and 12", "a cat sat: and, a " + "x" * 40])
    assert words == ["A", "cat", "Dog", "and", "12", "sat"]


def test_text_without_spaces_gets_no_lines_as_words_and_no_spaces() -> None:
    source, target = (
        ["我们去学校。", "他们去北京。", "他们喝茶。"],
        ["私は学校へ行く。", "彼は北京へ行く。", "お茶を飲む。"],
    )
    words = rare_words(source)
    assert sorted(words) == sorted("我去学校他北京喝茶")
    model = Subwords.train([*source, *target] * 9, kind="bpe", size=330, byte_fallback=True)
    pairs = EncodedPairs(*(Lists.of(model.encode_batch(side), np.uint16) for side in (source, target)))
    parts = [Part(np.arange(3, dtype=np.int32), 0)]
    drawing: dict[str, Any] = {"share": 1.0, "most": 100, "seed": 1, "epoch": 0}
    pairs, parts = add_copied_words(pairs, parts, words, (model, model), **drawing)
    pairs, [part] = join_pairs(pairs, parts, (model, model), **drawing)
    for pair in pairs[part.rows]:
        for ids, lines in zip(pair, (source, target), strict=True):
            text = model.decode(ids)
            assert any(line in text for line in lines)
            assert not re.search("[^0-9] | [^0-9]", text.replace("%", "0"))


def test_the_same_words_are_on_both_sides_and_after_the_tag() -> None:
    shown = copied()
    assert len(shown) == len(TEXT)
    kinds: Counter[str] = Counter()
    for source, target in shown:
        assert source.startswith("<2b> ")
        line = next(line for line in (text.removeprefix("<2b> ") for text in TEXT) if line[::-1] in target)
        before, after = source.removeprefix("<2b> ").split(line)
        assert (before, after) == tuple(target.split(line[::-1]))
        kinds["before" if before else "after"] += 1
        for word in (before + after).split():
            kinds["word" if word in WORDS else "number"] += 1
            assert word in WORDS or re.fullmatch(r"[\d.,]+%?", word)
    assert all(kinds[kind] > 10 for kind in ("before", "after", "word", "number"))


@pytest.mark.parametrize(("share", "least", "most"), [(0, 0, 0), (0.3, 10, 27), (1, 61, 61)])
def test_so_many_pairs_get_words(share: float, least: int, most: int) -> None:
    assert least <= len([source for source, _ in copied(share) if source not in TEXT]) <= most


def test_long_pairs_get_no_words() -> None:
    assert [source for source, _ in copied(most=2 * len(SUBWORDS.encode(TEXT[1])))].count(TEXT[0]) == 20
