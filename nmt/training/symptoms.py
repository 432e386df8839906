"""What validations show of a run that goes wrong: it diverges, overfits, or translates worse than a copy of the source. Said once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nmt.runtime.wording import perplexity
from nmt.training.bad_updates import Diverged

EXPLOSION = 10
"""How many times the lowest perplexity of validation shows that training diverged."""
RISE = 1.2
"""How many times the lowest perplexity of validation shows overfitting, if that of training has fallen since."""
IN_A_ROW = 3
"""Validations in a row that show it, and validations after the warm-up before a copy of the source is compared."""


@dataclass
class _Record:
    """What is known of the validations so far. The names are those in the state."""

    lowest: float | None = None
    """The lowest perplexity of validation."""
    lowest_in_training: float | None = None
    """That of training before it; None if nothing was trained."""
    lowest_at: int = 0
    """Its update."""
    risen: int = 0
    """Validations in a row that are clearly above it."""
    after_warmup: int = 0
    """Validations after the warm-up."""
    score: float | None = None
    """chrF of the model; None if validation does not translate."""
    said: list[str] = field(default_factory=list)
    """The symptoms that were said."""


@dataclass
class Symptoms:
    """Follows the validations of a run.

    Attributes:
        copying: the scores of the untranslated source, by metric; none if validation does not translate.
        warmup: updates in which the learning rate rises.
    """

    copying: Mapping[str, float]
    warmup: int
    record: _Record = field(default_factory=_Record)

    def state_dict(self) -> dict[str, Any]:
        """What is known of the validations so far, and what was said."""
        return {"symptoms": asdict(self.record)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`; earlier versions stored nothing."""
        self.record = _Record(**state.get("symptoms", {}))

    def of_validation(self, figures: Mapping[str, Any], *, improved: bool) -> Iterator[str]:
        """What the next validation shows, one sentence for each symptom that was not said before.

        Args:
            figures: the record of the validation.
            improved: whether its weights are the model now.
        """
        record = self.record
        if improved:
            self.adopt(figures)
        if record.lowest is None or figures["perplexity"] < record.lowest:
            record.lowest, record.lowest_in_training = figures["perplexity"], figures.get("train_perplexity")
            record.lowest_at, record.risen = figures["update"], 0
        yield from self._once("divergence", self._divergence(figures))
        yield from self._once("overfitting", self._overfitting(figures))
        record.after_warmup += figures["update"] >= self.warmup
        if record.after_warmup == IN_A_ROW:
            yield from self._once("copying", self.worse_than_copying())

    def adopt(self, figures: Mapping[str, Any]) -> None:
        """Take the record of a validation whose weights are the model now."""
        self.record.score = figures.get("chrf")

    def worse_than_copying(self) -> str | None:
        """A sentence if the model scores lower than the untranslated source."""
        copied, score = self.copying.get("chrf"), self.record.score
        if copied is None or score is None or score >= copied:
            return None
        bleu = f" (BLEU {self.copying['bleu']:.2f})" if "bleu" in self.copying else ""
        return (
            f"Warning: chrF is {score:.2f} up to now, but {copied:.2f}{bleu} if the source is left untranslated: the model has learned "
            "less than to copy. Train longer, or on more text."
        )

    def _divergence(self, figures: Mapping[str, Any]) -> str | None:
        if self._has_learned(figures) or figures["perplexity"] <= EXPLOSION * (self.record.lowest or 0):
            return None
        return f"{Diverged.verdict}: perplexity is above {EXPLOSION} times the best. {Diverged.advice}"

    def _overfitting(self, figures: Mapping[str, Any]) -> str | None:
        record, current = self.record, figures["perplexity"]
        lowest, trained = record.lowest or 0, record.lowest_in_training or 0
        has_risen = self._has_learned(figures) and current > RISE * lowest
        record.risen = record.risen + 1 if has_risen else 0
        if record.risen < IN_A_ROW:
            return None
        return (
            f"Warning: the model overfits. Since update {record.lowest_at:,} the perplexity of validation has risen from "
            f"{perplexity(lowest)} to {perplexity(current)}, while that of training (with dropout, without label smoothing) has fallen "
            f"from {perplexity(trained)} to {perplexity(figures['train_perplexity'])}. More dropout, fewer updates or more text, such as "
            "back-translation, would help."
        )

    def _has_learned(self, figures: Mapping[str, Any]) -> bool:
        """Whether the perplexity of training has fallen since validation had its lowest."""
        before, now = self.record.lowest_in_training, figures.get("train_perplexity")
        return before is not None and now is not None and now < before

    def _once(self, symptom: str, sentence: str | None) -> Iterator[str]:
        if sentence is not None and symptom not in self.record.said:
            self.record.said.append(symptom)
            yield sentence
