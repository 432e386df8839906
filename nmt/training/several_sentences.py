"""Warn if many training lines hold several sentences."""

from __future__ import annotations

from random import Random

from nmt.data.corpus import ParallelCorpus
from nmt.runtime.wording import excerpt
from nmt.text.languages import iso_code
from nmt.text.sentences import split_sentences

_SAMPLE = 500
"""Most lines that are looked at."""
_NOTABLE = 0.2
"""The share of lines with several sentences from which on a text is worth a warning."""
_WIDTH = 60
"""Most characters of the example."""


def several_sentences_warning(train: ParallelCorpus) -> str | None:
    """What to know of a training text of which many source lines hold several sentences; None if these are few."""
    source, language = train.untagged.source, iso_code(train.languages[0])
    rows = sorted(Random(1).sample(range(len(source)), min(len(source), _SAMPLE)))
    several = [row for row in rows if len(split_sentences(source[row], language)) > 1]
    if not several or len(several) < _NOTABLE * len(rows):
        return None
    example = f"such as line {several[0] + 1:,}: {excerpt(source[several[0]], _WIDTH)}"
    return (
        f"Warning: {len(several) / len(rows):.0%} of the lines of data.train hold several sentences ({example}). nmt serve and "
        "--split-sentences translate one at a time: cut the training text into single sentences too."
    )
