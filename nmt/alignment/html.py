"""Alignments as fragments of HTML, which notebooks show: no scripts, legible on light and on dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

_MOST_WORDS = 60
"""Words of a side beyond which the matrix is left out."""
_LEAST_WEIGHT = 0.005
"""The least weight that is shown as a number: smaller ones would be 0.00."""
_TABLE = "color:inherit;border-collapse:collapse;margin:0.5em 0;font-size:90%"
_CELL = "min-width:2.2em;padding:0.15em 0.3em;text-align:center;border:1px solid rgba(128,128,128,.3)"
_COLUMN = "vertical-align:bottom;padding:0.15em 0.3em;text-align:center;font-weight:normal"
_ROW = "padding:0.15em 0.6em 0.15em 0;text-align:right;font-weight:normal"


def as_html(source: str, hypotheses: Sequence[tuple[str, float]], matrix: str) -> str:
    """A line, its translations with their scores, and the alignment matrix of the best one."""
    best, *others = hypotheses
    parts = [
        "<div>",
        f'<div style="opacity:.75" dir="auto">{escape(source)}</div>',
        f'<div dir="auto"><strong>{escape(best[0])}</strong> <small style="opacity:.75">{_score(best[1])}</small></div>',
    ]
    if others:
        items = "".join(
            f'<li dir="auto" value="{rank}">{escape(text)} <small style="opacity:.75">{_score(score)}</small></li>'
            for rank, (text, score) in enumerate(others, start=2)
        )
        parts.append(f'<ol start="2" style="margin:0.25em 0">{items}</ol>')
    return "".join([*parts, matrix, "</div>"])


def matrix_html(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> str:
    """A table of the weights: source words on top, target words on the left. Empty without words, or with very many."""
    targets, sources = weights.shape
    if not 0 < min(targets, sources) <= max(targets, sources) <= _MOST_WORDS:
        return ""
    head = "".join(f'<th scope="col" style="{_COLUMN}">{escape(word)}</th>' for word in source)
    rows = ""
    for word, row in zip(target, weights.tolist(), strict=True):
        rows += f'<tr><th scope="row" style="{_ROW}">{escape(word)}</th>'
        for weight in row:  # the blue is half transparent, so that text in the page's color stays legible on it
            number = f"{weight:.2f}" if weight >= _LEAST_WEIGHT else ""
            rows += f'<td style="{_CELL};background:rgba(70,130,200,{0.8 * min(weight, 1):.2f})">{number}</td>'
        rows += "</tr>"
    caption = '<caption style="caption-side:bottom;text-align:left;opacity:.75">Weight of each source word for each target word</caption>'
    return f'<table style="{_TABLE}">{caption}<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _score(score: float) -> str:
    return f"score {score:.3f}"
