"""From what a model found, in pieces, to what people look at: alignments between words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.decoding.translator import Translation
    from nmt.evaluation.alignment import Alignment


def word_alignment(found: Translation, bundle: Bundle, rank: int = 0) -> Alignment:
    """The alignment between whitespace-separated words of one hypothesis of a line, end marks left out."""
    from nmt.evaluation.alignment import Alignment, merge_to_words

    hypothesis = found.hypotheses[rank]
    source = bundle.source.decode(found.source_ids).split()
    target = bundle.target.decode(hypothesis.ids).split()
    weights = merge_to_words(
        hypothesis.alignment.numpy(),
        [*bundle.source.word_of(found.source_ids), -1],
        [*bundle.target.word_of(hypothesis.ids), *([-1] * (len(hypothesis.alignment) - len(hypothesis.ids)))],
        size=(len(target), len(source)),
    )
    return Alignment(weights, tuple(source), tuple(target))
