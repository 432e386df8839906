"""What a parallel corpus is like, for the settings that follow from it."""

from __future__ import annotations

import bz2
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from nmt.data.corpus import ParallelCorpus
from nmt.recipe import SideProfile, TextProfile
from nmt.text.scripts import split_spaces, splitter

SAMPLE = 200_000
"""Most pairs that are read, from all of the corpus. The counts are those of the whole in proportion."""

COMPRESSED = 20_000
"""Most lines that are compressed, to tell how much a character says."""


def profile_text(train: ParallelCorpus, valid: ParallelCorpus) -> TextProfile:
    """What a training text is like, duplicates not counted, beside its validation text."""
    tokens = {" ", *chain.from_iterable(train.tags)}  # a word mark and tags need room too
    train, valid = train.untagged, valid.untagged
    rows = range(0, len(train), max(-(-len(train) // SAMPLE), 1))
    pairs = dict.fromkeys((train.source[row], train.target[row]) for row in rows)
    share = len(train) / len(rows)
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    sides = [_Side(*texts) for texts in ((sources, valid.source[:SAMPLE]), (targets, valid.target[:SAMPLE]))]
    lengths = np.max([list(map(len, side.split_lines)) for side in sides], axis=0)
    return TextProfile(
        pairs=round(len(pairs) * share),
        duplicates=round((len(rows) - len(pairs)) * share),
        source=sides[0].profile(share, tokens),
        target=sides[1].profile(share, tokens),
        types=len(sides[0].words.keys() | sides[1].words.keys()),
        alphabet=len(tokens | sides[0].characters.keys() | sides[1].characters.keys()),
        shared_letters=sum(min(part, sides[1].letters.get(letter, 0)) for letter, part in sides[0].letters.items()),
        valid_length=len(sides[1].held_out) / min(len(valid), SAMPLE),
        longest=int(np.quantile(lengths, 0.99)),
    )


class _Side:
    """The words and characters of one side, and the words of its validation text."""

    def __init__(self, lines: Sequence[str], held_out: Sequence[str]) -> None:
        split = splitter(lines)
        self.is_spaced = split is split_spaces
        self.beginning = "\n".join(lines[:COMPRESSED])
        self.split_lines = list(map(split, lines))
        self.words = Counter(chain.from_iterable(self.split_lines))
        self.characters = Counter(chain.from_iterable(lines))
        self.held_out = list(chain.from_iterable(map(split, held_out)))

    @cached_property
    def letters(self) -> dict[str, float]:
        """Its letters with their share of them all."""
        counts = {letter: count for letter, count in self.characters.items() if letter.isalpha()}
        total = sum(counts.values())
        return {letter: count / total for letter, count in counts.items()}

    @property
    def bits(self) -> float:
        """Bits per character of the compressed text."""
        return 8 * len(bz2.compress(self.beginning.encode())) / max(len(self.beginning), 1)

    def profile(self, share: float, tokens: Collection[str]) -> SideProfile:
        """Its profile, with counts in proportion to the share that was read, and with some tokens in the alphabet."""
        return SideProfile(
            words=round(self.words.total() * share),
            types=len(self.words),
            characters=round(self.characters.total() * share),
            alphabet=len(self.characters.keys() | tokens),
            bits=self.bits,
            is_spaced=self.is_spaced,
            unseen=sum(word not in self.words for word in self.held_out) / max(len(self.held_out), 1),
        )
