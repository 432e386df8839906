"""The scores of translations: those of a model, which translates a corpus first, or those in a file.

Only a model needs PyTorch, which is imported with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from nmt.alignment.error_rate import AlignmentErrorRate, error_rate
from nmt.alignment.gold import gold_links
from nmt.alignment.links import GoldLinks
from nmt.comparison.held_out import held_out_texts
from nmt.data.corpus import ParallelCorpus
from nmt.errors import UsageError
from nmt.evaluation import metrics as scoring
from nmt.evaluation.metrics import DEFAULT_METRICS, Comparison, MetricScore
from nmt.recipe import Recipe
from nmt.text.marks import marks_warning

if TYPE_CHECKING:
    import torch

    from nmt.decoding.loading import Folder
    from nmt.decoding.translator import Translator

_log = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")
WithProgress = Callable[[Iterable[ItemT], str, int], Iterator[ItemT]]
"""Passes items on while showing progress; takes the items, what is being done, and the number of items."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The scores of translations. `print` shows them as `nmt evaluate` does.

    Attributes:
        text: name of the text.
        system: what translated it.
        translations: the translations.
        references: one list of references, or several.
        scores: BLEU, chrF and TER, or what other metrics were asked for, with signatures and confidence intervals.
        comparisons: the same scores beside those of other systems, with p-values against the first.
        alignment: error rate of the attention on the references; None for text without gold links.
        languages: source and target language; none if they are not known.
        texts: the evaluation of each text, if these scores are the means of several.
    """

    text: str
    system: str
    translations: list[str]
    references: list[list[str]]
    scores: tuple[MetricScore, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    alignment: AlignmentErrorRate | None = None
    languages: tuple[str, str] | None = None
    texts: tuple[Evaluation, ...] = ()

    @classmethod
    def mean(cls, texts: Sequence[Evaluation]) -> Evaluation:
        """The evaluations of several texts, and the means of their scores, which have no intervals."""
        by_metric = zip(*(text.scores for text in texts), strict=True)
        return cls(
            " + ".join(text.text for text in texts),
            texts[0].system,
            [line for text in texts for line in text.translations],
            [[line for text in texts for line in text.references[0]]],
            tuple(map(scoring.mean_score, by_metric)),
            texts=tuple(texts),
        )

    def of_system(self, name: str) -> Evaluation:
        """The same, with another name of what translated."""
        return replace(self, system=name, texts=tuple(text.of_system(name) for text in self.texts))

    @property
    def by_metric(self) -> dict[str, MetricScore]:
        """The scores by sacreBLEU's name, such as `chrF2++`."""
        return {score.metric: score for score in self.scores}

    @property
    def bleu(self) -> MetricScore:
        """BLEU."""
        return self.by_metric["BLEU"]

    @property
    def chrf(self) -> MetricScore:
        """chrF."""
        return self.by_metric["chrF2"]

    @property
    def ter(self) -> MetricScore:
        """TER; lower is better."""
        return self.by_metric["TER"]

    def __repr__(self) -> str:
        scores = "".join(f", {score.metric} {score.score:.2f}" for score in self.scores)
        return f"Evaluation({self.system!r}, {self.text!r}{scores})"

    def __str__(self) -> str:
        if self.texts:
            rows = {"-".join(text.languages or ()): text.scores for text in self.texts}
            return scoring.format_rows({**rows, "mean": self.scores})
        scores = scoring.format_comparison(self.comparisons) if self.comparisons else scoring.format_scores(self.scores)
        return scores if self.alignment is None else f"{scores}\n{self.alignment}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "text": self.text,
            "system": self.system,
            "sentences": len(self.references[0]),
            "scores": list(map(asdict, self.scores)),
            "comparison": list(map(asdict, self.comparisons)),
            "alignment": None if self.alignment is None else asdict(self.alignment),
            **({"languages": list(self.languages)} if self.languages else {}),
            **({"texts": [text.to_dict() for text in self.texts]} if self.texts else {}),
        }

    def scored(
        self,
        others: Mapping[str, Sequence[str]],
        *,
        language: str | None = None,
        metrics: Sequence[str] = DEFAULT_METRICS,
        tokenize: str | None = None,
        lowercase: bool = False,
        published: bool = False,
        bootstrap: int = 1000,
    ) -> Evaluation:
        """The same with scores, beside those of the translations by others; arguments as for `evaluate`, and its errors."""
        lines, references = self.translations, self.references
        systems = {**others, self.system: lines}
        if published:
            form = partial(scoring.published_form, language=language)
            tokenize, lines, references = "none", form(lines), [form(side) for side in references]
            systems = {name: form(side) for name, side in systems.items()}
        options: dict[str, Any] = {
            "language": language,
            "tokenize": scoring.choose_tokenizer(language, tokenize),
            "lowercase": lowercase,
            "bootstrap": bootstrap,
            "metrics": metrics,
        }
        bleu_warning = (
            scoring.bleu_warning([*lines, *references[0]], options["tokenize"]) if "bleu" in metrics else None
        )
        marks = marks_warning([*self.translations, *self.references[0]], "translations and references")
        for warning in filter(None, (bleu_warning, scoring.composition_warning(lines, references[0]), marks)):
            _log.warning("%s", warning)
        scores = scoring.evaluate(lines, references, **options)
        return replace(
            self, scores=scores, comparisons=scoring.compare(systems, references, **options) if others else ()
        )


