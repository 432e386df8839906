"""`nmt plot`: alignments as pictures, or as a page to explore."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli import options
from nmt.cli.options import argument, build_translator, file_option, flag, load_models, option, set_up
from nmt.cli.streams import read_side
from nmt.errors import DataError, UsageError
from nmt.runtime.files import write_content
from nmt.runtime.progress import with_progress

if TYPE_CHECKING:
    from nmt.alignment.links import GoldLinks
    from nmt.alignment.translation import Translation
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator
    from nmt.plotting.explorer import Reading
    from nmt.plotting.heatmap import Heatmap

_log = logging.getLogger(__name__)

MOST_PANELS = 25
"""Most matrices of a figure; a PDF has a page for each."""
_picture_option = partial(option, panel="Picture")


def plot(
    model: options.Model,
    sentences: Annotated[list[str] | None, argument("Sentence to translate; or use --source.", "SENTENCE")] = None,
    output: Annotated[Path, option("Picture (.png, .pdf, .svg) or page (.html).", "FILE", "--output", "-o")] = Path(
        "alignment.png"
    ),
    source: Annotated[Path | None, file_option("Sentences, one per line; - is stdin.", "--source", "-s")] = None,
    target: Annotated[Path | None, file_option("Align this translation, line by line.", "--target", "-t")] = None,
    translation: Annotated[str | None, option("Align this translation of SENTENCE.", "TEXT", default="none")] = None,
    to: options.To = None,
    reference: Annotated[Path | None, file_option("Reference translations, for BLEU.", "--reference", "-r")] = None,
    gold: Annotated[Path | None, file_option("Gold links (Pharaoh or NAACL) of the target, for the AER.")] = None,
    posterior: Annotated[
        bool, flag("--posterior", "Show the posterior alignment given the target words, not the attention.")
    ] = False,
    self_attention: Annotated[
        bool, flag("--self", "Show what the words of SENTENCE read of each other, in a Transformer.")
    ] = False,
    layer: options.AttentionLayer = None,
    head: options.AttentionHead = None,
    beam_size: options.BeamSize = None,
    subwords: Annotated[bool, flag("--subwords", "Show subword tokens instead of words.", panel="Picture")] = False,
    style: Annotated[Literal["color", "gray"], _picture_option("color, or gray as in the papers.", "NAME")] = "color",
    font: Annotated[
        Path | None, file_option("Font of the words (.ttf, .otf, .ttc).", default="DejaVu Sans", panel="Picture")
    ] = None,
    compare: Annotated[
        Path | None, option("A second model beside the first, on a page.", "MODEL", default="none")
    ] = None,
    split_sentences: options.SplitSentences = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Draw the alignment of sentences and their translations.

    Examples:
      nmt plot runs/bahdanau "A man is riding a horse." -o align.png
      nmt plot runs/bahdanau -s test.en -t test.de -o page.html

    Details:

    Rows are target words, columns source words, colors attention weights from 0 to 1. Several sentences become panels of a
    .png or .svg (25 at most), pages of a .pdf, or an .html page to explore.

    The model translates, unless --target or --translation gives the translations. Gold links are orange squares, dashed
    where only possible. Scripts such as Chinese and Japanese need an installed font or --font.
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.bundle.folder import choose_attention
    from nmt.bundle.places import model_name
    from nmt.decoding.self_attention import read_self_attention
    from nmt.plotting.explorer import MOST_SENTENCES
    from nmt.plotting.heatmap import Heatmap, plot_heatmaps
    from nmt.plotting.style import FORMATS, file_format
    from nmt.recipe import TransformerModelConfig

    kind = file_format(output, ("html", *FORMATS))
    page = kind == "html"
    refused = {
        "--layer and --head choose attention weights: leave them out, or --posterior.": posterior and (layer or head),
        "A page shows words and subwords: leave out --subwords and --font, or write a picture.": page
        and (subwords or font),
        "Gold links are between words: leave out --subwords, or --gold.": subwords and gold,
        f"--compare is for pages: write to a name that ends with .html, not to '{output}'.": compare and not page,
        "--self draws pictures: write to a .png, .svg or .pdf.": self_attention and page,
        "--self shows one sentence and no translation: give no option of translations.": self_attention
        and (target or translation or reference or gold or posterior or compare or beam_size),
    }
    if message := next((message for message, holds in refused.items() if holds), None):
        raise UsageError(message)
    request = _read_request(sentences or [], source, target, translation=translation, reference=reference, gold=gold)
    most = MOST_SENTENCES if kind in ("html", "pdf") else MOST_PANELS
    if len(request.sources) > most:
        count = f"A .{kind} holds at most {most} sentences, but there are {len(request.sources):,}"
        raise DataError(f"{count}: choose some, for instance with `head`, or write a .pdf or .html.")
    folders = [model] if compare is None else [model, compare]
    bundles = load_models(folders, device, attending=not self_attention)
    if self_attention:
        read = partial(read_self_attention, bundles[0], layer=layer, head=head, to=to, subwords=subwords)
        panels = [Heatmap(read(line)) for line in request.sources]
        weights = "self-attention weight"
    else:
        names = [model_name(folder) for folder in folders] if page else [""]
        if len(set(names)) < len(names):
            names = [str(folder) for folder in folders]
        search: dict[str, Any] = {"posterior": posterior, "to": to, "split_sentences": split_sentences}
        if beam_size is not None:
            search["beam_size"] = beam_size
        readers = []
        for name, bundle, shown in zip(names, bundles, choose_attention(bundles, layer, head), strict=True):
            config = shown.recipe.model
            attention = config.aligned_by if shown is not bundle and isinstance(config, TransformerModelConfig) else ""
            label = ", ".join(filter(None, (name, attention)))
            readers.append(Reader(label, shown, build_translator([shown], **search), to))
        if page:
            write_content(output, _page(request, readers, quiet=quiet))
            typer.echo(output)
            return
        panels = _panels(request, readers[0], subwords=subwords, quiet=quiet)
        weights = "posterior weight" if posterior else "attention weight"
    pages = [[panel] for panel in panels] if kind == "pdf" else [panels]
    plot_heatmaps(pages, output, weights=weights, style=style, font=font)
    typer.echo(output)


# --- sentences --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """The sentences to show.

    Attributes:
        sources: the sentences.
        references: a given or reference translation of each; None if there are none.
        forced: whether they are given, to be aligned; otherwise the model translates.
        gold: gold links between sources and given translations; None if there are none.
    """

    sources: list[str]
    references: list[str] | None
    forced: bool
    gold: list[GoldLinks] | None


def _read_request(
    sentences: Sequence[str],
    source: Path | None,
    target: Path | None,
    *,
    translation: str | None,
    reference: Path | None,
    gold: Path | None,
) -> Request:
    """Read the sentences from the command line or from files. Raises UsageError or DataError."""
    from nmt.alignment.link_files import read_gold

    if bool(sentences) == (source is not None):
        raise UsageError("Give sentences as arguments, or a file of them with -s (- is stdin), and not both.")
    if translation is not None and len(sentences) != 1:
        raise UsageError("--translation is of one SENTENCE: for a file give --target FILE.")
    if [target, translation, reference].count(None) < 2:
        raise UsageError("Give one of --target and --translation, to be aligned, or --reference, for BLEU.")
    forced = target is not None or translation is not None
    if gold is not None and not forced:
        raise UsageError("--gold needs the translations: give --target or --translation.")
    sources = list(sentences) if source is None else read_side(source)
    if not sources:
        raise DataError("There is no sentence to plot: the input is empty.")
    file = target or reference
    references = read_side(file) if file is not None else None if translation is None else [translation]
    if references is not None and len(references) != len(sources):
        counts = f"{len(references):,} for {len(sources):,}"
        raise DataError(f"There must be as many translations as sentences, but there are {counts}.")
    return Request(sources, references, forced, None if gold is None else read_gold(gold, len(sources)))


@dataclass(frozen=True)
class Reader:
    """A model that translates or aligns the sentences, and the name of what it shows."""

    name: str
    bundle: Bundle
    translator: Translator
    to: str | None

    def read(self, request: Request, *, quiet: bool) -> Iterator[Translation]:
        """Translate each sentence, or score its reference if forced, with a progress bar."""
        if request.forced and request.references is not None:
            translations = self.translator.stream_scores(zip(request.sources, request.references, strict=True))
        else:
            translations = self.translator.stream(request.sources)
        return with_progress(translations, self.name or "reading", total=len(request.sources), quiet=quiet)

    def scores(self, request: Request, index: int, translation: Translation) -> dict[str, float]:
        """BLEU of a translation by the model if there is a reference, and the alignment error rate if there are gold links."""
        scores = {}
        if request.references is not None and not request.forced:
            from nmt.bundle.languages import choose_direction
            from nmt.evaluation.metrics import sentence_bleu  # with sacreBLEU

            tokenize = self.bundle.recipe.evaluation.tokenize
            _, language = choose_direction(self.bundle.recipe.data, self.to)
            reference = request.references[index]
            scores["bleu"] = sentence_bleu(translation.text, reference, language=language, tokenize=tokenize)
        if request.gold is not None:
            from nmt.alignment.error_rate import error_rate

            scores["aer"] = error_rate([translation.links], [request.gold[index]]).aer
        return scores


def _panels(request: Request, reader: Reader, *, subwords: bool, quiet: bool) -> list[Heatmap]:
    """The matrix of each sentence that is not blank; unless `quiet`, the translations are printed on stderr."""
    from nmt.alignment.links import check_within
    from nmt.plotting.heatmap import Heatmap

    panels, is_only = [], len(request.sources) == 1
    for index, translation in enumerate(reader.read(request, quiet=quiet)):
        words = translation.word_alignment()
        if not words.weights.size:
            if translation.source_ids and not is_only:
                _log.warning("Line %d is left out: its translation is empty.", index + 1)
            continue
        gold = request.gold[index] if request.gold else None
        if gold:
            check_within(gold.possible, len(words.source), len(words.target), f"Gold links, line {index + 1}")
        scores = reader.scores(request, index, translation)
        titles = ["" if is_only else f"line {index + 1}", reader.name]
        titles.append(f"BLEU {scores['bleu']:.1f}" if "bleu" in scores else "")
        titles.append(f"AER {100 * scores['aer']:.1f}%" if "aer" in scores else "")
        title = " · ".join(filter(None, titles))
        panels.append(Heatmap(translation.token_alignment() if subwords else words, title, gold))
    if not panels:
        raise DataError("There is nothing to draw: all lines are blank, or their translations are.")
    if not quiet:
        for panel in panels:
            typer.echo(" ".join(panel.alignment.target), err=True)
    return panels


def _page(request: Request, readers: Sequence[Reader], *, quiet: bool) -> str:
    """The page of all sentences that are not blank, aligned by each model."""
    from nmt.bundle.languages import choose_direction
    from nmt.plotting.explorer import Explored, explorer_page

    columns = [reader.read(request, quiet=quiet) for reader in readers]
    sentences = []
    for index, translations in enumerate(zip(*columns, strict=True)):
        if not translations[0].source_ids:
            continue
        readings = tuple(
            _reading(translation, reader.scores(request, index, translation))
            for reader, translation in zip(readers, translations, strict=True)
        )
        reference = request.references[index] if request.references else ""
        sentences.append(Explored(index + 1, readings, reference, request.gold[index] if request.gold else None))
    if not sentences:
        raise DataError("There are no sentences to explore: all lines are blank.")
    names = [reader.name for reader in readers]
    languages = choose_direction(readers[0].bundle.recipe.data, readers[0].to)
    return explorer_page(sentences, names, title="Alignments: " + " and ".join(names), languages=languages)


def _reading(translation: Translation, scores: dict[str, float]) -> Reading:
    """What a page shows of the best translation of a sentence."""
    from nmt.alignment.weights import entropy
    from nmt.plotting.explorer import Reading

    words, best = translation.word_alignment(), translation.hypotheses[0]
    figures = {"length": float(len(words.source)), **scores}
    if best.token_log_probs:
        figures["score"] = best.log_probability / len(best.token_log_probs)
    if words.weights.size:
        figures["entropy"] = float(entropy(words.weights).mean())
    return Reading(words, translation.token_alignment(), translation.links, figures)
