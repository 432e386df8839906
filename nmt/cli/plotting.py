"""`nmt plot`: alignments as pictures, or as a page to explore."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
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
    from nmt.alignment.links import GoldLinks, Links
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator
    from nmt.plotting.explorer import Reading
    from nmt.plotting.heatmap import Heatmap

_log = logging.getLogger(__name__)

MOST_PANELS = 25
"""Most matrices of a figure; a PDF has a page for each."""
_picture_option = partial(option, panel="Picture")


def plot(
    model: Annotated[
        Path | None, argument("Model: a folder, a .zip or hf:owner/name.", "MODEL", default="none, with --links")
    ] = None,
    sentences: Annotated[list[str] | None, argument("Sentence to translate; or use --source.", "SENTENCE")] = None,
    output: Annotated[Path, option("Picture (.png, .pdf, .svg) or page (.html).", "FILE", "--output", "-o")] = Path(
        "alignment.png"
    ),
    source: Annotated[Path | None, file_option("Sentences, one per line; - is stdin.", "--source", "-s")] = None,
    target: Annotated[Path | None, file_option("Align this translation, line by line.", "--target", "-t")] = None,
    translation: Annotated[str | None, option("Align this translation of SENTENCE.", "TEXT", default="none")] = None,
    links: Annotated[Path | None, file_option("Draw links of any aligner between -s and -t, without a model.")] = None,
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
      nmt plot -s test.en -t test.de --links test.align -o page.html

    Details:

    Rows are target words, columns source words, colors attention weights from 0 to 1. Several sentences become panels of a
    .png or .svg (25 at most), pages of a .pdf, or an .html page to explore.

    The model translates, unless --target or --translation gives the translations. Gold links are orange squares, dashed
    where only possible. Scripts such as Chinese and Japanese need an installed font or --font.

    --links draws the links of a file (Pharaoh or NAACL) without a model, such as those of `nmt links`, and --gold beside them.
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.bundle.folder import choose_attention
    from nmt.bundle.languages import choose_direction
    from nmt.bundle.places import model_name
    from nmt.decoding.self_attention import read_self_attention
    from nmt.plotting.explorer import MOST_SENTENCES
    from nmt.plotting.heatmap import Heatmap, plot_heatmaps
    from nmt.plotting.style import FORMATS, file_format
    from nmt.recipe import TransformerModelConfig

    kind = file_format(output, ("html", *FORMATS))
    page = kind == "html"
    refused = {
        "Give a MODEL, or links of your own: -s FILE -t FILE --links FILE.": not model and not links,
        "--links draws without a model: leave out MODEL, SENTENCE and their options.": links
        and (model or to or reference or posterior or self_attention or layer or head or beam_size or compare),
        "--links are between two files: give both, -s FILE and -t FILE.": links and not (source and target),
        "--links are between words: leave out --subwords.": links and subwords,
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
    if model is not None and self_attention:
        [bundle] = load_models([model], device)
        read = partial(read_self_attention, bundle, layer=layer, head=head, to=to, subwords=subwords)
        panels, weights = [Heatmap(read(line)) for line in request.sources], "self-attention weight"
    else:
        languages = ("", "")
        if links is not None:
            columns = [(str(links) if page else "", _link_readings(links, request))]
        else:
            folders = [folder for folder in (model, compare) if folder is not None]
            search: dict[str, Any] = {"posterior": posterior, "to": to, "split_sentences": split_sentences}
            if beam_size is not None:
                search["beam_size"] = beam_size
            bundles = load_models(folders, device, attending=True)
            languages = choose_direction(bundles[0].recipe.data, to)
            names = [model_name(folder) for folder in folders] if page else [""]
            if len(set(names)) < len(names):
                names = [str(folder) for folder in folders]
            columns = []
            for name, bundle, shown in zip(names, bundles, choose_attention(bundles, layer, head), strict=True):
                config = shown.recipe.model
                chosen = config.aligned_by if shown is not bundle and isinstance(config, TransformerModelConfig) else ""
                label = ", ".join(filter(None, (name, chosen)))
                translator = build_translator([shown], **search)
                columns.append((label, _model_readings(shown, translator, request, to, label, quiet=quiet)))
        if page:
            write_content(output, _page(request, columns, languages))
            typer.echo(output)
            return
        panels = _panels(request, *columns[0], subwords=subwords, quiet=quiet or links is not None)
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

    def error_rate(self, index: int, links: Links) -> dict[str, float]:
        """The alignment error rate of a sentence's links, if there are gold links."""
        from nmt.alignment.error_rate import error_rate

        return {} if self.gold is None else {"aer": error_rate([links], [self.gold[index]]).aer}


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


