"""`nmt plot -o FILE.png|pdf|svg`: the alignment matrices of sentences."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

import typer

from nmt.cli.plotting.request import Request
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.alignment.translation import Translation
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator
    from nmt.plotting.heatmap import Heatmap

_log = logging.getLogger(__name__)


def translation_panels(
    request: Request, readers: Sequence[tuple[str, Bundle, Translator]], ranks: range, *, subwords: bool, quiet: bool
) -> list[list[Heatmap]]:
    """The matrices of each sentence that has some; unless `quiet`, the translations are printed on stderr.

    Args:
        request: the sentences.
        readers: models with the name of the attention that each shows; all find the same translations.
        ranks: which translations of a sentence to draw, the best being 0.
        subwords: whether rows and columns are tokens rather than words.
        quiet: whether to show no progress.
    """
    columns = [request.read(translator, name or "reading", quiet=quiet) for name, _, translator in readers]
    views = [(name, bundle) for name, bundle, _ in readers]
    pages = [
        list(_panels(request, index, list(zip(views, translations, strict=True)), ranks, subwords=subwords))
        for index, translations in enumerate(zip(*columns, strict=True))
    ]
    if not any(pages):
        raise DataError("There is nothing to draw: all lines are blank, or their translations are.")
    if not quiet:
        for panel in islice(chain(*pages), None, None, len(readers)):
            typer.echo(" ".join(panel.alignment.target), err=True)
    return [page for page in pages if page]


def _panels(
    request: Request,
    index: int,
    views: Sequence[tuple[tuple[str, Bundle], Translation]],
    ranks: range,
    *,
    subwords: bool,
) -> Iterator[Heatmap]:
    """The panels of a sentence: each translation by each attention. An empty one is an error only if it is the only sentence."""
    first, is_only = views[0][1], len(request.sources) == 1
    if not first.source_ids:
        if is_only:
            raise DataError("The sentence to plot is empty.")
        return
    count = len(first.hypotheses)
    if count <= ranks.start:
        raise DataError(
            f"Line {index + 1} has no translation number {ranks.stop}: the search ended with {count}. "
            "Choose a lower one, or a larger --beam-size."
        )
    for rank in ranks[: count - ranks.start]:
        if not first.word_alignment(rank).weights.size and not is_only:
            _log.warning("Line %d is left out: its translation is empty.", index + 1)
            continue
        numbered = f"translation {rank + 1}, score {first.hypotheses[rank].score:.2f}".replace("-", "−")
        for (name, bundle), translation in views:
            parts = [f"line {index + 1}" if not is_only else "", name, numbered if ranks.stop > 1 else ""]
            if (bleu := request.bleu(index, translation.hypotheses[rank].text, bundle)) is not None:
                parts.append(f"BLEU {bleu:.1f}")
            if (aer := request.error_rate(index, translation, rank)) is not None:
                parts.append(f"AER {100 * aer:.1f}%")
            title = " · ".join(filter(None, parts))
            yield _panel(request, index, translation, bundle, rank, title, subwords=subwords)


def _panel(
    request: Request, index: int, translation: Translation, bundle: Bundle, rank: int, title: str, *, subwords: bool
) -> Heatmap:
    """A matrix with its gold links and the centers of its window."""
    from nmt.alignment.centers import token_centers, word_centers
    from nmt.alignment.links import check_within
    from nmt.plotting.heatmap import Heatmap

    words, gold = translation.word_alignment(rank), request.gold[index] if request.gold else None
    if gold:
        check_within(gold.possible, len(words.source), len(words.target), f"Gold links, line {index + 1}")
    if not subwords:
        return Heatmap(words, title, gold, word_centers(translation, bundle.model, rank))
    links = gold and translation.gold_between_tokens(gold, rank)
    return Heatmap(translation.token_alignment(rank), title, links, token_centers(translation, bundle.model, rank))
