"""How `nmt translate` writes translations: text, a table or JSON, and word links."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Literal

from nmt.runtime.wording import counted

if TYPE_CHECKING:
    from nmt.alignment.links import Links
    from nmt.alignment.translation import Translation

logger = logging.getLogger(__name__)

OutputFormat = Literal["text", "tsv", "jsonl", "moses"]
MOSES_BARS = 3 * "&#124;"
"""How Moses writes `|||` where it is text."""
_NOTHING = "-inf", ""
"""Score and text of a missing translation in an n-best list."""


@dataclass(frozen=True)
class TranslationWriter:
    """Formats translations and their links."""

    form: OutputFormat
    n_best: int | None
    is_linked: bool
    """Whether word links are written."""

    def header(self) -> Iterator[bytes]:
        """The header of a table."""
        if self.form == "tsv":
            yield b"line\trank\tscore\tlog_probability\ttext\n"

    def links(self, translation: Translation, number: int) -> list[Links | None]:
        """The word links of each hypothesis of a line; None if it is too long, or if no alignments are written."""
        links: list[Links | None] = []
        for rank in range(len(translation.hypotheses)):
            is_aligned = self.is_linked and translation.is_aligned(rank)
            links.append(translation.word_links(rank) if is_aligned else None)
            if self.is_linked and not is_aligned:
                logger.warning("Line %d is too long for word links: it gets none.", number)
        return links

    def translations(self, translation: Translation, number: int, links: Sequence[Links | None]) -> Iterator[bytes]:
        """The output for one line of input, with its links."""
        lines: Iterable[str]
        match self.form:
            case "text":
                lines = self._text(translation, number)
            case "tsv":
                lines = [
                    f"{number}\t{rank}\t{hypothesis.score:.4f}\t{hypothesis.log_probability:.4f}\t{hypothesis.text}"
                    for rank, hypothesis in enumerate(translation.hypotheses, start=1)
                ]
            case "jsonl":
                lines = [self._json(translation, number, links)]
            case "moses":
                lines = [
                    moses_line([f"{number - 1}", ranked.text, "", f"{ranked.score:.4f}"], ranked.log_probability)
                    for ranked in translation.hypotheses
                ]
        for line in lines:
            yield line.encode("utf-8", "replace") + b"\n"

    def pharaoh(self, links: Sequence[Links | None]) -> Iterator[bytes]:
        """The links of each hypothesis as `i-j`; in the text format also empty lines for missing hypotheses."""
        from nmt.alignment.link_files import format_pharaoh

        missing = (self.n_best or 1) - len(links) if self.form == "text" else 0
        for links_of_hypothesis in [*links, *[None] * missing]:
            yield format_pharaoh(links_of_hypothesis or frozenset()).encode() + b"\n"

    def _text(self, translation: Translation, number: int) -> Iterator[str]:
        if self.n_best is None:
            yield translation.text
            return
        ranked = [(f"{hypothesis.score:.4f}", hypothesis.text) for hypothesis in translation.hypotheses]
        for score, text in islice(chain(ranked, repeat(_NOTHING)), self.n_best):
            yield f"{number}\t{score}\t{text}"

    def _json(self, translation: Translation, number: int, links: Sequence[Links | None]) -> str:
        hypotheses = [
            {
                "text": hypothesis.text,
                "score": _finite(hypothesis.score),
                "log_probability": _finite(hypothesis.log_probability),
                "finished": hypothesis.finished,
                "alignment": None if pairs is None else sorted(pairs),
            }
            for hypothesis, pairs in zip(translation.hypotheses, links, strict=True)
        ]
        return json.dumps({"line": number, "source": translation.source, "hypotheses": hypotheses}, ensure_ascii=False)


def moses_line(fields: Sequence[str], log_probability: float) -> str:
    """A line of an n-best list of Moses, with the feature of one more model: `nmt0` of the first one, `nmt1` of the second."""
    number, text, features, *score = fields
    count = len(re.findall(r"(?<!\S)nmt\d+=", features))
    features = f"{features} nmt{count}= {log_probability:.4f}".lstrip()
    return " ||| ".join([number, text.replace("|||", MOSES_BARS), features, *score])


def _finite(value: float) -> float | None:
    """A rounded number for JSON; None if it is not finite."""
    return round(value, 4) if math.isfinite(value) else None


def is_cut(translation: Translation) -> bool:
    """Whether a translation reached the length limit."""
    return bool(translation.text) and not translation.finished


def warn_of_cut(lines: int) -> None:
    """Say of how many lines the translations were cut."""
    message = (
        "The translations of %s reached the length limit (decoding.max_ratio): they are cut off, or repeat themselves."
    )
    if lines:
        logger.warning(message, counted(lines, "line"))


def show_alignment(translation: Translation, rank: int) -> None:
    """Print the words of a hypothesis with the source words that they are linked to: `der(the) Hund(dog)`."""
    if not (translation.is_aligned(rank) and translation.hypotheses[rank].text):
        return
    alignment, links = translation.word_alignment(rank), translation.word_links(rank)
    words = []
    for number, word in enumerate(alignment.target):
        sources = [alignment.source[source] for source, target in sorted(links) if target == number]
        words.append(f"{word}({' '.join(sources)})" if sources else word)
    print(f"  {' '.join(words)}")
