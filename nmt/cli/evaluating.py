"""`nmt evaluate`: figures of a model on held-out text, or of translations in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from nmt.cli.options import (
    BatchTokens,
    BeamSize,
    Device,
    LengthPenalty,
    Precision,
    PrecisionName,
    Quiet,
    Threads,
    build_translator,
    load_models,
    set_up,
)
from nmt.cli.streams import open_output
from nmt.errors import DataError, UsageError

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.data.corpus import ParallelCorpus
    from nmt.evaluation.alignment import AlignmentErrorRate
    from nmt.evaluation.metrics import Comparison, Score

SAMPLE = "sample:"
ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class _Text:
    """What is scored: translations by name of the system, the last one being judged, and their references."""

    name: str
    language: str | None
    systems: Mapping[str, list[str]]
    references: list[list[str]]


def evaluate(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="A model folder; without one give --hyp and --ref.", show_default=False),
    ] = None,
    split: Annotated[
        str, typer.Option(metavar="test|valid|LOCATOR", help="The text: one of the recipe's, or any corpus locator.")
    ] = "test",
    hyp: Annotated[
        Path | None,
        typer.Option("--hyp", metavar="FILE", help="Score these translations, whoever made them.", show_default=False),
    ] = None,
    ref: Annotated[
        list[Path] | None,
        typer.Option("--ref", metavar="FILE", help="References of --hyp; may be repeated.", show_default=False),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Another system's translations, to compare by paired bootstrap.", show_default=False
        ),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Score as published Multi30k figures are: lowercased, normalised, Moses tokens."
        ),
    ] = False,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Target language of --hyp, for --published.", show_default=False)
    ] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="sacreBLEU's tokeniser. [dim]\\[default: 13a][/dim]", show_default=False),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Compare BLEU and chrF in lower case.")] = False,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for intervals and comparison; 0 is off.")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write the translations.", show_default=False),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Threads = None,
    batch_tokens: BatchTokens = 8192,
    quiet: Quiet = False,
) -> None:
    """Print BLEU, chrF and TER with confidence intervals and sacreBLEU's signatures.

    On the embedded sample, whose grammar knows which words belong together, also the alignment error rate.

    [bold]Examples[/bold]

      nmt evaluate runs/bahdanau --baseline other-system.de

      nmt evaluate --hyp output.de --ref test.de --lowercase
    """
    set_up(quiet=quiet, threads=threads)
    errors: AlignmentErrorRate | None = None
    if model is None:
        text = _from_files(hyp, ref, language)
    elif hyp or ref:
        raise UsageError("Give a MODEL, or --hyp with --ref, but not both.")
    else:
        [bundle] = load_models([model], device)
        corpus = _corpus(bundle, split)
        decoding = {"beam_size": beam_size, "length_penalty": length_penalty}
        text = _translate(bundle, corpus, decoding, precision, batch_tokens, name=str(model), quiet=quiet)
        errors = _alignment_error_rate(bundle, corpus, precision, batch_tokens, quiet=quiet)
    text = text if baseline is None else _with_baseline(text, baseline)
    if output is not None:
        with open_output(output) as stream:
            stream.writelines(line.encode("utf-8", "replace") + b"\n" for line in list(text.systems.values())[-1])
    if published:
        text, tokenize = _as_published(text), "none"
    _report(text, errors, tokenize=tokenize, lowercase=lowercase, bootstrap=bootstrap, as_json=as_json)


# --- where the text comes from ----------------------------------------------------------------------------------


def _from_files(hyp: Path | None, ref: Sequence[Path] | None, language: str | None) -> _Text:
    if hyp is None or not ref:
        raise UsageError("There is nothing to evaluate: give a MODEL, or --hyp and --ref.")
    from nmt.data.corpus import read_lines

    translations = list(read_lines(hyp))
    return _Text(str(hyp), language, {str(hyp): translations}, [_matching(path, translations, hyp) for path in ref])


def _matching(path: Path, lines: Sequence[str], other: Path | str) -> list[str]:
    """The lines of a file, as many as the given ones. Raises DataError with both counts."""
    from nmt.data.corpus import read_lines

    found = list(read_lines(path))
    if len(found) != len(lines):
        raise DataError(
            f"{path} has {len(found):,} lines, but {other} has {len(lines):,}: the lines do not correspond."
        )
    return found


def _with_baseline(text: _Text, baseline: Path) -> _Text:
    [(name, translations)] = text.systems.items()
    label = str(baseline) if str(baseline) != name else f"{baseline} (baseline)"
    return _Text(
        text.name,
        text.language,
        {label: _matching(baseline, translations, text.name), name: translations},
        text.references,
    )


def _corpus(bundle: Bundle, split: str) -> ParallelCorpus:
    """The text that `test`, `valid` or a locator names."""
    from nmt.data.corpus import load_corpus

    data = bundle.recipe.data
    locator = {"test": data.test, "valid": data.valid}.get(split, split)
    if locator is None:
        raise UsageError("The recipe of this model names no data.test: give --split valid or the locator of a corpus.")
    return load_corpus(locator, source=data.source, target=data.target)


def _translate(
    bundle: Bundle,
    corpus: ParallelCorpus,
    decoding: dict[str, Any],
    precision: PrecisionName,
    batch_tokens: int,
    *,
    name: str,
    quiet: bool,
) -> _Text:
    translator = build_translator(
        [bundle], precision=precision, decoding=decoding, batch_tokens=batch_tokens, alignments=False
    )
    found = _shown(translator.translate(corpus.source), len(corpus), "translating", quiet=quiet)
    return _Text(corpus.name, bundle.recipe.data.target, {name: [item.text for item in found]}, [list(corpus.target)])


def _alignment_error_rate(
    bundle: Bundle, corpus: ParallelCorpus, precision: PrecisionName, batch_tokens: int, *, quiet: bool
) -> AlignmentErrorRate | None:
    """How well attention finds the grammar's links, when the model reads the references of the sample; else None."""
    if not corpus.name.startswith(SAMPLE) or bundle.recipe.model.attention.score.kind == "none":
        return None
    from nmt.cli.words import word_alignment
    from nmt.data.sample import examples
    from nmt.evaluation.alignment import alignment_error_rate, argmax_links, flip

    gold = [item.links for item in examples(corpus.name.removeprefix(SAMPLE))]
    if bundle.recipe.data.source != "en":
        gold = [flip(links) for links in gold]
    translator = build_translator([bundle], precision=precision, batch_tokens=batch_tokens)
    found = _shown(translator.score(corpus.pairs()), len(corpus), "aligning", quiet=quiet)
    links = [argmax_links(word_alignment(item, bundle).weights) for item in found]
    return alignment_error_rate(links, gold, gold)


