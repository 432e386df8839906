"""The scores of translations, wherever they come from. This module needs no PyTorch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from nmt.alignment.error_rate import AlignmentErrorRate
from nmt.evaluation import metrics
from nmt.evaluation.metrics import Comparison, MetricScore

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """The scores of translations. `print` shows them as `nmt evaluate` does.

    Attributes:
        text: name of the text.
        system: what translated it.
        translations: the translations.
        references: one list of references, or several.
        scores: BLEU, chrF and TER, with signatures and confidence intervals.
        comparisons: the same scores beside those of a baseline, with p-values.
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
            tuple(map(metrics.mean_score, by_metric)),
            texts=tuple(texts),
        )

    def of_system(self, name: str) -> Evaluation:
        """The same, with another name of what translated."""
        return replace(self, system=name, texts=tuple(text.of_system(name) for text in self.texts))

    @property
    def bleu(self) -> MetricScore:
        """BLEU."""
        return self.scores[0]

    @property
    def chrf(self) -> MetricScore:
        """chrF."""
        return self.scores[1]

    @property
    def ter(self) -> MetricScore:
        """TER; lower is better."""
        return self.scores[2]

    def __str__(self) -> str:
        if self.texts:
            rows = {"-".join(text.languages or ()): text.scores for text in self.texts}
            return metrics.format_rows({**rows, "mean": self.scores})
        lines = [metrics.format_scores(self.scores)]
        lines += [] if self.alignment is None else [str(self.alignment)]
        lines += ["", metrics.format_comparison(self.comparisons)] if self.comparisons else []
        return "\n".join(lines)

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
        *,
        baseline: Sequence[str] | None = None,
        language: str | None = None,
        tokenize: str | None = None,
        lowercase: bool = False,
        published: bool = False,
        bootstrap: int = 1000,
    ) -> Evaluation:
        """The same with scores; arguments as for `evaluate`. Raises UsageError and DataError."""
        lines, references = self.translations, self.references
        systems = {} if baseline is None else {"baseline": list(baseline), "system": lines}
        if published:
            form = partial(metrics.published_form, language=language)
            tokenize, lines, references = "none", form(lines), [form(side) for side in references]
            systems = {name: form(side) for name, side in systems.items()}
        options: dict[str, Any] = {
            "language": language,
            "tokenize": metrics.choose_tokenizer(language, tokenize),
            "lowercase": lowercase,
            "bootstrap": bootstrap,
        }
        bleu_warning = metrics.bleu_warning([*lines, *references[0]], options["tokenize"])
        for warning in filter(None, (bleu_warning, metrics.composition_warning(lines, references[0]))):
            logger.warning("%s", warning)
        scores = metrics.evaluate(lines, references, **options)
        return replace(
            self, scores=scores, comparisons=metrics.compare(systems, references, **options) if systems else ()
        )
