"""What `nmt plot` shows: sentences with their references and gold links, as matrices or as a page to explore."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nmt.cli.streams import open_input, open_output, text_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import with_progress

if TYPE_CHECKING:
    from nmt.alignment.links import GoldLinks
    from nmt.alignment.translation import Translation
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator
    from nmt.plotting.explorer import Reading
    from nmt.plotting.heatmap import Heatmap

    Reader = tuple[str, Bundle, Translator]
    """A model that reads the sentences, and the name of the model or of the attention that it shows."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Request:
    """The sentences to show.

    Attributes:
        sources: the sentences.
        references: a reference translation of each; None if there are none.
        forced: whether to align the references rather than translations by the model.
        gold: gold links between sources and references; None if there are none.
        to: the language to translate to; None for the only one.
    """

    sources: list[str]
    references: list[str] | None = None
    forced: bool = False
    gold: list[GoldLinks] | None = None
    to: str | None = None

    def __post_init__(self) -> None:
        if not self.sources:
            raise DataError("There is no sentence to plot: the input is empty.")
        for name, lines in (("reference translations", self.references), ("lines of gold links", self.gold)):
            if lines is not None and len(lines) != len(self.sources):
                counts = f"{len(lines):,} for {len(self.sources):,}"
                raise DataError(f"There must be as many {name} as sentences, but there are {counts}.")

    def panels(self, readers: Sequence[Reader], ranks: range, *, subwords: bool, quiet: bool) -> list[list[Heatmap]]:
        """The matrices of each sentence that has some; unless `quiet`, the translations are printed on stderr.

        Args:
            readers: models that show an attention each; all find the same translations.
            ranks: which translations of a sentence to draw, the best being 0.
            subwords: whether rows and columns are tokens rather than words.
            quiet: whether to show no progress.
        """
        columns = [self._read(translator, name or "reading", quiet=quiet) for name, _, translator in readers]
        pages = [
            list(self._panels(index, readers, translations, ranks, subwords=subwords))
            for index, translations in enumerate(zip(*columns, strict=True))
        ]
        if not any(pages):
            raise DataError("There is nothing to draw: all lines are blank, or their translations are.")
        if not quiet:
            for panel in islice(chain(*pages), None, None, len(readers)):
                typer.echo(" ".join(panel.alignment.target), err=True)
        return [page for page in pages if page]

    def write_page(self, output: Path, readers: Sequence[Reader], *, quiet: bool) -> None:
        """Align the sentences by each model and write a page. Blank sentences are left out."""
        from nmt.bundle.languages import choose_direction
        from nmt.plotting.explorer import Explored, explorer_page

        columns = [self._read(translator, name, quiet=quiet) for name, _, translator in readers]
        sentences = []
        for index, translations in enumerate(zip(*columns, strict=True)):
            readings = tuple(
                self._reading(index, translation, bundle)
                for translation, (_, bundle, _) in zip(translations, readers, strict=True)
                if translation.source_ids
            )
            if readings:
                reference = self.references[index] if self.references else ""
                sentences.append(Explored(index + 1, readings, reference, self.gold[index] if self.gold else None))
        if not sentences:
            raise DataError("There are no sentences to explore: all lines are blank.")
        names = [name for name, _, _ in readers]
        languages = choose_direction(readers[0][1].recipe.data, self.to)
        page = explorer_page(sentences, names, title="Alignments: " + " and ".join(names), languages=languages)
        with open_output(output) as stream:
            stream.write(page.encode())

    def _read(self, translator: Translator, label: str, *, quiet: bool) -> Iterator[Translation]:
        """Translate each sentence, or score its reference if forced, with a progress bar."""
        if self.forced and self.references is not None:
            translations = translator.stream_scores(zip(self.sources, self.references, strict=True))
        else:
            translations = translator.stream(self.sources)
        return with_progress(translations, label, total=len(self.sources), quiet=quiet)

    def _panels(
        self,
        index: int,
        readers: Sequence[Reader],
        translations: Sequence[Translation],
        ranks: range,
        *,
        subwords: bool,
    ) -> Iterator[Heatmap]:
        """Each translation of a sentence by each attention. An empty one is an error only if it is the only sentence."""
        from nmt.alignment.links import check_within
        from nmt.plotting.heatmap import Heatmap

        first, is_only, gold = translations[0], len(self.sources) == 1, self.gold[index] if self.gold else None
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
            for (name, bundle, _), translation in zip(readers, translations, strict=True):
                words = translation.word_alignment(rank)
                if gold:
                    check_within(gold.possible, len(words.source), len(words.target), f"Gold links, line {index + 1}")
                scores = self._scores(index, translation, bundle, rank)
                title = " · ".join(
                    [
                        *([] if is_only else [f"line {index + 1}"]),
                        *([name] if name else []),
                        *([numbered] if ranks.stop > 1 else []),
                        *([f"BLEU {scores['bleu']:.1f}"] if "bleu" in scores else []),
                        *([f"AER {100 * scores['aer']:.1f}%"] if "aer" in scores else []),
                    ]
                )
                yield Heatmap(translation.token_alignment(rank) if subwords else words, title, gold)

    def _reading(self, index: int, translation: Translation, bundle: Bundle) -> Reading:
        """What a page shows of the best translation of a sentence."""
        from nmt.alignment.weights import entropy
        from nmt.plotting.explorer import Reading

        words, best = translation.word_alignment(), translation.hypotheses[0]
        figures = {"length": float(len(words.source))}
        if best.token_log_probs:
            figures["score"] = best.log_probability / len(best.token_log_probs)
        if words.weights.size:
            figures["entropy"] = float(entropy(words.weights).mean())
        figures |= self._scores(index, translation, bundle)
        return Reading(words, translation.token_alignment(), translation.links, figures)

    def _scores(self, index: int, translation: Translation, bundle: Bundle, rank: int = 0) -> dict[str, float]:
        """BLEU of a translation by the model if there is a reference, and the alignment error rate if there are gold links."""
        scores = {}
        if self.references is not None and not self.forced:
            from nmt.bundle.languages import choose_direction
            from nmt.evaluation.metrics import sentence_bleu  # with sacreBLEU

            text, tokenize = translation.hypotheses[rank].text, bundle.recipe.evaluation.tokenize
            _, language = choose_direction(bundle.recipe.data, self.to)
            scores["bleu"] = sentence_bleu(text, self.references[index], language=language, tokenize=tokenize)
        if self.gold is not None:
            from nmt.alignment.error_rate import error_rate

            scores["aer"] = error_rate([translation.word_links(rank)], [self.gold[index]]).aer
        return scores


def read_request(
    sentences: Sequence[str],
    source: Path | None,
    *,
    target: str | None = None,
    reference: Path | None = None,
    gold: Path | None = None,
    force: bool = False,
    to: str | None = None,
) -> Request:
    """Read the sentences from the command line or from files. Raises UsageError or DataError."""
    from nmt.alignment.link_files import read_gold

    if bool(sentences) == (source is not None):
        raise UsageError("Give sentences as arguments, or a file of them with -i (- is stdin), and not both.")
    if target is not None and (reference is not None or len(sentences) != 1):
        raise UsageError("--target translates one SENTENCE: for a file give --reference FILE and --force.")
    if target is None and reference is None and (force or gold is not None):
        option = "--force" if gold is None else "--gold"
        raise UsageError(f"{option} needs the translations: give --target or --reference.")
    sources = list(sentences) if source is None else _lines(source)
    references = _lines(reference) if reference is not None else None if target is None else [target]
    forced = force or target is not None or gold is not None
    return Request(sources, references, forced, None if gold is None else read_gold(gold, len(sources)), to)


def _lines(path: Path) -> list[str]:
    with open_input(path) as stream:
        return list(text_lines(stream, path))
