"""Pairs of lines in, their alignments and links out, one for each, in order, a window of pairs at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, tee
from typing import TYPE_CHECKING, Literal

from nmt.alignment.extraction import AlignedPair, Extraction
from nmt.alignment.hypothesis_alignment import piece_alignment, word_alignment
from nmt.alignment.weights import Alignment
from nmt.decoding.lines import clean, has_tokens_as_words
from nmt.wording import counted

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator
    from nmt.model_folder import Bundle

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
Level = Literal["words", "pieces"]

_NAMED = 10
"""Lines without links that are warned of one by one."""


@dataclass(frozen=True)
class ForcedAligner:
    """Aligns pairs of lines by forced decoding with one model.

    Attributes:
        bundle: the model.
        translator: decodes with it.
        level: what rows and columns stand for.
        shift: the row of each step is taken for that of the target piece so many places further on. 0 fits the models of
            this toolkit, whatever their order; -1 one whose rows belong to the word just fed (Luong et al. 2015, footnote
            14).
    """

    bundle: Bundle
    translator: Translator
    level: Level = "words"
    shift: int = 0

    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        """The alignment of each pair, by forced decoding."""
        matrix = word_alignment if self.level == "words" else piece_alignment
        for found in self.translator.score(pairs):
            yield matrix(found, self.bundle, shift=self.shift)

    def length(self, source: str, target: str) -> int:
        """Pieces of the longer side."""
        return max(len(self.bundle.source.encode(clean(source))), len(self.bundle.target.encode(clean(target))))


def align_pairs(
    pairs: Iterable[Pair],
    forward: ForcedAligner,
    backward: ForcedAligner | None = None,
    *,
    extraction: Extraction,
    longest: int,
) -> Iterator[AlignedPair]:
    """The alignment and links of each pair, in their order, holding at most a window of them.

    A pair with a blank side has no links, and one with a side of more than `longest` pieces not even words; a warning
    names its line.

    Args:
        pairs: source and target lines.
        forward: reads the source and writes the target.
        backward: a model of the other direction, whose links or weights join those of the first. Where it sees another
            number of words, the first is alone, and a warning names the line.
        extraction: how links are read off.
        longest: most pieces of a side, since a matrix grows with the product of both.
    """
    readable = _readable(pairs, [forward] if backward is None else [forward, backward], longest)
    # The two translators read ahead by the same window, so that between them no more than a window waits.
    ahead, behind = tee(_noted(readable, forward)) if backward else (_noted(readable, forward), iter(()))
    backwards: Iterable[Alignment | None] = repeat(None)
    if backward is not None:
        backwards = backward.align((target, source) for source, target in behind)
    for number, (alignment, reverse) in enumerate(zip(forward.align(ahead), backwards, strict=False), start=1):
        yield extraction.pair(alignment, _same_words(alignment, reverse, number))


def _readable(pairs: Iterable[Pair], aligners: Sequence[ForcedAligner], longest: int) -> Iterator[Pair]:
    """The pairs, with nothing in the place of those that are too long; warns of all that can have no links."""
    bad = 0
    for number, pair in enumerate(pairs, start=1):
        length = _longest_side(pair, aligners)
        problem = f"has {counted(length, 'token')}, more than {longest:,}" if length > longest else _blank_side(pair)
        yield pair if length <= longest else ("", "")
        bad += problem is not None
        if problem is not None and bad <= _NAMED:
            logger.warning("Line %d %s: it gets no links.", number, problem)
    if bad > _NAMED:
        logger.warning("%d lines in all get no links.", bad)


def _noted(pairs: Iterable[Pair], aligner: ForcedAligner) -> Iterator[Pair]:
    """The pairs; says once of each side whose words are pieces that they are."""
    sides = {"source": aligner.bundle.source, "target": aligner.bundle.target} if aligner.level == "words" else {}
    for pair in pairs:
        for name, line in zip(("source", "target"), pair, strict=True):
            if name in sides and has_tokens_as_words(sides[name], line):
                logger.warning("The %s is written without spaces: its words are the model's pieces.", name)
                del sides[name]
        yield pair


def _same_words(forward: Alignment, backward: Alignment | None, number: int) -> Alignment | None:
    """The alignment of the other direction, if it is between as many words: its links are between the same ones then."""
    if backward is None or backward.weights.shape == forward.weights.T.shape:
        return backward
    logger.warning("Line %d: the two models see other words in it, so only the first one's links are taken.", number)
    return None


def _longest_side(pair: Pair, aligners: Sequence[ForcedAligner]) -> int:
    forward, *backward = aligners
    return max(forward.length(*pair), *(aligner.length(pair[1], pair[0]) for aligner in backward), 0)


def _blank_side(pair: Pair) -> str | None:
    blank = [side for side, line in zip(("source", "target"), pair, strict=True) if not clean(line)]
    return f"is blank in the {' and in the '.join(blank)}" if blank else None
