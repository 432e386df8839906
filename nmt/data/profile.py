"""What a parallel corpus is like, for the settings that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np

from nmt.data.columns import Column
from nmt.data.corpus import ParallelCorpus
from nmt.recipe import SideProfile, TextProfile
from nmt.text.scripts import Split, split_spaces, splitter

SAMPLE = 200_000
"""Most pairs that are read, from all of the corpus. The counts are those of the whole in proportion."""


def profile_text(train: ParallelCorpus, valid: ParallelCorpus) -> TextProfile:
    """What a training text is like, duplicates not counted, beside its validation text."""
    train, valid = train.untagged, valid.untagged
    rows = range(0, len(train), max(-(-len(train) // SAMPLE), 1))
    pairs = dict.fromkeys((train.source[row], train.target[row]) for row in rows)
    share = len(train) / len(rows)
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    sides = [_Side(lines, splitter(lines)) for lines in (sources, targets)]
    lengths = np.max([list(map(len, side.split_lines)) for side in sides], axis=0)
    return TextProfile(
        pairs=round(len(pairs) * share),
        duplicates=round((len(rows) - len(pairs)) * share),
        source=sides[0].profile(valid.source, share),
        target=sides[1].profile(valid.target, share),
        types=len(sides[0].words.keys() | sides[1].words.keys()),
        alphabet=len(sides[0].characters.keys() | sides[1].characters.keys()),
        shared_letters=_shared_letters(sides[0].characters, sides[1].characters),
        valid_length=sum(len(sides[1].split(line)) for line in valid.target[:SAMPLE]) / len(valid),
        longest=int(np.quantile(lengths, 0.99)),
    )


class _Side:
    """The words and characters of one side."""

    def __init__(self, lines: Sequence[str], split: Split) -> None:
        self.split = split
        self.split_lines = list(map(split, lines))
        self.words = Counter(chain.from_iterable(self.split_lines))
        self.characters = Counter(chain.from_iterable(lines))

    def profile(self, valid: Column, share: float) -> SideProfile:
        """Its profile, beside the text for validation, with counts in proportion."""
        held_out = [word for line in valid[:SAMPLE] for word in self.split(line)]
        return SideProfile(
            words=round(self.words.total() * share),
            types=len(self.words),
            characters=round(self.characters.total() * share),
            alphabet=len(self.characters),
            is_spaced=self.split is split_spaces,
            unseen=sum(word not in self.words for word in held_out) / max(len(held_out), 1),
        )


def _shared_letters(source: Counter[str], target: Counter[str]) -> float:
    """The share of the letters of the target side that the source side uses too."""
    letters = {letter: count for letter, count in target.items() if letter.isalpha()}
    return sum(count for letter, count in letters.items() if letter in source) / max(sum(letters.values()), 1)
