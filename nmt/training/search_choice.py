"""Choose on the validation text how to search, once training ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from nmt.recipe import LENGTH_PENALTY, MBR_BETA, MBR_SAMPLES, Choice, DecodingConfig

LENGTH_PENALTIES = (0.0, 0.4, 0.7, 1.0, 1.1, 1.2, 1.3, 1.5, 1.8)
"""What is tried for `decoding.length_penalty`."""

LEAST_GAIN = 0.25
"""How much the score must rise for another penalty: less is not worth translations of another length, which other metrics punish."""

MAX_RELATIVE_LENGTH = 1.1
"""Most characters of translations by those of the references, for a length penalty to be chosen: chrF is mostly recall, and rises
while a weak model repeats itself."""

SAMPLES, BETAS = 32, (1.0, 1.25, 1.5, 2.0)
"""What is tried for `decoding.mbr_samples` and `decoding.mbr_beta`."""

LEAST_MBR_GAIN = 1.0
"""How much chrF must rise for minimum Bayes risk decoding, which takes several times as long as a beam."""

WEAK_BLEU = 5.0
"""The BLEU of a beam from which on BLEU chooses the length penalty, and no samples are tried: chrF rises while translations get too
long, and samples cost a better model 1 to 2 BLEU for 1 chrF."""


class Outcome(NamedTuple):
    """What came of a way to search.

    Attributes:
        score: the first metric of the recipe.
        length: characters of the translations by those of the references.
        bleu: BLEU of the translations.
    """

    score: float
    length: float
    bleu: float

    def is_better(self, other: Outcome, gain: float = LEAST_GAIN) -> bool:
        """Whether it is less too long, or as good in this and scores so much more."""
        length, other_length = (max(outcome.length, MAX_RELATIVE_LENGTH) for outcome in (self, other))
        return length < other_length or (length == other_length and self.score >= other.score + gain)


Measure = Callable[[Mapping[str, float]], Outcome]
"""Translates the validation text with some decoding settings changed."""


def choose_search(keys: Sequence[str], decoding: DecodingConfig, measure: Measure, metric: str) -> list[Choice]:
    """How to search: the settings that were left open, each with a reason.

    Args:
        keys: the dotted keys of these settings, `LENGTH_PENALTY` and `MBR_SAMPLES` among them.
        decoding: the settings of the recipe.
        measure: tells what comes of some settings.
        metric: the name of its score, by which weak models are compared.
    """

    @cache
    def measure_beam(penalty: float) -> Outcome:
        return measure({"beam_size": decoding.beam_size, "length_penalty": penalty})

    def measure_by_bleu(penalty: float) -> Outcome:
        outcome = measure_beam(penalty)
        return outcome._replace(score=outcome.bleu)

    def measure_samples(beta: float) -> Outcome:
        return measure({"mbr_samples": SAMPLES, "mbr_beta": beta})

    penalty, choices = 1.0 if LENGTH_PENALTY in keys else decoding.length_penalty, []
    is_weak = measure_beam(penalty).bleu < WEAK_BLEU
    if LENGTH_PENALTY in keys:
        penalty, outcomes = climb(LENGTH_PENALTIES, measure_beam if is_weak else measure_by_bleu, start=penalty)
        compared = metric if is_weak else "BLEU"
        tried = "; ".join(f"{value:g}: {_words(outcome, compared)}" for value, outcome in sorted(outcomes.items()))
        why = (
            "the best on the validation text of those that translate at most"
            if outcomes[penalty].length <= MAX_RELATIVE_LENGTH
            else "the shortest translations of the validation text, although all are more than"
        )
        reason = f"{why} {MAX_RELATIVE_LENGTH:g} times as long as the references ({tried})."
        choices.append(Choice({LENGTH_PENALTY: penalty}, f"Search: length penalty {penalty:g}, {reason}"))
    if MBR_SAMPLES in keys:
        beam = measure_beam(penalty)
        settings: dict[str, float | None] = {MBR_SAMPLES: None, MBR_BETA: 2.0}
        if not is_weak:
            reason = f"Search: by beam, which has BLEU {beam.bleu:.2f}; samples are for weaker models."
        else:
            beta, drawn = climb(BETAS, measure_samples, start=2.0)
            way = "by beam"
            if drawn[beta].is_better(beam, LEAST_MBR_GAIN):
                settings = {MBR_SAMPLES: SAMPLES, MBR_BETA: beta}
                way = f"minimum Bayes risk decoding with {SAMPLES} samples"
            reason = (
                f"Search: {way}; samples have {_words(drawn[beta], metric)} on the validation text with beta {beta:g}, "
                f"the beam {_words(beam, metric)}."
            )
        choices.append(Choice(settings, reason))
    return choices


def climb(
    values: Sequence[float], measure: Callable[[float], Outcome], start: float
) -> tuple[float, dict[float, Outcome]]:
    """The best of ascending values, as far as a climb from `start` finds it, and what came of each that was tried.

    The climb goes upwards, or downwards if that is no better. Values that make translations longer than `MAX_RELATIVE_LENGTH` lose
    to those that do not, and each step must raise the score by `LEAST_GAIN`.
    """
    best, outcomes = start, {start: measure(start)}
    first = values.index(start)
    for climb_values in (values[first + 1 :], values[:first][::-1]):
        if best != start:
            break
        for value in climb_values:
            outcomes[value] = measure(value)
            if not outcomes[value].is_better(outcomes[best]):
                break
            best = value
    return best, outcomes


def _words(outcome: Outcome, metric: str) -> str:
    return f"{metric} {outcome.score:.2f}, length {outcome.length:.2f}"