def evaluate(
    model: Translator | Folder | Sequence[Folder],
    corpus: str | ParallelCorpus | Sequence[ParallelCorpus] = "test",
    *,
    baseline: Sequence[str] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    tokenize: str | None = None,
    lowercase: bool = False,
    published: bool = False,
    bootstrap: int = 1000,
    device: str | torch.device = "auto",
    progress: WithProgress[Any] = lambda items, _, __: iter(items),
    **options: Any,
) -> Evaluation:
    """Translate a corpus, and score the translations by sacreBLEU, as `nmt evaluate` does.

        result = nmt.evaluate("runs/mine", "test", beam_size=10)
        str(result)  # what the command prints
        result.bleu.score, result.bleu.margin, result.bleu.signature

    Args:
        model: a `Translator`, or what `nmt.load` takes: a model folder, or several for an ensemble.
        corpus: `test` or `valid` of the (first) model's recipe, the locator of a corpus, or one or several from
            `nmt.load_corpus`.
        baseline: translations by another system, to compare with by paired approximate randomization.
        metrics: any of `bleu`, `chrf`, `chrf++` and `ter`.
        tokenize: sacreBLEU's tokenizer for BLEU. Default: the recipe's, else by language.
        lowercase: compute BLEU and chrF in lower case.
        published: score as Multi30k papers do, lowercased and as Moses tokens.
        bootstrap: number of resamples for confidence intervals, and of shuffles for `baseline`; 0 for none.
        device: where to compute, if a folder is loaded.
        progress: shows the progress; by default nothing does.
        options: options of `nmt.load`.

    Returns:
        The scores and the translations; of several texts the means, and the scores of each in `texts`. For text with gold
        links, also the alignment error rate of the attention.

    Raises:
        DataError: a folder or corpus cannot be used, or `baseline` has another number of lines.
        UsageError: an option is wrong, a metric or tokenizer cannot be used, or the recipe names no such text.
    """
    from nmt.decoding.loading import load
    from nmt.decoding.translator import Translator

    translator = model.with_options(**options) if isinstance(model, Translator) else load(model, device, **options)
    recipe = translator.recipe
    if published and tokenize is not None:
        raise UsageError("published has its own tokenizer: leave out tokenize.")
    if isinstance(corpus, str):
        texts = held_out_texts(recipe, corpus, translator.to)
    else:
        texts = [corpus] if isinstance(corpus, ParallelCorpus) else list(corpus)
    # What cannot be scored so fails before any work is done.
    scoring.evaluate(["a"], ["a"], metrics=metrics, bootstrap=0)
    for text in texts:
        if published:
            scoring.published_form(["a"], text.languages[1])
        else:
            scoring.check_tokenizer(tokenize or tokenizer_of(recipe, text))
    if baseline is not None and len(texts) > 1:
        raise UsageError(
            f"A baseline translates one text, but there are {len(texts)}: choose one by its language (to, --to)."
        )
    system = "translator" if isinstance(model, Translator) else str(model)
    evaluations = [
        _translated(translator, system, text, bootstrap, progress).scored(
            {} if baseline is None else {"baseline": baseline},
            language=text.languages[1],
            metrics=metrics,
            tokenize=None if published else tokenize or recipe.evaluation.tokenize,
            lowercase=lowercase,
            published=published,
            bootstrap=bootstrap,
        )
        for text in texts
    ]
    return evaluations[0] if len(texts) == 1 else Evaluation.mean(evaluations)


def _translated(
    translator: Translator, system: str, text: ParallelCorpus, bootstrap: int, progress: WithProgress[Any]
) -> Evaluation:
    """The translations of a text, not scored, with the error rate of the attention if it has gold links."""
    source, target = text.languages
    translator = translator.with_options(alignments=False, to=target)
    results = progress(translator.stream(text.source), "translating", len(text))
    translations = [result.text for result in results]
    gold, errors = gold_links(text.name, source=source), None
    if gold is not None and translator.recipe.model.has_attention:
        aligner = translator.with_options(alignments=True, posterior=False)
        errors = forced_error_rate(aligner, text, gold, bootstrap=bootstrap, progress=progress)
    return Evaluation(text.name, system, translations, [list(text.target)], alignment=errors, languages=text.languages)


def tokenizer_of(recipe: Recipe, text: ParallelCorpus) -> str:
    """sacreBLEU's tokenizer for translations of a text by a recipe's model."""
    return scoring.choose_tokenizer(text.languages[1], recipe.evaluation.tokenize)


def forced_error_rate(
    translator: Translator,
    text: ParallelCorpus,
    gold: Sequence[GoldLinks],
    *,
    bootstrap: int = 0,
    progress: WithProgress[Any],
) -> AlignmentErrorRate:
    """The error rate of a model's links when it is forced to produce the references."""
    references = progress(translator.stream_scores(text.pairs()), "aligning", len(text))
    return error_rate([reference.links for reference in references], gold, bootstrap=bootstrap)