def _link_readings(path: Path, request: Request) -> Iterator[Reading]:
    """The links of a file, between words, or characters of text without spaces. Raises DataError."""
    from nmt.alignment.link_files import read_gold
    from nmt.alignment.weights import Alignment
    from nmt.plotting.explorer import Reading
    from nmt.text.scripts import splitter

    targets = request.references or []
    splits = splitter(request.sources), splitter(targets)
    for index, links in enumerate(links.possible for links in read_gold(path, len(targets))):
        words = splits[0](request.sources[index]), splits[1](targets[index])
        alignment = Alignment.of_links(*words, links, where=f"{path}, line {index + 1}")
        figures = {"length": float(len(words[0])), **request.error_rate(index, links)}
        yield Reading(alignment, alignment, links, figures)


def _model_readings(
    bundle: Bundle, translator: Translator, request: Request, to: str | None, name: str, *, quiet: bool
) -> Iterator[Reading]:
    """A model's translation of each sentence, or of its reference if forced, with a progress bar."""
    from nmt.alignment.weights import entropy
    from nmt.plotting.explorer import Reading

    if request.forced and request.references is not None:
        translations = translator.stream_scores(zip(request.sources, request.references, strict=True))
    else:
        translations = translator.stream(request.sources)
    progress = with_progress(translations, name or "reading", total=len(request.sources), quiet=quiet)
    for index, translation in enumerate(progress):
        words, best = translation.word_alignment(), translation.hypotheses[0]
        figures = {"length": float(len(words.source)), **request.error_rate(index, translation.links)}
        if request.references is not None and not request.forced:
            from nmt.bundle.languages import choose_direction
            from nmt.evaluation.metrics import sentence_bleu  # with sacreBLEU

            tokenize, (_, language) = bundle.recipe.evaluation.tokenize, choose_direction(bundle.recipe.data, to)
            reference = request.references[index]
            figures["bleu"] = sentence_bleu(translation.text, reference, language=language, tokenize=tokenize)
        if best.token_log_probs:
            figures["score"] = best.log_probability / len(best.token_log_probs)
        if words.weights.size:
            figures["entropy"] = float(entropy(words.weights).mean())
        yield Reading(words, translation.token_alignment(), translation.links, figures)


def _panels(request: Request, name: str, readings: Iterable[Reading], *, subwords: bool, quiet: bool) -> list[Heatmap]:
    """The matrix of each sentence that is not blank; unless `quiet`, the translations are printed on stderr."""
    from nmt.alignment.links import check_within
    from nmt.plotting.heatmap import Heatmap

    panels, is_only = [], len(request.sources) == 1
    for index, reading in enumerate(readings):
        words, figures = reading.words, reading.figures
        if not words.weights.size:
            if words.source and not is_only:
                _log.warning("Line %d is left out: its translation is empty.", index + 1)
            continue
        gold = request.gold[index] if request.gold else None
        if gold:
            check_within(gold.possible, len(words.source), len(words.target), f"Gold links, line {index + 1}")
        titles = ["" if is_only else f"line {index + 1}", name]
        titles.append(f"BLEU {figures['bleu']:.1f}" if "bleu" in figures else "")
        titles.append(f"AER {100 * figures['aer']:.1f}%" if "aer" in figures else "")
        title = " · ".join(filter(None, titles))
        panels.append(Heatmap(reading.tokens if subwords else words, title, gold))
    if not panels:
        raise DataError("There is nothing to draw: all lines are blank, or their translations are.")
    if not quiet:
        for panel in panels:
            typer.echo(" ".join(panel.alignment.target), err=True)
    return panels


def _page(request: Request, columns: Sequence[tuple[str, Iterable[Reading]]], languages: tuple[str, str]) -> str:
    """The page of all sentences that are not blank, aligned by each model."""
    from nmt.plotting.explorer import Explored, explorer_page

    names, readings_of = zip(*columns, strict=True)
    sentences = []
    for index, readings in enumerate(zip(*readings_of, strict=True)):
        if not readings[0].words.source:
            continue
        reference = request.references[index] if request.references and not request.forced else ""
        sentences.append(Explored(index + 1, readings, reference, request.gold[index] if request.gold else None))
    return explorer_page(sentences, names, title="Alignments: " + " and ".join(names), languages=languages)
