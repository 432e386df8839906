"""`nmt evaluate`: score a model on held-out text, or translations in a file."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import (
    BatchTokens,
    BeamSize,
    Device,
    Horizon,
    LengthPenalty,
    Lexicon,
    Precision,
    Prune,
    Quiet,
    ReplaceUnknown,
    Threads,
    build_translator,
    load_models,
    set_up,
    unknown_words,
)
from nmt.cli.streams import STANDARD, open_input, open_output
from nmt.errors import DataError, UsageError
from nmt.progress import with_progress
from nmt.wording import counted

if TYPE_CHECKING:
    from nmt.alignment.error_rate import AlignmentErrorRate
    from nmt.data.corpus import ParallelCorpus
    from nmt.evaluation.metrics import Comparison, MetricScore
    from nmt.model_folder import Bundle


_log = logging.getLogger(__name__)

_SCORES = "Scores"


@dataclass(frozen=True)
class _Text:
    """The text to score: translations, their references, and perhaps the translations of a baseline."""

    name: str
    language: str | None
    system: str
    translations: list[str]
    references: list[list[str]]
    baseline: list[str] | None = None

    def map(self, change: Callable[[list[str]], list[str]]) -> _Text:
        """Apply a function to all lines."""
        baseline = None if self.baseline is None else change(self.baseline)
        references = [change(lines) for lines in self.references]
        return replace(self, translations=change(self.translations), references=references, baseline=baseline)


def evaluate(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="Model folder; without one, --hyp is scored.", show_default=False),
    ] = None,
    split: Annotated[str, typer.Option(metavar="TEXT", help="Text to translate: test, valid or a locator.")] = "test",
    hyp: Annotated[
        Path | None,
        typer.Option("--hyp", metavar="FILE", help="Translations to score; - is stdin.", show_default="the model's"),
    ] = None,
    ref: Annotated[
        list[Path] | None,
        typer.Option("--ref", metavar="FILE", help="References of --hyp; may be repeated.", show_default="none"),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Translations by another system, to compare with.", show_default="none"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write the translations.", show_default="none"),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="Target language of --hyp, such as de or ja.",
            show_default="unknown",
            rich_help_panel=_SCORES,
        ),
    ] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="sacreBLEU tokeniser.",
            show_default="the recipe's, else by language",
            rich_help_panel=_SCORES,
        ),
    ] = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Compare BLEU and chrF in lower case.", rich_help_panel=_SCORES)
    ] = False,
    published: Annotated[
        bool,
        typer.Option(
            "--published",
            help="Score as Multi30k papers do: lowercased, Moses tokens.",
            rich_help_panel=_SCORES,
        ),
    ] = False,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Resamples for intervals and --baseline; 0: none.", rich_help_panel=_SCORES
        ),
    ] = 1000,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    horizon: Horizon = None,
    prune: Prune = None,
    replace_unknown: ReplaceUnknown = False,
    lexicon: Lexicon = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Threads = None,
    batch_tokens: BatchTokens = 8192,
    quiet: Quiet = False,
) -> None:
    """Print BLEU, chrF and TER with confidence intervals and signatures.

    Examples:
      nmt evaluate runs/bahdanau
      nmt evaluate --hyp output.de --ref test.de --baseline other.de

    Details:

    Scores and signatures are sacreBLEU's; `±` is half a 95 % bootstrap interval, and --baseline adds a paired bootstrap test.
    The default tokeniser is zh for Chinese, ja-mecab for Japanese, ko-mecab for Korean (char if MeCab is not installed),
    else 13a. A locator names a corpus, such as data/test.{en,de} or multi30k/val.

    Text with gold links also gets the AER of the attention on the references: the sample, `hansards-en-fr/gold.trial`, or
    text with a Pharaoh file (`test.align` beside `test.en` and `test.fr`).
    """
    set_up(quiet=quiet, threads=threads)
    _check_options(tokenize, language, published=published, compares=baseline is not None, bootstrap=bootstrap)
    errors: AlignmentErrorRate | None = None
    if model is None:
        _check_replacing(lexicon, replace=replace_unknown)
        text = _from_files(hyp, ref, language, baseline)
    elif hyp or ref:
        raise UsageError("Give a MODEL, or --hyp with --ref, but not both.")
    elif language is not None:
        raise UsageError("--language is that of --hyp; that of what a MODEL writes is known: leave it out.")
    else:
        [bundle] = load_models([model], device)
        if published:
            _published_form(bundle.recipe.data.target)(["a"])
        else:
            tokenize = tokenize or bundle.recipe.evaluation.tokenize
            _check_tokenizer(tokenize)
        corpus = _corpus(bundle, split)
        other = (
            None if baseline is None else _matching(baseline, len(corpus), corpus.name)
        )  # fails before any work is done
        settings: dict[str, Any] = {"precision": precision, "batch_tokens": batch_tokens}
        changed = {
            "decoding": {
                "beam_size": beam_size,
                "length_penalty": length_penalty,
                "horizon": horizon,
                "prune": prune,
            },
            "replace_unknown": unknown_words(bundle, model, lexicon, replace=replace_unknown),
        }
        translations = _translate(bundle, corpus, quiet=quiet, **changed, **settings)
        language = bundle.recipe.data.target
        text = _Text(corpus.name, language, str(model), translations, [list(corpus.target)], other)
        errors = _alignment_error_rate(bundle, corpus, quiet=quiet, bootstrap=bootstrap, **settings)
    options: dict[str, Any] = {"language": text.language, "lowercase": lowercase, "bootstrap": bootstrap}
    if published:
        _report(text.map(_published_form(text.language)), errors, as_json=as_json, tokenize="none", **options)
    else:
        _report(text, errors, as_json=as_json, tokenize=tokenize, **options)
    if output is not None:
        with open_output(output) as stream:
            stream.writelines(line.encode("utf-8", "replace") + b"\n" for line in text.translations)


def _check_options(
    tokenize: str | None, language: str | None, *, published: bool, compares: bool, bootstrap: int
) -> None:
    """Check the options before any work is done. Raises UsageError."""
    if published and tokenize is not None:
        raise UsageError("--published has its own tokeniser: leave out --tokenize.")
    if compares and bootstrap < 2:
        raise UsageError(
            f"--baseline compares by paired bootstrap, which needs --bootstrap 2 or more, but it is {bootstrap}."
        )
    if published:
        from nmt.evaluation.metrics import published_form

        published_form(["a"], language or "en")
    _check_tokenizer(tokenize)


def _check_tokenizer(tokenize: str | None) -> None:
    """Raise UsageError if the tokeniser cannot be used."""
    from nmt.evaluation.metrics import check_tokenizer

    if tokenize is not None:
        check_tokenizer(tokenize)


def _check_replacing(lexicon: Path | None, *, replace: bool) -> None:
    """Raise UsageError for options that only apply to a model's translations."""
    if replace or lexicon is not None:
        raise UsageError("--replace-unknown and --lexicon change what a MODEL writes, not what --hyp holds.")