def _shown(items: Iterable[ItemT], total: int, what: str, *, quiet: bool) -> Iterator[ItemT]:
    """The items, with a progress bar on stderr if a person watches."""
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, total=total, console=Console(stderr=True), transient=True)


# --- what is printed --------------------------------------------------------------------------------------------


def _as_published(text: _Text) -> _Text:
    from nmt.evaluation.metrics import published_form

    if text.language is None:
        raise UsageError("--published needs the target language: give --language, for instance --language de.")
    systems = {name: published_form(lines, text.language) for name, lines in text.systems.items()}
    return _Text(text.name, text.language, systems, [published_form(lines, text.language) for lines in text.references])


def _report(text: _Text, errors: AlignmentErrorRate | None, *, as_json: bool, **options: Any) -> None:
    from nmt.evaluation import metrics

    *_, translations = text.systems.values()
    scores = metrics.evaluate(translations, text.references, **options)
    compared: tuple[Comparison, ...] = ()
    if len(text.systems) > 1:
        compared = metrics.compare(text.systems, text.references, **options)
    if as_json:
        typer.echo(json.dumps(_as_json(text, scores, compared, errors), ensure_ascii=False, indent=2))
        return
    typer.echo(metrics.format_scores(scores))
    if errors is not None:
        typer.echo(str(errors))
    if compared:
        typer.echo("\n" + metrics.format_comparison(compared))


def _as_json(
    text: _Text, scores: Sequence[Score], compared: Sequence[Comparison], errors: AlignmentErrorRate | None
) -> dict[str, Any]:
    return {
        "text": text.name,
        "system": list(text.systems)[-1],
        "sentences": len(text.references[0]),
        "scores": [score.to_dict() for score in scores],
        "comparison": [item.to_dict() for item in compared],
        "alignment": None if errors is None else asdict(errors),
    }
