"""A self-contained HTML page to explore the alignments of one or two models.

The page is assembled from the files in `nmt/plotting/page`. Its content security policy forbids all network access.
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
from typing import Any

import numpy as np

from nmt.alignment.links import GoldLinks, Links, check_within
from nmt.alignment.weights import Alignment
from nmt.errors import DataError

MOST_SENTENCES = 500
_STYLES = ("shared.css", "style.css")
_SCRIPTS = ("drawing.js", "placing.js", "pointing.js", "list.js", "script.js")
_SLOT = re.compile(r"\{\{(\w+)\}\}")
# In a script element only `<` and `&` can begin markup; older browsers read the two separators as line ends.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Reading:
    """The alignment of one sentence by one model.

    Attributes:
        words: the matrix between words.
        tokens: the matrix between tokens.
        links: hard links between words, (source, target).
        figures: any of `length` in words, `bleu`, `aer` as a fraction, mean `entropy` in nats, and `score`, the
            log-probability per token. Values that are not finite are left out.
    """

    words: Alignment
    tokens: Alignment
    links: Links = frozenset()
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Explored:
    """One sentence of the page.

    Attributes:
        number: its line number in the input, from 1.
        readings: one reading per model.
        reference: a reference translation; empty for none.
        gold: gold links between the words of every reading.
    """

    number: int
    readings: tuple[Reading, ...]
    reference: str = ""
    gold: GoldLinks | None = None


def explorer_page(
    sentences: Sequence[Explored],
    models: Sequence[str],
    *,
    title: str = "Alignments",
    languages: tuple[str, str] = ("", ""),
) -> str:
    """The HTML of the page. It is deterministic.

    Args:
        sentences: 1 to `MOST_SENTENCES` sentences.
        models: names of the one or two models, in the order of the readings.
        title: heading of the page.
        languages: language codes of source and target, for the browser's choice of fonts; empty if unknown.

    Raises:
        DataError: there are no sentences, or gold links lie outside one.
    """
    if not sentences:
        raise DataError("There are no sentences to explore: all lines are blank.")
    data = {
        "models": list(models),
        "languages": list(languages),
        "sentences": [_sentence(sentence) for sentence in sentences],
    }
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    style, script = ("\n".join(map(page_file, names)) for names in (_STYLES, _SCRIPTS))
    sources = f"style-src {digest_of(style)}; script-src {digest_of(script)}"
    slots = {
        "policy": f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'",
        "title": html.escape(title),
        "style": style,
        "script": script,
        "data": content.translate(_ESCAPES),
    }
    # All slots are filled at once, so that a slot's name in the corpus stays text.
    return writable(_SLOT.sub(lambda slot: slots[slot[1]], page_file("page.html")))


# --- what the page shows ----------------------------------------------------------------------------------------


def _sentence(sentence: Explored) -> dict[str, Any]:
    """A sentence as JSON. Raises DataError if gold links lie outside it."""
    gold = sentence.gold
    for words in (reading.words for reading in sentence.readings):
        if gold:
            check_within(gold.possible, len(words.source), len(words.target), f"Gold links, line {sentence.number}")
    return {
        "number": sentence.number,
        "reference": sentence.reference,
        "gold": gold and {"sure": sorted(gold.sure), "possible": sorted(gold.possible - gold.sure)},
        "readings": [_reading(reading) for reading in sentence.readings],
    }


def _reading(reading: Reading) -> dict[str, Any]:
    """A reading as JSON. The matrix between tokens is null if it equals that between words."""
    words, tokens = _units(reading.words), _units(reading.tokens)
    return {
        "words": words,
        "tokens": None if tokens == words else tokens,
        "links": sorted(reading.links),
        "figures": {key: round(float(value), 4) for key, value in reading.figures.items() if math.isfinite(value)},
    }


def _units(alignment: Alignment) -> dict[str, Any]:
    """A matrix with its words, the weights as integers in thousandths; only a weight of 0 is 0."""
    weights = np.maximum(np.rint(1000 * alignment.weights), alignment.weights > 0).astype(int).tolist()
    return {"source": list(alignment.source), "target": list(alignment.target), "weights": weights}


# --- the page ---------------------------------------------------------------------------------------------------


def digest_of(text: str) -> str:
    """What a content security policy calls a style or script that it allows."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def writable(page: str) -> str:
    """The page with `?` for lone surrogates, which cannot be written."""
    return page.encode("utf-8", "replace").decode()


def page_file(name: str) -> str:
    """The text of a file that pages are made of."""
    return (resources.files("nmt.plotting") / "page" / name).read_text(encoding="utf-8")