# --- reading the text -------------------------------------------------------------------------------------------


def _from_files(hyp: Path | None, ref: Sequence[Path] | None, language: str | None, baseline: Path | None) -> _Text:
    if hyp is None or not ref:
        raise UsageError("There is nothing to evaluate: give a MODEL, or --hyp and --ref.")
    translations = _read(hyp)
    references = [_matching(path, len(translations), hyp) for path in ref]
    other = None if baseline is None else _matching(baseline, len(translations), hyp)
    return _Text(" ".join(map(str, ref)), language, str(hyp), translations, references, other)


def _read(path: Path) -> list[str]:
    """Read the lines of a file or of stdin."""
    from nmt.data.lines import lines_of

    with open_input(path) as stream:
        return list(lines_of(stream, "stdin" if path == STANDARD else str(path)))


def _matching(path: Path, count: int, other: Path | str) -> list[str]:
    """Read the lines of a file. Raises DataError if there are not `count` lines."""
    lines = _read(path)
    if len(lines) != count:
        raise DataError(
            f"{path} has {counted(len(lines), 'line')}, but {other} has {count:,}: the lines do not correspond."
        )
    return lines


def _corpus(bundle: Bundle, split: str) -> ParallelCorpus:
    """Load the text of `test`, `valid` or a locator."""
    from nmt.data.corpus import load_corpus

    data = bundle.recipe.data
    locator = {"test": data.test, "valid": data.valid}.get(split, split)
    if locator is None:
        raise UsageError("The recipe of this model names no data.test: give --split valid or the locator of a corpus.")
    return load_corpus(locator, source=data.source, target=data.target)


