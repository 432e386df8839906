"""`nmt plot -o FILE.png|pdf|svg`: the alignment matrices of sentences."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from nmt.cli.plotting.request import Request
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.alignment.weights import Alignment
    from nmt.decoding.translation import Translation, TranslationHypothesis
    from nmt.decoding.translator import Translator
    from nmt.model_folder import Bundle
    from nmt.plotting.heatmap import Heatmap

MOST_PANELS = 25
"""Most matrices of a figure; in a PDF, which has one page per sentence, of a page."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PictureOptions:
    """The settings of a picture.

    Attributes:
        ranks: which translations of a sentence to draw, the best being 0.
        subwords: whether rows and columns are tokens rather than words.
        style: style of the heatmap.
        font: a font file for the words; None for the installed fonts.
        dpi: dots per inch of a PNG.
    """

    ranks: range
    subwords: bool
    style: Literal["color", "grey"]
    font: Path | None
    dpi: float


def write_picture(
    output: Path, request: Request, bundle: Bundle, translator: Translator, options: PictureOptions, *, quiet: bool
) -> None:
    """Align the sentences and draw their matrices: one page per sentence in a PDF, else all in one figure."""
    from nmt.plotting.heatmap import plot_heatmaps
    from nmt.plotting.style import file_format

    picture = _Picture(request, bundle, options)
    translations = enumerate(request.read(translator, "reading", quiet=quiet), start=1)
    pages = [page for number, translation in translations if (page := list(picture.panels(number, translation)))]
    if not pages:
        raise DataError("There is nothing to draw: all lines are blank, or their translations are.")
    if file_format(output) != "pdf":
        pages = [list(chain(*pages))]
    weights = "posterior weight" if request.posterior else "attention weight"
    plot_heatmaps(pages, output, weights=weights, style=options.style, font=options.font, dpi=options.dpi)
    if not quiet:
        for panel in chain(*pages):
            typer.echo(" ".join(panel.alignment.target), err=True)


@dataclass(frozen=True)
class _Picture:
    """Makes the panels of a picture from translations."""

    request: Request
    bundle: Bundle
    options: PictureOptions

    def panels(self, number: int, translation: Translation) -> Iterator[Heatmap]:
        """The panels of the sentence in line `number`. An empty one is an error only if it is the only sentence."""
        from nmt.alignment.hypothesis_alignment import word_alignment

        is_only, ranks, count = len(self.request.sources) == 1, self.options.ranks, len(translation.hypotheses)
        if not translation.source_ids:
            if is_only:
                raise DataError("The sentence to plot is empty.")
            return
        if count <= ranks.start:
            raise DataError(
                f"Line {number} has no translation number {ranks.stop}: the search ended with {count}. "
                "Choose a lower one, or a larger --beam-size."
            )
        for rank in ranks[: count - ranks.start]:
            words = word_alignment(translation, self.bundle, rank)
            if words.weights.size or is_only:
                yield self._panel(number, translation, rank, words)
            else:
                _log.warning("Line %d is left out: its translation is empty.", number)

    def _panel(self, number: int, translation: Translation, rank: int, words: Alignment) -> Heatmap:
        """A matrix with its gold links and the centres of its window."""
        from nmt.alignment.centers import token_centers, word_centers
        from nmt.alignment.hypothesis_alignment import links_between_tokens, token_alignment
        from nmt.alignment.links import check_within
        from nmt.plotting.heatmap import Heatmap

        gold = self.request.gold[number - 1] if self.request.gold else None
        if gold:
            check_within(gold.possible, len(words.source), len(words.target), f"Gold links, line {number}")
        title = self._title(number, translation.hypotheses[rank], rank, words)
        if not self.options.subwords:
            return Heatmap(words, title, gold, word_centers(translation, self.bundle, rank))
        tokens, links = token_alignment(translation, self.bundle, rank), gold
        if gold:
            links = links_between_tokens(gold, translation, self.bundle, rank)
        return Heatmap(tokens, title, links, token_centers(translation, self.bundle, rank))

    def _title(self, number: int, hypothesis: TranslationHypothesis, rank: int, words: Alignment) -> str:
        """The title of a panel: line, rank and score, and BLEU and AER if they are known."""
        request, parts = self.request, []
        if len(request.sources) > 1:
            parts.append(f"line {number}")
        if self.options.ranks.stop > 1:
            parts.append(f"translation {rank + 1}, score {hypothesis.score:.2f}".replace("-", "−"))
        if (bleu := request.bleu(number - 1, hypothesis.text, self.bundle)) is not None:
            parts.append(f"BLEU {bleu:.1f}")
        if (aer := request.error_rate(number - 1, words, self.bundle)) is not None:
            parts.append(f"AER {100 * aer:.1f}%")
        return " · ".join(parts)
