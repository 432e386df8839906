"""BLEU, chrF and TER by sacreBLEU (Post 2018), with signature, confidence interval and sample size.

sacreBLEU is imported on first use, so importing this module is cheap.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from unicodedata import is_normalized

from nmt.errors import DataError, UsageError
from nmt.evaluation.randomization import randomization_test
from nmt.runtime.wording import counted, in_columns
from nmt.text.languages import base_language
from nmt.text.scripts import lacks_spaces

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

References = Sequence[str] | Sequence[Sequence[str]]
METRICS = ("bleu", "chrf", "chrf++", "ter")
DEFAULT_METRICS = ("bleu", "chrf", "ter")
VALIDATION_SCORES = {"bleu": "BLEU", "chrf": "chrF"}
"""Metrics of validation that compare translations, with their display names."""

_TOKENIZERS = {"zh": "zh", "yue": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
"""Tokenizers of sacreBLEU for single languages."""
_SPLIT_ON_SPACES = ("13a", "intl", "none")
_LONGEST_NGRAM = 4
"""Of BLEU."""


class MetricOptions(TypedDict, total=False):
    """How metrics are computed.

    Attributes:
        language: target language; it decides the tokenizer of BLEU, and whether TER separates Asian characters.
        tokenize: sacreBLEU's tokenizer for BLEU (13a, intl, zh, ja-mecab, char, ...); None chooses it by language. chrF and
            TER do not use it.
        lowercase: compute BLEU and chrF in lower case. TER always does, as in sacreBLEU.
    """

    language: str | None
    tokenize: str | None
    lowercase: bool


@dataclass(frozen=True)
class MetricScore:
    """A corpus score with its signature and confidence interval.

    Attributes:
        metric: sacreBLEU's name: `BLEU`, `chrF2`, `chrF2++`, `TER`.
        score: the score of the corpus, from 0 to 100. For TER lower is better, and it may exceed 100.
        signature: sacreBLEU's signature, which makes the score reproducible.
        sentences: number of lines scored.
        mean: mean of the bootstrap resamples; None without bootstrap.
        margin: half the width of the 95 % confidence interval, which is mean +- margin; None without bootstrap.
        detail: for BLEU the n-gram precisions, brevity penalty and lengths.
    """

    metric: str
    score: float
    signature: str
    sentences: int
    mean: float | None = None
    margin: float | None = None
    detail: str = ""

    def __str__(self) -> str:
        return format_scores([self])


@dataclass(frozen=True)
class Comparison:
    """The score of one system, and whether it differs from the baseline.

    Attributes:
        system: name of the system.
        score: its score.
        p_value: how often systems whose translations are swapped at random differ at least as much; None for the baseline.
    """

    system: str
    score: MetricScore
    p_value: float | None = None


def choose_tokenizer(language: str | None, tokenize: str | None = None) -> str:
    """The tokenizer for BLEU: the given one, or sacreBLEU's for the target language.

    That is `zh`, `ja-mecab` or `ko-mecab`, and `13a` for all other languages. Without MeCab and its dictionary it is `char`.
    Script and country are ignored: `zh-TW` and `zho_Hans` are Chinese.
    """
    if tokenize is not None:
        return tokenize
    tokenizer = _TOKENIZERS.get(base_language(language or ""))
    if tokenizer is None:
        return "13a"
    try:
        check_tokenizer(tokenizer)
    except UsageError:
        return "char"
    return tokenizer


def check_tokenizer(tokenizer: str) -> None:
    """Raise UsageError if sacreBLEU does not have the tokenizer, or something it needs is not installed."""
    _bleu(tokenizer, lowercase=False, quiet=True)


def bleu(hypotheses: Sequence[str], references: References, **options: Unpack[MetricOptions]) -> float:
    """Corpus BLEU (Papineni et al. 2002), without interval.

        BLEU = BP exp(1/4 sum_n log p_n),  BP = min(1, exp(1 - r/c)),  n = 1 ... 4

    Args and errors are those of `evaluate`.
    """
    return score(hypotheses, references, "bleu", **options).score


def sentence_bleu(
    hypothesis: str, reference: str, *, language: str | None = None, tokenize: str | None = None
) -> float:
    """Smoothed BLEU of one sentence, with n-grams no longer than the hypothesis (Chen and Cherry 2014, method 3).

    It finds sentences worth looking at, and is too coarse to compare systems. The tokenizer is that of `bleu`.
    """
    from sacrebleu import BLEU

    metric = BLEU(effective_order=True, tokenize=choose_tokenizer(language, tokenize))
    return float(metric.sentence_score(hypothesis, [reference]).score)


def score(
    hypotheses: Sequence[str], references: References, metric: str, **options: Unpack[MetricOptions]
) -> MetricScore:
    """One score without interval, as used to select the best model in training.

    Args and errors are those of `evaluate`.
    """
    streams = _aligned(hypotheses, references)
    return _score(_metric(metric, quiet=True, **options), list(hypotheses), streams, bootstrap=0)


def bleu_warning(lines: Sequence[str], tokenizer: str) -> str | None:
    """Why BLEU means nothing for these lines: each is a single word, or none has as many tokens as the longest n-gram; else None."""
    if tokenizer in _SPLIT_ON_SPACES and lacks_spaces("\n".join(lines)):
        return (
            f"The text is written without spaces, but the tokenizer {tokenizer} splits at spaces, so that BLEU means nothing: "
            "use --tokenize zh, ja-mecab, char or flores200 (evaluation.tokenize in a recipe), or --language."
        )
    split = _bleu(tokenizer, lowercase=False, quiet=True)._preprocess_segment
    if any(len(split(line).split()) >= _LONGEST_NGRAM for line in lines):
        return None
    return (
        f"No line has {_LONGEST_NGRAM} tokens, the longest n-gram of BLEU, so that BLEU is 0 however good the translations "
        "are: compare by chrF, which counts characters."
    )


def composition_warning(hypotheses: Sequence[str], references: Sequence[str]) -> str | None:
    """A warning if only one of two texts spells letters as Unicode composes them (NFC), so that equal words differ; else None."""
    counts = [sum(not is_normalized("NFC", line) for line in lines) for lines in (hypotheses, references)]
    if all(counts) or not any(counts):
        return None
    in_parts, composed = ("translations", "references") if counts[0] else ("references", "translations")
    return (
        f"The {in_parts} spell letters in parts (not NFC) in {counted(max(counts), 'line')}, the {composed} in none, so that equal "
        "words count as different: compose them, as with `uconv -x NFC`."
    )


def evaluate(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    bootstrap: int = 1000,
    **options: Unpack[MetricOptions],
) -> tuple[MetricScore, ...]:
    """Score translations, with 95 % confidence intervals by bootstrap resampling (Koehn 2004).

    Args:
        hypotheses: detokenized translations.
        references: their references, or several complete lists of them.
        metrics: any of `METRICS`.
        bootstrap: number of resamples, by the seed in $SACREBLEU_SEED (else 12345); below 2 there is no interval.
        options: `language`, `tokenize` and `lowercase`, see `MetricOptions`.

    Raises:
        DataError: there are no lines, or not as many references as hypotheses.
        UsageError: the metric or tokenizer is unknown, or something it needs is not installed.
    """
    streams = _aligned(hypotheses, references)
    scorers = [_metric(name, **options) for name in metrics]
    return tuple(_score(scorer, list(hypotheses), streams, bootstrap) for scorer in scorers)


def compare(
    systems: Mapping[str, Sequence[str]],
    references: References,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    bootstrap: int = 1000,
    **options: Unpack[MetricOptions],
) -> tuple[Comparison, ...]:
    """Test whether systems differ from the first one, by paired approximate randomization (`randomization_test`).

    Args:
        systems: names of the systems and their translations; the first is the baseline.
        references, metrics, options: as for `evaluate`.
        bootstrap: number of resamples for the intervals, and of shuffles for the test.

    Returns:
        One comparison per metric and system, grouped by metric, baseline first.

    Raises:
        DataError, UsageError: as for `evaluate`; also for fewer than two systems or resamples.
    """
    if len(systems) < 2 or bootstrap < 2:
        raise UsageError(f"A comparison needs two systems and two resamples, but got {len(systems)} and {bootstrap}.")
    for name, hypotheses in systems.items():
        streams = _aligned(hypotheses, references, name)
    scorers = [_metric(name, **options) for name in metrics]
    return tuple(row for scorer in scorers for row in _comparisons(scorer, systems, streams, bootstrap))


def format_scores(scores: Iterable[MetricScore]) -> str:
    """Format one score per line, with aligned columns: `BLEU    34.52 ± 1.03  nrefs:1|bs:1000|...`."""
    return "\n".join(in_columns([(score.metric, _figure(score), score.signature) for score in scores]))


def mean_score(scores: Sequence[MetricScore]) -> MetricScore:
    """The mean of the scores of several texts, each of equal weight."""
    first, signatures = scores[0], dict.fromkeys(score.signature for score in scores)
    mean, lines = fmean(score.score for score in scores), sum(score.sentences for score in scores)
    return MetricScore(first.metric, mean, " / ".join(signatures), lines)


def format_rows(rows: Mapping[str, Sequence[MetricScore]]) -> str:
    """Format one line per text with its scores, a header, and the signatures of the last row below."""
    last = rows[[*rows][-1]]
    table = [("", *(score.metric for score in last)), *((name, *map(_figure, scores)) for name, scores in rows.items())]
    return "\n".join([*in_columns(table), "", *in_columns([(score.metric, score.signature) for score in last])])


def format_comparison(comparisons: Iterable[Comparison]) -> str:
    """Format one line per system, with p-values against the first, and the signatures below; `*` marks p < 0.05."""
    rows: dict[str, list[str]] = {}
    signatures = {}
    for row in comparisons:
        p_value = "" if row.p_value is None else f" (p = {row.p_value:.4f}{'*' if row.p_value < 0.05 else ''})"
        rows.setdefault(row.system, [row.system]).append(_figure(row.score) + p_value)
        signatures[row.score.metric] = row.score.signature
    return "\n".join([*in_columns([("", *signatures), *rows.values()]), "", *in_columns(list(signatures.items()))])


def published_form(lines: Iterable[str], language: str | None) -> list[str]:
    """Lowercase, normalize punctuation and tokenize with Moses, as in published Multi30k results.

    Score hypotheses and references in this form with `tokenize="none"`. The steps are those of the corpus's own
    `task1-tokenize.sh`, except that no character is escaped, which does not change any score.

    Args:
        lines: detokenized text.
        language: its code (`en`, `de`, `fr`, ...).

    Raises:
        UsageError: the language is not known, sacremoses is not installed, or has no rules for the language.
    """
    if language is None:
        raise UsageError("--published needs the target language: give --language, for instance --language de.")
    try:
        moses = importlib.import_module("sacremoses")
    except ImportError:
        raise UsageError('The published form needs sacremoses: pip install "attentional-nmt[moses]".') from None
    languages = set(moses.corpus.NonbreakingPrefixes().available_langs.values()) | {"ja", "ko"}
    if language not in languages:
        raise UsageError(f"Moses has no rules for the language '{language}', only for {', '.join(sorted(languages))}.")
    normalize = moses.MosesPunctNormalizer(lang=language).normalize
    tokenize = moses.MosesTokenizer(lang=language).tokenize
    return [tokenize(normalize(line.lower()), escape=False, return_str=True) for line in lines]


# --- sacreBLEU --------------------------------------------------------------------------------------------------


def _aligned(hypotheses: Sequence[str], references: References, name: str = "") -> list[list[str]]:
    """The reference lists, checked to be as long as the hypotheses. Raises DataError."""
    lines = [line for line in references if isinstance(line, str)]
    streams = [lines] if lines else [list(stream) for stream in references]
    whose = f"{name}: there" if name else "There"
    if not hypotheses:
        raise DataError(f"{whose} are no translations to score.")
    for number, stream in enumerate(streams or [[]], start=1):
        if len(stream) != len(hypotheses):
            which = f" in list {number}" if len(streams) > 1 else ""
            counts = f"{counted(len(hypotheses), 'translation')}, but {counted(len(stream), 'reference')}{which}"
            raise DataError(f"{whose} are {counts}: the lines do not correspond.")
    return streams


def _metric(
    name: str,
    *,
    language: str | None = None,
    tokenize: str | None = None,
    lowercase: bool = False,
    quiet: bool = False,
) -> Metric:
    """A metric of sacreBLEU; `quiet` suppresses its warning that the text looks tokenized."""
    from sacrebleu import CHRF, TER

    match name.lower():
        case "bleu":
            tokenizer = choose_tokenizer(language, tokenize)
            return _bleu(tokenizer, lowercase=lowercase, quiet=quiet or tokenizer == "none")
        case "chrf" | "chrf++" as kind:
            return _with_float_scores(CHRF(word_order=2 if kind == "chrf++" else 0, lowercase=lowercase))
        case "ter":
            asian = base_language(language or "") in ("zh", "yue", "ja")
            return _with_float_scores(TER(normalized=asian, asian_support=asian))
        case _:
            raise UsageError(f"There is no metric '{name}'; choose from {', '.join(METRICS)}.")


def _bleu(tokenizer: str, *, lowercase: bool, quiet: bool) -> Metric:
    from sacrebleu import BLEU

    if tokenizer not in BLEU.TOKENIZERS:
        raise UsageError(f"There is no tokenizer '{tokenizer}'; choose from {', '.join(BLEU.TOKENIZERS)}.")
    try:
        return BLEU(tokenize=tokenizer, lowercase=lowercase, force=quiet)
    except (ImportError, RuntimeError, OSError, AssertionError) as error:  # AssertionError: another dictionary of MeCab
        extra = {"ja-mecab": "ja", "ko-mecab": "ko"}.get(tokenizer)
        remedy = f'pip install "sacrebleu[{extra}]"' if extra else " ".join(str(error).split())
        raise UsageError(f"The tokenizer {tokenizer} cannot be used here: {remedy}.") from None


def _with_float_scores(metric: Metric) -> Metric:
    """The metric with float scores only: sacreBLEU's interval fails on a mix of float32 and the floats of special cases.

    Those are text without any match (chrF) and blank references (TER), for which it computes nothing.
    """
    compute = metric._compute_score_from_stats

    def compute_floats(stats: list[int]) -> Any:
        result = compute(stats)
        result.score = float(result.score)
        return result

    metric._compute_score_from_stats = compute_floats  # type: ignore[method-assign]
    return metric


def _score(scorer: Metric, hypotheses: list[str], streams: list[list[str]], bootstrap: int) -> MetricScore:
    result = scorer.corpus_score(hypotheses, streams, n_bootstrap=max(bootstrap, 1))
    # sacreBLEU has no public attributes for the interval and the n-gram precisions.
    mean, margin = (float(result._mean), float(result._ci)) if bootstrap > 1 else (None, None)
    signature = str(scorer.get_signature())
    return MetricScore(result.name, float(result.score), signature, len(hypotheses), mean, margin, result._verbose)


def _comparisons(
    scorer: Metric, systems: Mapping[str, Sequence[str]], streams: list[list[str]], shuffles: int
) -> Iterator[Comparison]:
    """The comparisons by one metric, baseline first."""
    from numpy.random import default_rng

    first: Any = None
    for name, hypotheses in systems.items():
        score = _score(scorer, list(hypotheses), streams, shuffles)
        signature = scorer.get_signature()
        signature.update("ar", shuffles)
        score = replace(score, signature=str(signature))
        statistics = scorer._extract_corpus_statistics(hypotheses, streams)
        if first is None:
            first = statistics
            yield Comparison(name, score)
            continue
        p_value = randomization_test(
            first,
            statistics,
            lambda sums: float(scorer._compute_score_from_stats(sums).score),
            shuffles=shuffles,
            generator=default_rng(None if scorer.seed in (None, "none") else int(scorer.seed)),
        )
        yield Comparison(name, score, p_value)


# --- text -------------------------------------------------------------------------------------------------------


def _figure(score: MetricScore) -> str:
    margin = "" if score.margin is None else f" ± {score.margin:.2f}"
    return f"{score.score:6.2f}{margin}"