def _translate(bundle: Bundle, corpus: ParallelCorpus, *, quiet: bool, **options: Any) -> list[str]:
    translator = build_translator([bundle], alignments=False, **options)
    translations = translator.stream(corpus.source)
    return [item.text for item in with_progress(translations, "translating", total=len(corpus), quiet=quiet)]


def _alignment_error_rate(
    bundle: Bundle, corpus: ParallelCorpus, *, quiet: bool, bootstrap: int, **options: Any
) -> AlignmentErrorRate | None:
    """The AER of the attention when the model is forced to produce the references; None without gold links."""
    from nmt.alignment.error_rate import error_rate
    from nmt.alignment.extraction import word_links
    from nmt.alignment.gold import gold_links
    from nmt.alignment.hypothesis_alignment import word_alignment

    gold = gold_links(corpus.name, source=bundle.recipe.data.source)
    if gold is None or not bundle.recipe.model.has_attention:
        return None
    translator = build_translator([bundle], **options)
    references = with_progress(translator.stream_scores(corpus.pairs()), "aligning", total=len(corpus), quiet=quiet)
    links = [word_links(word_alignment(item, bundle), bundle.recipe) for item in references]
    return error_rate(links, gold, bootstrap=bootstrap)


# --- printing ---------------------------------------------------------------------------------------------------


def _published_form(language: str | None) -> Callable[[list[str]], list[str]]:
    from nmt.evaluation.metrics import published_form

    if language is None:
        raise UsageError("--published needs the target language: give --language, for instance --language de.")
    return lambda lines: published_form(lines, language)


def _report(
    text: _Text, errors: AlignmentErrorRate | None, *, as_json: bool, tokenize: str | None, **options: Any
) -> None:
    from nmt.evaluation import metrics

    options["tokenize"] = metrics.choose_tokenizer(text.language, tokenize)
    lines = [*text.translations, *text.references[0]]
    if warning := metrics.tokenizer_warning(lines, options["tokenize"]):
        _log.warning("%s", warning)
    scores = metrics.evaluate(text.translations, text.references, **options)
    comparisons: tuple[Comparison, ...] = ()
    if text.baseline is not None:
        systems = {"baseline": text.baseline, "system": text.translations}
        comparisons = metrics.compare(systems, text.references, **options)
    if as_json:
        typer.echo(json.dumps(_as_json(text, scores, comparisons, errors), ensure_ascii=False, indent=2))
        return
    typer.echo(metrics.format_scores(scores))
    if errors is not None:
        typer.echo(str(errors))
    if comparisons:
        typer.echo("\n" + metrics.format_comparison(comparisons))


def _as_json(
    text: _Text, scores: Sequence[MetricScore], comparisons: Sequence[Comparison], errors: AlignmentErrorRate | None
) -> dict[str, Any]:
    return {
        "text": text.name,
        "system": text.system,
        "sentences": len(text.references[0]),
        "scores": [score.to_dict() for score in scores],
        "comparison": [item.to_dict() for item in comparisons],
        "alignment": None if errors is None else asdict(errors),
    }
