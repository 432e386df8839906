"""One self-contained HTML page to explore alignments: ribbons and matrix, a list of sentences, one or two models.

The page is the files of `nmt/plotting/page` put together. It asks nothing of any network, which its own policy forbids.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from nmt.alignment.links import GoldLinks, Links, check_within
from nmt.alignment.weights import Alignment
from nmt.errors import DataError, UsageError
from nmt.wording import counted

SUFFIXES = (".html", ".htm")
MOST_SENTENCES = 500
FIGURES = ("length", "bleu", "aer", "entropy", "score")
_MOST_MODELS = 2
_SCRIPTS = ("drawing.js", "list.js", "script.js")
_SLOT = re.compile(r"\{\{(\w+)\}\}")
# In a script element only `<` and `&` can begin markup; the two separators once ended lines in scripts.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Reading:
    """How one model read one sentence.

    Attributes:
        words: the matrix between words.
        pieces: the matrix between subwords.
        links: hard links between words, (source, target).
        figures: any of `FIGURES`: length in words, BLEU, AER as a fraction, mean entropy in nats, log-probability a
            piece; one that is missing or not finite is left out.
    """

    words: Alignment
    pieces: Alignment
    links: Links = frozenset()
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Explored:
    """One sentence of the page.

    Attributes:
        number: its line in the input, counted from 1.
        readings: one for each model, one or two.
        reference: a known translation; empty for none.
        gold: links of annotators between the words of every reading.
    """

    number: int
    readings: tuple[Reading, ...]
    reference: str = ""
    gold: GoldLinks | None = None


def is_page(path: Path) -> bool:
    """Whether the suffix of a file asks for a page."""
    return path.suffix.lower() in SUFFIXES


def explorer_page(
    sentences: Sequence[Explored],
    models: Sequence[str],
    *,
    title: str = "Alignments",
    languages: tuple[str, str] = ("", ""),
) -> str:
    """The HTML of a page; the same input gives the same text.

    Args:
        sentences: what to show, 1 to `MOST_SENTENCES`.
        models: what the models are called, one name a reading.
        title: heading of the page.
        languages: codes of source and target, which help a browser to choose fonts and voices; empty for unknown.

    Raises:
        DataError: no sentences or too many, or gold links outside a sentence.
        UsageError: more than two models.
        ValueError: a sentence with another number of readings, or an unknown figure.
    """
    _check(sentences, models)
    data = {
        "models": list(models),
        "languages": list(languages),
        "sentences": [_sentence(sentence) for sentence in sentences],
    }
    return _fill(title, json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


# --- what the page shows ----------------------------------------------------------------------------------------


def _check(sentences: Sequence[Explored], models: Sequence[str]) -> None:
    if not sentences:
        raise DataError("There are no sentences to explore.")
    if len(sentences) > MOST_SENTENCES:
        raise DataError(
            f"A page holds at most {MOST_SENTENCES} sentences, but there are {len(sentences):,}: choose some."
        )
    if not 1 <= len(models) <= _MOST_MODELS:
        raise UsageError(f"A page shows one model or compares two, but was given {len(models)}.")
    for sentence in sentences:
        if len(sentence.readings) != len(models):
            raise ValueError(
                f"Sentence {sentence.number} has {counted(len(sentence.readings), 'reading')} of {counted(len(models), 'model')}."
            )
        for reading in sentence.readings:
            _check_reading(reading, sentence)


def _check_reading(reading: Reading, sentence: Explored) -> None:
    if unknown := set(reading.figures) - set(FIGURES):
        raise ValueError(f"There are no figures {sorted(unknown)}; known are {', '.join(FIGURES)}.")
    if sentence.gold:
        size = len(reading.words.source), len(reading.words.target)
        check_within(sentence.gold.possible, *size, f"Gold links, line {sentence.number}")


def _sentence(sentence: Explored) -> dict[str, Any]:
    gold = sentence.gold
    return {
        "number": sentence.number,
        "reference": sentence.reference,
        "gold": gold and {"sure": sorted(gold.sure), "possible": sorted(gold.possible - gold.sure)},
        "readings": [_reading(reading) for reading in sentence.readings],
    }


def _reading(reading: Reading) -> dict[str, Any]:
    """A reading; pieces that are the words are not repeated."""
    words, pieces = _units(reading.words), _units(reading.pieces)
    return {
        "words": words,
        "pieces": None if pieces == words else pieces,
        "links": sorted(reading.links),
        "figures": {key: round(float(value), 4) for key, value in reading.figures.items() if math.isfinite(value)},
    }


def _units(alignment: Alignment) -> dict[str, Any]:
    """A matrix with its words, the weights in thousandths: three digits are more than anyone can see."""
    weights = np.rint(1000 * alignment.weights).astype(int).tolist()
    return {"source": list(alignment.source), "target": list(alignment.target), "weights": weights}


# --- the page ---------------------------------------------------------------------------------------------------


def _fill(title: str, data: str) -> str:
    """The template with everything in its slots, put in at once so that a slot's name in the corpus stays text."""
    style, script = _read("style.css"), "\n".join(map(_read, _SCRIPTS))
    slots = {
        "policy": _policy(style, script),
        "title": html.escape(title),
        "style": style,
        "script": script,
        "data": data.translate(_ESCAPES),
    }
    page = _SLOT.sub(lambda slot: slots[slot[1]], _read("page.html"))
    return page.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written


def _policy(style: str, script: str) -> str:
    """Only this style and this script may run, and nothing may be fetched, whatever the corpus holds."""
    allowed = f"style-src {_digest(style)}; script-src {_digest(script)}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _read(name: str) -> str:
    return (resources.files("nmt.plotting") / "page" / name).read_text(encoding="utf-8")
