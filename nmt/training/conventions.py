"""Warnings before training if training and validation text are written by other conventions: tokenized or not, with which case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from nmt.data.columns import Column
from nmt.runtime.wording import excerpt
from nmt.training.text import TrainingText

_SAMPLE = 2000
"""Most lines of a text that are looked at."""
_FEWEST = 20
"""Lines from which on a share is worth comparing."""
_NOTABLE = 0.3
"""The difference of two shares from which on it is worth a warning."""
_WIDTH = 60
"""Most characters of an example."""
_SPACED = re.compile(r"(?<!\S)[.,،۔।](?!\S)")
_ATTACHED = re.compile(r"(?<=\w)[.,،۔।](?!\S)")


@dataclass(frozen=True)
class Convention:
    """A way to write.

    Attributes:
        description: what lines do that follow it.
        is_followed: whether a line follows it; None if it could neither follow nor break it.
        advice: what to do if only one of two texts follows it.
    """

    description: str
    is_followed: Callable[[str], bool | None]
    advice: str


def _is_tokenized(line: str) -> bool | None:
    if _SPACED.search(line):
        return True
    return False if _ATTACHED.search(line) else None


def _is_lowercased(line: str) -> bool | None:
    return line == line.lower() if line.lower() != line.upper() else None


def _begins_upper_case(line: str) -> bool | None:
    return next((char != char.lower() for char in line if char.lower() != char.upper()), None)


_ALIKE = "A model writes as its training text does: write both alike."
_TOKENIZATION = Convention(
    "have spaces before full stops and commas",
    _is_tokenized,
    "Detokenize it, since nmt learns tokens from plain text.",
)
_CASE = (
    Convention("have no upper-case letter", _is_lowercased, _ALIKE),
    Convention("begin with an upper-case letter", _begins_upper_case, _ALIKE),
)


@dataclass(frozen=True)
class Finding:
    """How many lines of a text follow a convention, of those that could.

    Attributes:
        share: their share.
        lines: number of lines that could follow it.
        examples: by whether they follow it, the number and the text of a line.
    """

    share: float
    lines: int
    examples: dict[bool, tuple[int, str]]

    @classmethod
    def of(cls, lines: list[tuple[int, str]], convention: Convention) -> Finding:
        """Look at numbered lines."""
        answers = [(number, line, convention.is_followed(line)) for number, line in lines]
        counts = {answer: sum(each is answer for _, _, each in answers) for answer in (True, False)}
        examples = {answer: (number, line) for number, line, answer in reversed(answers) if answer is not None}
        total = sum(counts.values())
        return cls(counts[True] / max(total, 1), total, examples)

    def example(self, *, follows: bool) -> str:
        """A line that follows the convention, or one that does not, in brackets."""
        number, line = self.examples[follows]
        return f"({'such as' if follows else 'unlike'} line {number:,}: {excerpt(line, _WIDTH)})"


def convention_warnings(text: TrainingText) -> Iterator[str]:
    """A sentence for each side and each convention that training and validation text of a pair of languages follow differently."""
    for languages, held_out in text.valid.directions.items():
        if languages not in text.train.directions:
            continue
        train, valid = text.train.directions[languages].untagged, held_out.untagged
        names = (train.name, valid.name) if len(text.valid.directions) > 1 else ("data.train", "data.valid")
        for language, *columns in zip(
            languages, (train.source, train.target), (valid.source, valid.target), strict=True
        ):
            samples = [_sampled(column) for column in columns]
            yield from _difference(samples, names, (_TOKENIZATION,), language)
            yield from _difference(samples, names, _CASE, language)


def _difference(
    samples: list[list[tuple[int, str]]], names: tuple[str, str], conventions: tuple[Convention, ...], language: str
) -> Iterator[str]:
    """A sentence on the first of the conventions that the texts follow differently, if there is one."""
    for convention in conventions:
        train, valid = (Finding.of(sample, convention) for sample in samples)
        if min(train.lines, valid.lines) >= _FEWEST and abs(train.share - valid.share) >= _NOTABLE:
            more = train.share > valid.share
            yield (
                f"Warning: {train.share:.0%} of the lines in {language} {convention.description} in {names[0]} "
                f"{train.example(follows=more)}, {valid.share:.0%} in {names[1]} {valid.example(follows=not more)}. {convention.advice}"
            )
            return


def _sampled(column: Column) -> list[tuple[int, str]]:
    """Lines with their numbers, in order."""
    rows = sorted(Random(1).sample(range(len(column)), min(len(column), _SAMPLE)))
    return [(row + 1, line) for row, line in zip(rows, column.take(rows), strict=True)]
