"""`nmt plot -o FILE.png|pdf|svg`: the alignment matrices of sentences."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from nmt.cli.plotting.request import Request
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.alignment.translation import Translation
    from nmt.alignment.weights import Alignment
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator
    from nmt.plotting.heatmap import Heatmap

MOST_PANELS = 25
"""Most matrices of a figure; in a PDF, which has one page per sentence, of a page."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _View:
    """A sentence with its translations and the alignment that one attention of a model gives them."""

    name: str
    """Which attention; empty for the recipe's."""
    bundle: Bundle
    translation: Translation


@dataclass(frozen=True)
class Picture:
    """The matrices of sentences and their translations.

    Attributes:
        request: the sentences.
        ranks: which translations of a sentence to draw, the best being 0.
        subwords: whether rows and columns are tokens rather than words.
        style, font, dpi: as in `plot_heatmaps`.
    """

    request: Request
    ranks: range
    subwords: bool
    style: Literal["color", "gray"]
    font: Path | None
    dpi: float

    def write(self, output: Path, readers: Iterable[tuple[str, Bundle, Translator]], *, quiet: bool) -> None:
        """Align the sentences and draw their matrices: one page per sentence in a PDF, else all in one figure.

        Each reader, with the name of the attention that it shows, draws every translation; their translations are the same.
        """
        from nmt.plotting.heatmap import plot_heatmaps
        from nmt.plotting.style import file_format

        columns = [
            [_View(name, bundle, item) for item in self.request.read(translator, name or "reading", quiet=quiet)]
            for name, bundle, translator in readers
        ]
        rows = enumerate(zip(*columns, strict=True), start=1)
        pages = [page for number, views in rows if (page := list(self._panels(number, views)))]
        if not pages:
            raise DataError("There is nothing to draw: all lines are blank, or their translations are.")
        if file_format(output) != "pdf":
            pages = [list(chain(*pages))]
        weights = "posterior weight" if self.request.posterior else "attention weight"
        plot_heatmaps(pages, output, weights=weights, style=self.style, font=self.font, dpi=self.dpi)
        if not quiet:
            for panel in islice(chain(*pages), None, None, len(columns)):
                typer.echo(" ".join(panel.alignment.target), err=True)

    def _panels(self, number: int, views: Sequence[_View]) -> Iterator[Heatmap]:
        """The panels of the sentence in line `number`. An empty one is an error only if it is the only sentence."""
        translation = views[0].translation
        is_only, ranks, count = len(self.request.sources) == 1, self.ranks, len(translation.hypotheses)
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
            words = [view.translation.word_alignment(rank) for view in views]
            if words[0].weights.size or is_only:
                yield from (self._panel(number, view, rank, own) for view, own in zip(views, words, strict=True))
            else:
                _log.warning("Line %d is left out: its translation is empty.", number)

    def _panel(self, number: int, view: _View, rank: int, words: Alignment) -> Heatmap:
        """A matrix with its gold links and the centers of its window."""
        from nmt.alignment.centers import token_centers, word_centers
        from nmt.alignment.links import check_within
        from nmt.plotting.heatmap import Heatmap

        translation, model = view.translation, view.bundle.model
        gold = self.request.gold[number - 1] if self.request.gold else None
        if gold:
            check_within(gold.possible, len(words.source), len(words.target), f"Gold links, line {number}")
        title = self._title(number, view, rank)
        if not self.subwords:
            return Heatmap(words, title, gold, word_centers(translation, model, rank))
        links = gold and translation.gold_between_tokens(gold, rank)
        return Heatmap(translation.token_alignment(rank), title, links, token_centers(translation, model, rank))

    def _title(self, number: int, view: _View, rank: int) -> str:
        """The title of a panel: line, attention, rank and score, and BLEU and AER if they are known."""
        request, hypothesis, parts = self.request, view.translation.hypotheses[rank], []
        if len(request.sources) > 1:
            parts.append(f"line {number}")
        if view.name:
            parts.append(view.name)
        if self.ranks.stop > 1:
            parts.append(f"translation {rank + 1}, score {hypothesis.score:.2f}".replace("-", "−"))
        if (bleu := request.bleu(number - 1, hypothesis.text, view.bundle)) is not None:
            parts.append(f"BLEU {bleu:.1f}")
        if (aer := request.error_rate(number - 1, view.translation.word_links(rank))) is not None:
            parts.append(f"AER {100 * aer:.1f}%")
        return " · ".join(parts)
