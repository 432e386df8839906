"""From what a model found, in pieces, to what people look at: alignments between words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.data.subwords import Subwords
    from nmt.decoding.translator import Translation
    from nmt.evaluation.alignment import Alignment


def word_alignment(found: Translation, bundle: Bundle, rank: int = 0) -> Alignment:
    """The alignment between whitespace-separated words of one hypothesis of a line, end marks left out."""
    from nmt.evaluation.alignment import Alignment, merge_to_words

    hypothesis = found.hypotheses[rank]
    source, source_word_of = _words(bundle.source, found.source_ids, marks=1)
    end_marks = len(hypothesis.alignment) - len(hypothesis.ids)
    target, target_word_of = _words(bundle.target, hypothesis.ids, marks=end_marks)
    size = len(target), len(source)
    weights = merge_to_words(hypothesis.alignment.numpy(), source_word_of, target_word_of, size=size)
    return Alignment(weights, source, target)


def _words(subwords: Subwords, ids: Sequence[int], *, marks: int) -> tuple[tuple[str, ...], list[int]]:
    """The words of a text, and the word of each of its pieces and end marks (-1 is none)."""
    words = tuple(subwords.decode(ids).split())
    return words, [*(subwords.word_of(ids) if words else [-1] * len(ids)), *[-1] * marks]
