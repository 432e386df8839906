"""Align sentence pairs by forced decoding, as a stream: one result per pair, in order."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, tee

import numpy as np
from numpy.typing import ArrayLike

from nmt.alignment.extraction import AlignedPair, Extraction
from nmt.alignment.statistical.aligner import HMMAligner
from nmt.alignment.translation import Translation
from nmt.alignment.weights import Alignment
from nmt.bundle.folder import Bundle
from nmt.decoding.translator import Translator
from nmt.runtime.wording import counted

logger = logging.getLogger(__name__)

Pair = tuple[str, str]

LONGEST = 500
"""Most tokens per side of a pair that gets links."""
_MAX_WARNINGS = 10
"""Most lines without links to warn of one by one."""


@dataclass(frozen=True)
class ForcedAligner:
    """Aligns pairs of lines by forced decoding with one model, whose translator it has."""

    bundle: Bundle
    translator: Translator

    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        """The alignment of each pair."""
        return map(Translation.word_alignment, self.translator.stream_scores(pairs))

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
    longest: int = LONGEST,
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
    # Both translators read ahead by the same window, so tee holds no more than one window of pairs.
    streams = iter(tee(readable, len([reader for reader in (forward, backward, aligner) if reader is not None])))
    alignments = forward.align(next(streams))
    reverses: Iterable[Alignment | None] = repeat(None)
    if backward is not None:
        reverses = backward.align((target, source) for source, target in next(streams))
    confidences: Iterable[ArrayLike | None] = repeat(None)
    if aligner is not None:
        confidences = (next(aligner.weights([pair])) for pair in next(streams))
    for number, (alignment, reverse, confidence) in enumerate(zip(alignments, reverses, confidences, strict=False), 1):
        shape = alignment.weights.shape
        if reverse is not None and reverse.weights.T.shape != shape:
            logger.warning(
                "Line %d: the two models split it into different words, so only the first model is used.", number
            )
            reverse = None
        if confidence is not None and np.shape(confidence) != shape:
            logger.warning("Line %d: the aligner splits it into other words than the model, so it is not used.", number)
            confidence = None
        yield extraction.pair(alignment, reverse, confidence)


def _readable(pairs: Iterable[Pair], aligners: Sequence[ForcedAligner], longest: int) -> Iterator[Pair]:
    """Replace pairs that are too long by blank ones, and warn of every pair that can have no links."""
    forward, *backward = aligners
    normalize = forward.bundle.normalizer
    unlinked = 0
    for number, (source, target) in enumerate(pairs, start=1):
        length = max([forward.length(source, target), *(aligner.length(target, source) for aligner in backward)])
        problem = None
        if length > longest:
            problem = f"has {counted(length, 'token')}, more than {longest:,}"
            source = target = ""
        elif not (normalize(source) and normalize(target)):
            problem = "has a blank side"
        if problem is not None:
            unlinked += 1
            if unlinked <= _MAX_WARNINGS:
                logger.warning("Line %d %s: it gets no links.", number, problem)
        yield source, target
    if unlinked > _MAX_WARNINGS:
        logger.warning("%d lines in all get no links.", unlinked)
