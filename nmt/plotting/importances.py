"""Show the words that a classifier read: shaded text as a page, bars as a picture (after Yang et al. 2016, figures 5 and 6)."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from nmt.alignment.weights import Alignment
from nmt.errors import DataError, UsageError
from nmt.plotting.explorer import page_file, writable
from nmt.plotting.fonts import choose_families, label, text_width
from nmt.plotting.style import BLUE, FAINT, FORMATS, INK, file_format, house_style, save
from nmt.runtime.arguments import as_path, described
from nmt.runtime.files import write_content

_SMALLEST = 0.03  # smaller weights are drawn without their number
_LEGEND = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def plot_importances(
    texts: Alignment | Sequence[Alignment], path: str | Path, *, title: str = "What was read", dpi: float = 150
) -> None:
    """Show how much weight each word of a text has for a classifier.

    Each row of the weights is one reading of the text: an objective or a head. Its target word is the caption, so it may
    say what the text was classified as.

    A page has each text shaded once per reading, a word the darker the more weight it has, on one scale for all texts. A
    picture has the words of one text from top to bottom, with a column of bars per reading.

    Args:
        texts: the weights [readings, words] of one text or, for a page, of several.
        path: .html for a page; .png, .pdf or .svg for a picture.
        title: the heading of a page.
        dpi: dots per inch of a PNG.

    Raises:
        UsageError: the suffix is unknown, a picture has several texts, or the resolution is out of range.
        DataError: a text has no words or no readings, or the file cannot be written.
    """
    output = as_path(path, "The page or picture")
    listed = list(texts) if isinstance(texts, Sequence) else [texts]
    for text in listed:
        if not isinstance(text, Alignment):
            raise UsageError(f"What is drawn must be an Alignment, but is {described(text)}.")
    if not listed or not all(text.weights.size for text in listed):
        raise DataError("There is nothing to draw: a text needs at least one word and one reading.")
    if file_format(output, ("html", *FORMATS)) == "html":
        write_content(output, importances_page(listed, title))
    elif len(listed) > 1:
        raise UsageError(f"A picture shows one text, but there are {len(listed)}: write a .html.")
    else:
        families = choose_families([*map(label, listed[0].source + listed[0].target)])
        with house_style(families):
            save([_draw(listed[0], families)], output, dpi=dpi)


# --- bars ---------------------------------------------------------------------------------------------------------


def _draw(text: Alignment, families: Sequence[str]) -> Figure:
    """A row per word, and a column of bars per reading."""
    titles = [label(caption) for caption in text.target]
    panel = max(2.9, *(text_width(caption, 10, families) / 72 + 0.3 for caption in titles))
    size = 1 + len(titles) * panel, 0.6 + 0.21 * len(text.source)
    figure = Figure(figsize=size, layout="constrained")
    columns = figure.subplots(1, len(titles), squeeze=False, sharey=True)[0]
    for axes, caption, weights in zip(columns, titles, text.weights.tolist(), strict=True):
        bars = axes.barh(range(len(weights)), weights, color=BLUE, height=0.72)
        numbers = [f"{weight:.2f}" if weight >= _SMALLEST else "" for weight in weights]
        axes.bar_label(bars, numbers, padding=3, fontsize=7.5, color=INK)
        axes.set_title(caption, loc="left", fontsize=10)
        axes.set_xlim(0, 1.15 * max(float(text.weights.max()), _SMALLEST))  # room for the number at the longest bar
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.spines["left"].set_color(FAINT)
    columns[0].set_yticks(range(len(text.source)), [label(word) for word in text.source], fontsize=9)
    columns[0].set_ylim(len(text.source) - 0.5, -0.5)
    return figure


# --- shaded text --------------------------------------------------------------------------------------------------

_STYLE = """
body { display: block; margin: 0 auto; max-width: 52rem; padding: 1.25rem; }
h1 { font-size: 1.3rem; margin: 0 0 0.3rem; }
.legend, h2 { color: var(--faint); font-size: 0.9rem; font-weight: normal; margin: 0; }
.legend span { padding: 0.1rem 0.5rem; }
article { border-top: 1px solid var(--line); margin-top: 1rem; padding-top: 0.8rem; overflow-wrap: anywhere; }
p { margin: 0.2rem 0 0.9rem; line-height: 1.9; }
p span {
  color: var(--ink); padding: 0.15rem 0.25rem; border-radius: 4px;
  background: color-mix(in srgb, var(--accent) var(--shade), transparent);
}
/* The text color that is easier to read on a shade. */
.half { color: light-dark(var(--ink), var(--on-accent)); }
.strong { color: var(--on-accent); }
"""


def importances_page(texts: Sequence[Alignment], title: str) -> str:
    """The HTML of a page of shaded texts: one file, without scripts. It is deterministic."""
    legend = " ".join(_shaded(f"{weight:g}", weight) for weight in _LEGEND)
    return writable(f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{page_file("shared.css")}{_STYLE}</style>
</head>
<body>
<h1 dir="auto">{html.escape(title)}</h1>
<p class="legend">Weight of a word: {legend}</p>
{"".join(map(_article, texts))}</body>
</html>
""")


def _article(text: Alignment) -> str:
    """A caption and a shaded paragraph for each reading of a text; pointing at a word shows its weight."""
    article = ""
    for caption, weights in zip(text.target, text.weights.tolist(), strict=True):
        words = " ".join(_shaded(word, weight) for word, weight in zip(text.source, weights, strict=True))
        article += f'<h2 dir="auto">{html.escape(caption)}</h2>\n<p dir="auto">{words}</p>\n'
    return f"<article>\n{article}</article>\n"


def _shaded(word: str, weight: float) -> str:
    """A word with the square root of its weight as shade, so that the small weights of long texts can be told apart."""
    share = math.sqrt(min(weight, 1.0))
    ink = "strong" if share >= 0.75 else "half" if share >= 0.6 else "weak"
    return f'<span class="{ink}" style="--shade: {share:.0%}" title="{weight:.3f}">{html.escape(word)}</span>'
