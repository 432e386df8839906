"""How to search is chosen on the validation text: a length penalty that is not too long, and samples where they gain much."""

from collections.abc import Mapping

import pytest

from nmt.recipe import LENGTH_PENALTY, MBR_BETA, MBR_SAMPLES, DecodingConfig
from nmt.training.search_choice import (
    LEAST_MBR_GAIN,
    LENGTH_PENALTIES,
    SAMPLES,
    WEAK_BLEU,
    Outcome,
    choose_search,
    climb,
)


@pytest.mark.parametrize(
    ("best", "tried"),
    [
        (1.0, [1.0, 1.1, 0.7]),
        (1.3, [1.0, 1.1, 1.2, 1.3, 1.5]),
        (1.8, [1.0, 1.1, 1.2, 1.3, 1.5, 1.8]),
        (0.0, [1.0, 1.1, 0.7, 0.4, 0.0]),
    ],
)
def test_a_climb_finds_the_best_value_without_trying_all(best: float, tried: list[float]) -> None:
    found, outcomes = climb(LENGTH_PENALTIES, lambda value: Outcome(-10 * abs(value - best), 0.9, 1.0), 1.0)
    assert (found, list(outcomes)) == (best, tried)


def test_a_length_penalty_wins_neither_by_translations_that_are_too_long_nor_by_little() -> None:
    length = {
        1.0: 0.3,
        1.1: 0.6,
    }  # chrF rewards recall: all of the reference and as much again scores more than half of it
    best, _ = climb(
        LENGTH_PENALTIES, lambda value: Outcome(30 * length.get(value, 2.0), length.get(value, 2.0), 1.0), 1.0
    )
    assert best == 1.1
    assert climb(LENGTH_PENALTIES, lambda value: Outcome(20 + 2 * value, 0.9, 1.0), 1.0)[0] == 1.0


@pytest.mark.parametrize(
    ("drawn", "samples"),
    [
        (Outcome(20 + LEAST_MBR_GAIN, 1.0, 1.0), SAMPLES),
        (Outcome(19.9 + LEAST_MBR_GAIN, 1.0, 1.0), None),
        (Outcome(30, 1.2, 1.0), None),
    ],
)
def test_samples_are_drawn_where_they_gain_much_and_are_not_too_long(drawn: Outcome, samples: int | None) -> None:
    def measure(settings: Mapping[str, float]) -> Outcome:
        return drawn if "mbr_samples" in settings else Outcome(20, 0.9, 1.0)

    [choice] = choose_search([MBR_SAMPLES], DecodingConfig(beam_size=4, length_penalty=0.5), measure, "chrF")
    assert choice.settings == {MBR_SAMPLES: samples, MBR_BETA: 2.0}
    assert "the beam chrF 20.00, length 0.90" in choice.reason


def test_no_samples_are_tried_where_a_beam_has_bleu() -> None:
    tried: list[Mapping[str, float]] = []

    def measure(settings: Mapping[str, float]) -> Outcome:
        tried.append(settings)
        return Outcome(35, 0.9, WEAK_BLEU)

    [choice] = choose_search([MBR_SAMPLES], DecodingConfig(beam_size=4), measure, "chrF")
    assert choice.settings == {MBR_SAMPLES: None, MBR_BETA: 2.0}
    assert "by beam, which has BLEU 5.00" in choice.reason
    assert not any("mbr_samples" in settings for settings in tried)


@pytest.mark.parametrize(("bleu", "best"), [(WEAK_BLEU - 1, 1.1), (WEAK_BLEU, 0.7)])
def test_bleu_chooses_the_length_penalty_of_a_model_that_is_not_weak(bleu: float, best: float) -> None:
    def measure(settings: Mapping[str, float]) -> Outcome:
        penalty = settings["length_penalty"]
        return Outcome(30 + 10 * min(penalty, 1.1), 0.9, bleu + (penalty == 0.7))

    [choice] = choose_search([LENGTH_PENALTY], DecodingConfig(), measure, "chrF")
    assert choice.settings == {LENGTH_PENALTY: best}
