"""`nmt evaluate`: score a model on held-out text, or translations in a file."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.cli import options
from nmt.cli.options import argument, file_option, flag, option
from nmt.cli.streams import read_side, write_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import with_progress
from nmt.runtime.wording import counted

_scoring_option = partial(option, panel="Scores")


def evaluate(
    models: Annotated[list[Path] | None, argument("Models, scored as an ensemble; or --hyp.", "MODEL")] = None,
    split: options.Split = "test",
    to: options.To = None,
    hyp: Annotated[
        list[Path] | None,
        file_option("Translations; several are compared; - is stdin.", "--hyp", default="the model's"),
    ] = None,
    ref: Annotated[list[Path] | None, file_option("References of --hyp; may be repeated.", "--ref")] = None,
    baseline: Annotated[Path | None, file_option("Translations by another system, to compare with.")] = None,
    as_json: options.AsJson = False,
    output: Annotated[Path | None, file_option("Also write the translations.", "--output", "-o")] = None,
    language: Annotated[
        str | None, _scoring_option("Language of --hyp, such as de.", "CODE", default="unknown")
    ] = None,
    metrics: Annotated[str, _scoring_option("Any of bleu, chrf, chrf++ and ter.", "LIST")] = "bleu,chrf,ter",
    tokenize: Annotated[
        str | None, _scoring_option("sacreBLEU tokenizer.", "NAME", default="by recipe or language")
    ] = None,
    lowercase: Annotated[bool, flag("--lowercase", "Compare BLEU and chrF in lower case.", panel="Scores")] = False,
    published: Annotated[
        bool, flag("--published", "Score as Multi30k papers do: lowercased, Moses tokens.", panel="Scores")
    ] = False,
    bootstrap: Annotated[int, _scoring_option("Resamples, and shuffles of systems; 0: none.", "N", min=0)] = 1000,
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
      nmt evaluate --hyp base.de --hyp new.de --ref test.de --metrics bleu,chrf++

    Details:

    Scores and signatures are sacreBLEU's; `±` is half a 95 % bootstrap interval. Several --hyp, or --baseline, make a table of
    systems with p-values against the first of them (`*`: below 0.05) by paired approximate randomization.
    The default tokenizer is zh for Chinese, ja-mecab for Japanese, ko-mecab for Korean (char if MeCab is not installed),
    else 13a. Several texts have a row each, and the mean. A locator names a corpus, such as multi30k/val.
    Text with gold links also gets the AER of the attention on the references: the sample, `hansards-en-fr/gold.trial`, or
    text with a Pharaoh file (`test.align` beside `test.en`).
    """
    options.set_up(quiet=quiet, threads=threads)
    from nmt.comparison.evaluation import Evaluation
    from nmt.comparison.evaluation import evaluate as evaluate_model
    from nmt.comparison.held_out import held_out_texts

    models = models or []
    if not models and not (hyp and ref):
        raise UsageError("There is nothing to evaluate: give a MODEL, or --hyp and --ref.")
    if models and (hyp or ref or language):
        raise UsageError("Give a MODEL, or --hyp with --ref and --language, but not both.")
    if published and tokenize is not None:
        raise UsageError("--published has its own tokenizer: leave out --tokenize.")
    if (baseline is not None or len(hyp or []) > 1) and bootstrap < 2:
        raise UsageError(f"Systems are compared by shuffles, which needs --bootstrap 2 or more, but it is {bootstrap}.")
    scoring: Any = {"tokenize": tokenize, "lowercase": lowercase, "published": published, "bootstrap": bootstrap}
    scoring["metrics"] = metrics.split(",")
    decoding = options.decoding_settings(
        settings, beam_size=beam_size, length_penalty=length_penalty, mbr_samples=mbr_samples
    )
    if hyp and ref:
        *others, last = hyp if baseline is None else [baseline, *hyp]
        lines = read_side(last)
        references = [_matching(path, len(lines), last) for path in ref]
        compared = {str(path): _matching(path, len(lines), last) for path in others}
        text = Evaluation(" ".join(map(str, ref)), str(last), lines, references)
        result = text.scored(compared, language=language, **scoring)
    else:
        bundles = options.load_models(models, device)
        texts = held_out_texts(bundles[0].recipe, split, to)
        translator = options.build_translator(
            bundles,
            precision=precision,
            batch_tokens=batch_tokens,
            replace_unknown=options.unknown_words(bundles[0], models[0], lexicon, replace=replace_unknown),
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


def _matching(path: Path, count: int, other: Path | str) -> list[str]:
    """Read the lines of a file. Raises DataError if there are not `count` lines."""
    lines = read_side(path)
    if len(lines) != count:
        raise DataError(
            f"{path} has {counted(len(lines), 'line')}, but {other} has {count:,}: the lines do not correspond."
        )
    return lines
