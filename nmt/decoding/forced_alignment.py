"""Align sentence pairs by forced decoding, as a stream: one result per pair, in order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, tee
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from nmt.alignment.extraction import AlignedPair, Extraction
from nmt.alignment.statistical.aligner import HMMAligner
from nmt.alignment.translation import Translation
from nmt.alignment.weights import Alignment
from nmt.bundle.folder import Bundle
from nmt.decoding.translator import Translator
from nmt.runtime.wording import counted
from nmt.text.words import has_tokens_as_words

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
Level = Literal["words", "tokens"]

_MAX_WARNINGS = 10
"""Most lines without links to warn of one by one."""


@dataclass(frozen=True)
class ForcedAligner:
    """Aligns pairs of lines by forced decoding with one model.

    Attributes:
        bundle: the model.
        translator: a translator with this model.
        level: whether rows and columns are words or subword tokens.
        shift: number of target tokens to move each row down by. 0 is right for the models of this toolkit; -1 for a model
            whose row t belongs to the word that step t reads (Luong et al. 2015, footnote 14).
    """

    bundle: Bundle
    translator: Translator
    level: Level = "words"
    shift: int = 0

    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        """The alignment of each pair."""
        alignment_of = Translation.word_alignment if self.level == "words" else Translation.token_alignment
        for translation in self.translator.stream_scores(pairs):
            yield alignment_of(translation, shift=self.shift)

    def length(self, source: str, target: str) -> int:
        """Number of tokens of the longer side."""
        normalize = self.bundle.normalizer
        return max(len(self.bundle.source.encode(normalize(source))), len(self.bundle.target.encode(normalize(target))))


def align_pairs(
    pairs: Iterable[Pair],
    forward: ForcedAligner,
    backward: ForcedAligner | None = None,
    *,
    extraction: Extraction,
    longest: int,
    aligner: HMMAligner | None = None,
) -> Iterator[AlignedPair]:
    """The alignment and links of each pair, in order. At most one window of pairs is in memory.

    A pair with a blank side has no links. A pair with a side of more than `longest` tokens has neither links nor words. A
    warning names either's line.

    Args:
        pairs: source and target lines.
        forward: a model of the direction source to target.
        backward: a model of the other direction, to symmetrize with. Where it splits a pair into another number of words,
            the forward model is used alone, and a warning names the line.
        extraction: how to extract links from weights.
        longest: most tokens per side, since a matrix grows with the product of both.
        aligner: a word aligner to average the weights with. Where it splits a pair into another number of words, the models are
            used alone, and a warning names the line.
    """
    readable = _readable(pairs, [forward] if backward is None else [forward, backward], longest)
    readable = _warn_of_token_words(readable, forward)
    # Both translators read ahead by the same window, so tee holds no more than one window of pairs.
    streams = iter(tee(readable, 1 + (backward is not None) + (aligner is not None)))
    forward_pairs = next(streams)
    backward_alignments: Iterable[Alignment | None] = repeat(None)
    if backward is not None:
        backward_alignments = backward.align(pair[::-1] for pair in next(streams))
    confidences: Iterable[ArrayLike | None] = repeat(None)
    if aligner is not None:
        confidences = (next(aligner.weights([pair])) for pair in next(streams))
    alignments = zip(forward.align(forward_pairs), backward_alignments, confidences, strict=False)
    for number, (alignment, reverse, by_aligner) in enumerate(alignments, start=1):
        yield extraction.pair(
            alignment,
            _if_same_words(alignment, reverse, number),
            _if_same_shape(alignment, by_aligner, number),
        )


def _readable(pairs: Iterable[Pair], aligners: Sequence[ForcedAligner], longest: int) -> Iterator[Pair]:
    """Replace pairs that are too long by blank ones. Warn of every pair that can have no links."""
    unlinked = 0
    for number, pair in enumerate(pairs, start=1):
        length = _tokens_of_longest_side(pair, aligners)
        too_long = f"has {counted(length, 'token')}, more than {longest:,}" if length > longest else None
        problem = too_long or _blank_problem(pair, aligners[0].bundle.normalizer)
        yield pair if length <= longest else ("", "")
        unlinked += problem is not None
        if problem is not None and unlinked <= _MAX_WARNINGS:
            logger.warning("Line %d %s: it gets no links.", number, problem)
    if unlinked > _MAX_WARNINGS:
        logger.warning("%d lines in all get no links.", unlinked)


def _warn_of_token_words(pairs: Iterable[Pair], aligner: ForcedAligner) -> Iterator[Pair]:
    """Pass on the pairs. Warn once per side that is written without spaces."""
    sides = {"source": aligner.bundle.source, "target": aligner.bundle.target} if aligner.level == "words" else {}
    for pair in pairs:
        for name, line in zip(("source", "target"), pair, strict=True):
            if name in sides and has_tokens_as_words(sides[name], line):
                logger.warning("The %s is written without spaces: its words are the model's tokens.", name)
                del sides[name]
        yield pair


def _if_same_words(forward: Alignment, backward: Alignment | None, number: int) -> Alignment | None:
    """The backward alignment if it has the same number of words on both sides, and so presumably the same words."""
    if backward is None or backward.weights.shape == forward.weights.T.shape:
        return backward
    logger.warning("Line %d: the two models split it into different words, so only the first model is used.", number)
    return None


def _if_same_shape(alignment: Alignment, confidences: ArrayLike | None, number: int) -> ArrayLike | None:
    """The confidences of a word aligner if it has the same number of words on both sides."""
    if confidences is None or np.shape(confidences) == alignment.weights.shape:
        return confidences
    logger.warning("Line %d: the aligner splits it into other words than the model, so it is not used.", number)
    return None


def _tokens_of_longest_side(pair: Pair, aligners: Sequence[ForcedAligner]) -> int:
    forward, *backward = aligners
    return max(forward.length(*pair), *(aligner.length(pair[1], pair[0]) for aligner in backward), 0)


def _blank_problem(pair: Pair, normalize: Callable[[str], str]) -> str | None:
    blank = [side for side, line in zip(("source", "target"), pair, strict=True) if not normalize(line)]
    return f"is blank in the {' and in the '.join(blank)}" if blank else None
