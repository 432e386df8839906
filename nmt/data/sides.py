"""Whether the sides of a corpus are swapped, as far as their text shows for certain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.data.rules import identifier, is_foreign, scripts_of
from nmt.errors import DataError, UsageError
from nmt.text.languages import base_language

if TYPE_CHECKING:
    from nmt.data.columns import Column
    from nmt.data.corpus import ParallelCorpus

_SAMPLE = 300
"""Lines of a side that are read, from all of it."""
_FEWEST, _FEWEST_IDENTIFIED = 10, 100
"""Lines that a corpus must have for certainty about scripts, and about languages."""
_PART = 30
"""Lines that are identified together: of single ones, some are taken for other languages."""
_CLEAR = 0.9
"""The share of parts that must be in a language for certainty."""


def refuse_swapped_scripts(corpus: ParallelCorpus) -> None:
    """Raise DataError if each side is written in the script of the other's language, such as Japanese on the English side."""
    scripts = [scripts_of(code) for code in map(base_language, corpus.languages)]
    if len(corpus) < _FEWEST or not all(scripts) or set(scripts[0]) & set(scripts[1]):
        return
    texts = ["".join(_sample(side)) for side in (corpus.source, corpus.target)]
    if all(
        is_foreign(text, declared) and not is_foreign(text, opposite)
        for text, declared, opposite in zip(texts, scripts, reversed(scripts), strict=True)
    ):
        raise _swapped(corpus)


def refuse_swapped_languages(corpus: ParallelCorpus) -> None:
    """Raise DataError if py3langid, where it is installed, takes the text of each side for the other's language."""
    source, target = map(base_language, corpus.languages)
    if len(corpus) < _FEWEST_IDENTIFIED or source == target:
        return
    try:
        classify = identifier().classify
    except UsageError:  # py3langid is not installed
        return
    for side, opposite in ((corpus.source, target), (corpus.target, source)):
        lines = _sample(side)
        parts = [" ".join(lines[start : start + _PART]) for start in range(0, len(lines), _PART)]
        if sum(classify(part)[0] == opposite for part in parts) < _CLEAR * len(parts):
            return
    raise _swapped(corpus)


def _sample(side: Column) -> Sequence[str]:
    """Lines from all of a side."""
    return [side[row] for row in range(0, len(side), max(len(side) // _SAMPLE, 1))][:_SAMPLE]


def _swapped(corpus: ParallelCorpus) -> DataError:
    source, target = corpus.languages
    return DataError(
        f"The sides of {corpus.name} are swapped: its {source} side is in {target}, and its {target} side in {source}. "
        "Swap the names of its files or columns, or data.source and data.target."
    )
