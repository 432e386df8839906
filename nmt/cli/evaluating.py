"""`nmt evaluate`: score a model on held-out text, or translations in a file."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.cli import options
from nmt.cli.options import argument, build_translator, decoding_settings, load_models, option, set_up, unknown_words
from nmt.cli.streams import input_name, open_input, write_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import with_progress
from nmt.runtime.wording import counted

_scoring_option = partial(option, panel="Scores")


def evaluate(
    models: Annotated[
        list[Path] | None,
        argument("Models (folder, .zip, hf:owner/name), scored as an ensemble; or --hyp.", "MODEL", default=False),
    ] = None,
    split: options.Split = "test",
    to: options.To = None,
    hyp: Annotated[
        Path | None, option("Translations to score; - is stdin.", "FILE", "--hyp", default="the model's")
    ] = None,
    ref: Annotated[
        list[Path] | None, option("References of --hyp; may be repeated.", "FILE", "--ref", default="none")
    ] = None,
    baseline: Annotated[
        Path | None, option("Translations by another system, to compare with.", "FILE", default="none")
    ] = None,
    as_json: options.AsJson = False,
    output: Annotated[
        Path | None, option("Also write the translations.", "FILE", "--output", "-o", default="none")
    ] = None,
    language: Annotated[
        str | None, _scoring_option("Target language of --hyp, such as de or ja.", "CODE", default="unknown")
    ] = None,
    tokenize: Annotated[
        str | None, _scoring_option("sacreBLEU tokenizer.", "NAME", default="the recipe's, else by language")
    ] = None,
    lowercase: Annotated[bool, _scoring_option("Compare BLEU and chrF in lower case.", "", "--lowercase")] = False,
    published: Annotated[
        bool, _scoring_option("Score as Multi30k papers do: lowercased, Moses tokens.", "", "--published")
    ] = False,
    bootstrap: Annotated[int, _scoring_option("Resamples, shuffles for --baseline; 0: none.", "N", min=0)] = 1000,
    beam_size: options.BeamSize = None,
    length_penalty: options.LengthPenalty = None,
    mbr_samples: options.MbrSamples = None,
    settings: options.DecodingSettings = None,
    replace_unknown: options.ReplaceUnknown = False,
    lexicon: options.Lexicon = None,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    threads: options.Threads = None,
    batch_tokens: options.BatchTokens = None,
    quiet: options.Quiet = False,
) -> None:
    """Print BLEU, chrF and TER with confidence intervals and signatures.

    Examples:
      nmt evaluate runs/bahdanau
      nmt evaluate --hyp output.de --ref test.de --baseline other.de

    Details:

    Scores and signatures are sacreBLEU's; `±` is half a 95 % bootstrap interval, and --baseline adds p-values by paired
    approximate randomization.
    The default tokenizer is zh for Chinese, ja-mecab for Japanese, ko-mecab for Korean (char if MeCab is not installed),
    else 13a. Several texts have a row each, and the mean. A locator names a corpus, such as multi30k/val.
    Text with gold links also gets the AER of the attention on the references: the sample, `hansards-en-fr/gold.trial`, or
    text with a Pharaoh file (`test.align` beside `test.en`).
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.comparison.evaluation import Evaluation

    _check_scoring(tokenize, bootstrap, language, published=published, compares=baseline is not None)
    scoring: dict[str, Any] = {"tokenize": tokenize, "lowercase": lowercase}
    scoring |= {"published": published, "bootstrap": bootstrap}
    decoding = decoding_settings(settings, beam_size=beam_size, length_penalty=length_penalty, mbr_samples=mbr_samples)
    if not models:
        if replace_unknown or lexicon is not None:
            raise UsageError("--replace-unknown and --lexicon change what a MODEL writes, not what --hyp holds.")
        if hyp is None or not ref:
            raise UsageError("There is nothing to evaluate: give a MODEL, or --hyp and --ref.")
        lines = _read(hyp)
        references = [_matching(path, len(lines), hyp) for path in ref]
        compared = _matching(baseline, len(lines), hyp) if baseline else None
        text = Evaluation(" ".join(map(str, ref)), str(hyp), lines, references)
        result = text.scored(baseline=compared, language=language, **scoring)
    elif hyp or ref:
        raise UsageError("Give a MODEL, or --hyp with --ref, but not both.")
    elif language is not None:
        raise UsageError("--language is that of --hyp; that of what a MODEL writes is known: leave it out.")
    else:
        from nmt.comparison.evaluation import evaluate as evaluate_model
        from nmt.comparison.held_out import held_out_texts

        bundles = load_models(models, device)
        texts = held_out_texts(bundles[0].recipe, split, to)
        translator = build_translator(
            bundles,
            precision=precision,
            batch_tokens=batch_tokens,
            replace_unknown=unknown_words(bundles[0], models[0], lexicon, replace=replace_unknown),
            to=to,
            **decoding,
        )
        result = evaluate_model(
            translator,
            texts,
            baseline=_matching(baseline, len(texts[0]), texts[0].name) if baseline else None,
            progress=partial(with_progress, quiet=quiet),
            **scoring,
        )
        result = result.of_system(" + ".join(map(str, models)))
    typer.echo(json.dumps(result.to_dict(), ensure_ascii=False, indent=2) if as_json else str(result))
    if output is not None:
        write_lines(output, result.translations)


def _check_scoring(
    tokenize: str | None, bootstrap: int, language: str | None, *, published: bool, compares: bool
) -> None:
    """Raise UsageError for what would fail only after translating."""
    from nmt.evaluation.metrics import check_tokenizer, published_form

    if published and tokenize is not None:
        raise UsageError("--published has its own tokenizer: leave out --tokenize.")
    if compares and bootstrap < 2:
        raise UsageError(
            f"--baseline compares by random shuffles and needs --bootstrap 2 or more, but it is {bootstrap}."
        )
    if published:
        published_form(["a"], language or "en")
    if tokenize is not None:
        check_tokenizer(tokenize)


def _read(path: Path) -> list[str]:
    """Read the lines of a file or of stdin."""
    from nmt.data.lines import lines_of

    with open_input(path) as stream:
        return list(lines_of(stream, input_name(path)))


def _matching(path: Path, count: int, other: Path | str) -> list[str]:
    """Read the lines of a file. Raises DataError if there are not `count` lines."""
    lines = _read(path)
    if len(lines) != count:
        raise DataError(
            f"{path} has {counted(len(lines), 'line')}, but {other} has {count:,}: the lines do not correspond."
        )
    return lines
