"""The same numbers by every way that leads to them, for each pair of score, window and order (24 models), in fp32, bf16 and int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch

from nmt import recipe
from nmt.alignment.translation import TranslationHypothesis
from nmt.decoding.translator import Translator
from nmt.model.recurrent import RecurrentModel
from nmt.runtime.device import DecodingPrecision
from nmt.text.subwords import EOS, Subwords
from tests.machine import needs_int8
from tests.pairwise import Case, pairwise_cases
from tests.reference.settings import ATTENTIONS, ORDERS, small
from tests.robustness import tiny

LINES = ["the dog sees a cat .", "a", "a cat sleeps here"]
PAIRS = list(zip(LINES, LINES[::-1], strict=True))
SCORES, WINDOWS = (list(dict.fromkeys(names)) for names in zip(*ATTENTIONS, strict=True))


def nothing_to_attend(case: Case) -> bool:
    return case.get("score") == "none" and case.get("window", "global") != "global"


PRESETS = [
    (case["score"], case["window"], case["order"])
    for case in pairwise_cases({"score": SCORES, "window": WINDOWS, "order": list(ORDERS)}, nothing_to_attend)
]
every_preset = pytest.mark.parametrize(
    "preset",
    [  # by default some, in one order after the other
        pytest.param(preset, id="-".join(preset), marks=() if place % 5 == 0 else pytest.mark.slow)
        for place, preset in enumerate(PRESETS)
    ],
)

FP32 = 1e-5
PREDICTED = 1e-4
"""Most that a weight moves in a window whose center is S sigma(...): what rounding does to that counts S times."""
BF16 = 0.05
"""Most that a token's log-probability moves, in nats: bf16 keeps 8 bits, so a product of another shape may round elsewhere. Sums of
int8 are exact."""


@cache
def model(preset: tuple[str, str, str], scale: float) -> RecurrentModel:
    """Random weights, times `scale`: at 2.5 they decide, at 1 they are as a new model's."""
    score, window, order = preset
    chosen = recipe.RecurrentModelConfig.model_validate(small(score=score, window=window, order=order))
    torch.manual_seed(1)
    made = RecurrentModel(chosen, source_size=len(subwords()), target_size=len(subwords())).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(scale)
        made.output.bias.fill_(0)
        made.output.bias[EOS] = 2
    return made


def subwords() -> Subwords:
    return tiny.bundle().source


def translator(models: Sequence[RecurrentModel], precision: DecodingPrecision = "fp32") -> Translator:
    members = [replace(tiny.bundle(), model=each) for each in models]
    return Translator(
        members, decoding=recipe.DecodingConfig(beam_size=3, max_ratio=0.3), n_best=2, precision=precision
    )


def check_same(
    one: TranslationHypothesis, other: TranslationHypothesis, preset: tuple[str, str, str], tolerance: float = FP32
) -> None:
    assert one.ids == other.ids
    assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=tolerance)
    assert one.score == pytest.approx(other.score, abs=tolerance * len(one.token_log_probs))
    of_weights = max(tolerance, PREDICTED) if preset[1] == "local-p" else tolerance
    torch.testing.assert_close(one.alignment, other.alignment, atol=of_weights, rtol=0)


@every_preset
def test_alone_in_a_batch_twice_in_an_ensemble_forced_or_searched_it_is_the_same(preset: tuple[str, str, str]) -> None:
    once = translator([model(preset, 2.5)])
    found = list(once.translate(LINES))
    twice = list(translator([model(preset, 2.5)] * 2).translate(LINES))
    for line, together, ensemble in zip(LINES, found, twice, strict=True):
        [alone] = once.translate([line])
        for ours, others, both in zip(alone.hypotheses, together.hypotheses, ensemble.hypotheses, strict=True):
            check_same(ours, others, preset)
            check_same(ours, both, preset)
            if ours.finished:
                [forced] = once.score([(line, ours.ids)])
                check_same(ours, forced.hypotheses[0], preset)


@pytest.mark.parametrize(("precision", "tolerance"), [("bf16", BF16), pytest.param("int8", FP32, marks=needs_int8)])
@every_preset
def test_in_few_digits_companions_move_a_log_probability_by_little_or_nothing(
    preset: tuple[str, str, str], precision: DecodingPrecision, tolerance: float
) -> None:
    rounding = translator([model(preset, 1.0)], precision)
    for pair, together in zip(PAIRS, rounding.score(PAIRS), strict=True):
        [alone] = rounding.score([pair])
        check_same(alone.hypotheses[0], together.hypotheses[0], preset, tolerance)
