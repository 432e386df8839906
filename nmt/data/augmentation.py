"""What an epoch shows besides the pairs themselves: joined pairs for longer lines, and copied words for names and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from string import punctuation
from typing import NamedTuple

import numpy as np

from nmt.data.arrays import Lists, collect_lists
from nmt.data.batching import Rows
from nmt.data.encoded import EncodedPairs
from nmt.text.scripts import join_texts, splitter
from nmt.text.subwords import Subwords

_BLOCK = 10_000
"""Pairs that are copied at a time."""
_MOST_OCCURRENCES = 2
"""How often a rare word occurs at most."""
_LONGEST = 20
"""Most characters of a word that is copied."""
_LINES = 200_000
"""Lines whose words are counted."""
_NUMBERS = 1 / 3
"""The share of numbers among copied words."""
_AROUND_WORDS = punctuation + "¡¿«»“”„‘’‚…–—。、，！？：；「」『』（）《》"


class Part(NamedTuple):
    """A corpus in an epoch.

    Attributes:
        rows: its pairs.
        tag: the number of tokens of the tag that its source lines begin with.
    """

    rows: Rows
    tag: int


# --- joined pairs ------------------------------------------------------------------------------------------------


def join_pairs(
    pairs: EncodedPairs,
    parts: Sequence[Part],
    subwords: tuple[Subwords, Subwords],
    *,
    share: float,
    most: int,
    seed: int,
    epoch: int,
) -> tuple[EncodedPairs, list[Part]]:
    """Add random pairs of an epoch in one line, tags once: sentence concatenation (Nguyen et al. 2021; Kondo et al. 2021).

    Args:
        pairs: the corpus.
        parts: what the epoch shows of it.
        subwords: of source and target.
        share: number of joined pairs per pair of the epoch.
        most: most tokens of a side of a joined pair; longer ones are left out.
        seed: with the epoch, says which pairs are joined.
        epoch: number of the epoch.

    Returns:
        The pairs with joined ones after them, and the parts with their rows.
    """
    generator = np.random.default_rng((seed, epoch, 1))
    picks = []
    for part in parts:
        count = round(share * len(part.rows))
        # Every row comes once before any comes twice, in either place.
        first, second = (np.resize(generator.permutation(part.rows), count) for _ in range(2))
        sides = (pairs.source_lengths, pairs.target_lengths)
        is_short = np.all([lengths[first] + lengths[second] <= most for lengths in sides], axis=0)
        picks.append((first[is_short], second[is_short]))

    def joined() -> Iterator[tuple[list[int], list[int]]]:
        for part, (first, second) in zip(parts, picks, strict=True):
            for start in range(0, len(first), _BLOCK):
                rows = (picked[start : start + _BLOCK] for picked in (first, second))
                for (source, target), (next_source, next_target) in zip(*map(pairs.__getitem__, rows), strict=True):
                    yield (
                        [*source, *subwords[0].continuation(source, next_source[part.tag :])],
                        [*target, *subwords[1].continuation(target, next_target)],
                    )

    return _extended(pairs, parts, [len(first) for first, _ in picks], joined())


# --- copied words ------------------------------------------------------------------------------------------------


def rare_words(lines: Sequence[str]) -> list[str]:
    """The words, not too long, that occur once or twice in the first lines, without punctuation around them, in the order of the text."""
    split = splitter(lines)
    words = Counter(word.strip(_AROUND_WORDS) for line in islice(lines, _LINES) for word in split(line))
    return [word for word, count in words.items() if count <= _MOST_OCCURRENCES and 0 < len(word) <= _LONGEST]


def add_copied_words(
    pairs: EncodedPairs,
    parts: Sequence[Part],
    words: Sequence[str],
    subwords: tuple[Subwords, Subwords],
    *,
    share: float,
    most: int,
    seed: int,
    epoch: int,
) -> tuple[EncodedPairs, list[Part]]:
    """Put one to three numbers and rare words of the source before or after both sides of some pairs of an epoch.

    Currey et al. (2017) teach to copy by lines of the target language that are translated to themselves. This needs no other text,
    and words stay in a sentence.

    Args, beside those of `join_pairs`:
        words: the rare words; none for numbers alone.
        share: the share of pairs that get words.
        most: most tokens of a side of a pair; those of more than half as many get no words.

    Returns:
        The pairs with changed ones after them, and the parts with their rows, in which those replace the pairs themselves.
    """
    generator = np.random.default_rng((seed, epoch, 2))
    masks = []
    for part in parts:
        lengths = np.maximum(pairs.source_lengths[part.rows], pairs.target_lengths[part.rows])
        masks.append((lengths <= most // 2) & (generator.random(len(part.rows)) < share))
    changed = [part._replace(rows=part.rows[mask]) for part, mask in zip(parts, masks, strict=True)]
    unchanged = [part._replace(rows=part.rows[~mask]) for part, mask in zip(parts, masks, strict=True)]
    texts = (_draw_words(generator, words) for part in changed for _ in part.rows)

    def extend(model: Subwords, line: list[int], words: list[int], before: bool, tag: int) -> list[int]:
        if before:
            return [*line[:tag], *words, *model.continuation(words, line[tag:])]
        return [*line, *model.continuation(line, words)]

    def extended() -> Iterator[tuple[list[int], list[int]]]:
        for part in changed:
            for start in range(0, len(part.rows), _BLOCK):
                rows = part.rows[start : start + _BLOCK]
                added = list(islice(texts, len(rows)))
                is_before = generator.random(len(rows)) < 1 / 2
                encoded = (model.encode_batch(added, threads=1) for model in subwords)
                for (source, target), before, *ids in zip(pairs[rows], is_before, *encoded, strict=True):
                    yield (
                        extend(subwords[0], source, ids[0], before, part.tag),
                        extend(subwords[1], target, ids[1], before, 0),
                    )

    return _extended(pairs, unchanged, [len(part.rows) for part in changed], extended())


def _draw_words(generator: np.random.Generator, words: Sequence[str]) -> str:
    """One to three words, or numbers of one to seven digits as texts write them; one most often."""
    drawn = []
    for _ in range(generator.choice((1, 1, 2, 3))):
        if words and generator.random() >= _NUMBERS:
            drawn.append(words[int(generator.integers(len(words)))])
        else:
            value = int(10 ** generator.uniform(0, 7))
            grouped = f"{value:,}"
            forms = [f"{value}", f"{value}", grouped, grouped.replace(",", "."), f"{value % 100}%"]
            drawn.append(str(generator.choice(forms)))
    return join_texts(drawn)


# --- both --------------------------------------------------------------------------------------------------------


def _extended(
    pairs: EncodedPairs,
    parts: Sequence[Part],
    counts: Sequence[int],
    further: Iterator[tuple[list[int], list[int]]],
) -> tuple[EncodedPairs, list[Part]]:
    """The pairs with further ones, so many for each part, and the parts with those."""
    dtype = pairs.source.values.dtype
    blocks = (
        [Lists.of(side, dtype) for side in zip(*block, strict=True)]
        for block in iter(lambda: list(islice(further, _BLOCK)), [])
    )
    together = EncodedPairs(*collect_lists(chain([(pairs.source, pairs.target)], blocks), 2, dtype))
    ends = len(pairs) + np.cumsum(counts)
    rows = [np.arange(end - count, end, dtype=np.int32) for end, count in zip(ends, counts, strict=True)]
    shown = [np.concatenate((part.rows, added)) for part, added in zip(parts, rows, strict=True)]
    return together, list(map(Part, shown, (part.tag for part in parts)))
