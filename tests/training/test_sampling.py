"""Scheduled sampling: the decays are their equations, and what is fed is the reference's or what the model itself would say."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt import recipe
from nmt.data.batching import Batch, make_batch
from nmt.data.subwords import BOS, EOS, PAD
from nmt.decoding.search import greedy
from nmt.fast import accelerate
from nmt.model.interface import TranslationModel
from nmt.model.recurrent import RecurrentModel, build_model
from nmt.training.sampling import mix_target_in, teacher_forcing_ratio
from nmt.training.trainer import train
from tests.reference.settings import ORDERS, small
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

SIZE = 11
CPU = torch.device("cpu")


# --- decays -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decay", "update", "expected"),
    [
        (recipe.LinearDecayConfig(floor=0.2, slope=1e-3), 0, 1.0),
        (recipe.LinearDecayConfig(floor=0.2, slope=1e-3), 300, 0.7),
        (recipe.LinearDecayConfig(floor=0.2, slope=1e-3), 5000, 0.2),
        (recipe.LinearDecayConfig(floor=0.2, slope=1e-3, offset=1.5), 400, 1.0),
        (recipe.ExponentialDecayConfig(base=0.9), 0, 1.0),
        (recipe.ExponentialDecayConfig(base=0.9), 3, 0.729),
        (recipe.InverseSigmoidDecayConfig(scale=10), 0, 10 / 11),
        (recipe.InverseSigmoidDecayConfig(scale=10), 7, 10 / (10 + math.exp(0.7))),
        (recipe.InverseSigmoidDecayConfig(scale=1000), 6908, 1000 / (1000 + math.exp(6.908))),
        (recipe.InverseSigmoidDecayConfig(scale=1), 10**6, 0.0),
    ],
)
def test_decays_follow_their_equations(decay: recipe.ScheduledSamplingConfig, update: int, expected: float) -> None:
    assert teacher_forcing_ratio(decay, update) == pytest.approx(expected)


@pytest.mark.parametrize(
    "decay", [recipe.LinearDecayConfig(), recipe.ExponentialDecayConfig(), recipe.InverseSigmoidDecayConfig()]
)
def test_defaults_begin_at_the_reference_and_never_rise(decay: recipe.ScheduledSamplingConfig) -> None:
    values = [teacher_forcing_ratio(decay, update) for update in range(0, 20_000, 500)]
    assert values[0] > 0.99
    assert all(later <= earlier for earlier, later in pairwise(values))
    assert values[-1] < 0.5


# --- what is fed ------------------------------------------------------------------------------------------------


def build(**settings: Any) -> RecurrentModel:
    torch.manual_seed(1)
    model = build_model(recipe.ModelConfig.model_validate(small(**settings)), source_size=SIZE, target_size=SIZE)
    return model.train()


def batch() -> Batch:
    return make_batch([([4, 5, 6], [7, 8, 9, 10]), ([6], [5]), ([9, 4], [4, 6, 5])])


def sharpen(model: RecurrentModel) -> RecurrentModel:
    """Leave the model's favourite word all of the probability, so that what it draws is known."""
    with torch.no_grad():
        model.output.weight *= 1e6
    return model


def test_with_certainty_the_reference_is_fed_and_the_model_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model, given = build(), batch()
    monkeypatch.setattr(RecurrentModel, "encode", None)
    mixed = mix_target_in(model, given, 1.0)
    assert torch.equal(mixed, given.target_in)
    assert mixed is not given.target_in


@pytest.mark.parametrize("probability", [0.0, 0.5])
def test_begin_marks_padding_and_shape_stay(probability: float) -> None:
    model, given = build(dropout=0.3), batch()
    for _ in range(20):
        mixed = mix_target_in(model, given, probability)
        assert mixed.shape == given.target_in.shape
        assert mixed.dtype == given.target_in.dtype
        assert torch.equal(mixed == PAD, given.target_in == PAD)
        assert torch.equal(mixed == BOS, given.target_in == BOS)
        assert not (mixed == EOS).any()
    assert model.training
    assert given.target_in.tolist() == batch().target_in.tolist()


def log_probs_of(model: TranslationModel[Any, Any], given: Batch, row: int, fed: Tensor) -> Tensor:
    """What the model says of one sentence after the words that it was fed."""
    memory = model.encode(given.source[row : row + 1], given.source_mask[row : row + 1])
    state, only = model.start(memory), torch.tensor([0])
    for token in fed:
        step = model.step(token[None], state, memory, only)
        state = step.state
    return step.log_probs[:][0].clone()


def by_hand(model: RecurrentModel, given: Batch, own: Tensor) -> Tensor:
    """The favourite of the state that has read the mixed words before it, one sentence and one place at a time."""
    mixed = given.target_in.clone()
    for row in range(len(mixed)):
        for place in range(1, mixed.shape[1]):
            if own[row, place]:
                log_probs = log_probs_of(model, given, row, mixed[row, :place])
                log_probs[[PAD, BOS, EOS]] = float("-inf")
                mixed[row, place] = log_probs.argmax()
    return mixed


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("probability", [0.0, 0.5])
def test_each_word_is_what_the_model_says_after_the_mixed_words_before_it(
    order: str, probability: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, given = sharpen(build(order=order, dropout=0.4)), batch()
    coins = torch.rand(given.target_in.shape)
    own = (coins >= probability) & (given.target_in > BOS)
    monkeypatch.setattr(torch, "rand", lambda *shape, device: coins)
    mixed = mix_target_in(model, given, probability)
    assert torch.equal(mixed, mix_target_in(accelerate(model), given, probability))
    with torch.no_grad():
        assert torch.equal(mixed, by_hand(model.eval(), given, own))
    assert torch.equal(mixed[~own], given.target_in[~own])
    assert not torch.equal(mixed, given.target_in)


def test_with_no_reference_the_words_are_those_of_greedy_search() -> None:
    model, given = sharpen(build()), batch()
    mixed = mix_target_in(model, given, 0.0)
    model.eval()
    with torch.no_grad():
        memory = model.encode(given.source, given.source_mask)
        lengths = (given.target_in != PAD).sum(1)
        marks = (PAD, BOS, EOS)
        found = greedy(model.step, model.start(memory), memory, batch=3, max_lengths=lengths - 1, forbid=marks)
    for row, hypothesis in enumerate(found):
        assert list(hypothesis.ids) == mixed[row, 1 : lengths[row]].tolist()


def test_words_are_drawn_as_often_as_they_are_probable() -> None:
    model = build().eval()
    given = make_batch([([4, 5], [7])] * 20_000)
    drawn = torch.bincount(mix_target_in(model, given, 0.0)[:, 1], minlength=SIZE) / 20_000
    with torch.no_grad():
        log_probs = log_probs_of(model, given, 0, given.target_in[0, :1])
    log_probs[[PAD, BOS, EOS]] = float("-inf")
    torch.testing.assert_close(drawn, torch.softmax(log_probs, -1), rtol=0, atol=0.015)


def test_the_share_of_the_references_words_is_the_probability() -> None:
    model = build()
    with torch.no_grad():
        model.output.bias[4] = 1e4  # it would always say 4, which the reference never does
    given = make_batch([([4, 5], [7, 8, 9, 10, 6])] * 2000)
    mixed = mix_target_in(model, given, 0.7)
    assert float((mixed[:, 1:] != 4).float().mean()) == pytest.approx(0.7, abs=0.02)


# --- in training ------------------------------------------------------------------------------------------------


def test_training_with_own_words_still_learns_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    write_reversal(tmp_path, pairs=200, held_out=10)
    settings = {"epochs": 3, "log_every": 1, "scheduled_sampling": {"kind": "exponential", "base": 0.98}}
    chosen = toy_recipe(tmp_path, training=settings)
    train(chosen, tmp_path / "whole", device=CPU, quiet=True)
    short = toy_recipe(tmp_path, training={**settings, "epochs": 2})
    train(short, tmp_path / "parts", device=CPU, quiet=True)
    train(chosen, tmp_path / "parts", device=CPU, quiet=True, resume=True, force=True)
    records = [
        [json.loads(line) for line in (tmp_path / run / "metrics.jsonl").read_text().splitlines()]
        for run in ("whole", "parts")
    ]
    losses = [[record["loss"] for record in run] for run in records]
    assert losses[0] == losses[1]
    trained = [record for record in records[0] if record["kind"] == "train"]
    expected = [0.98 ** record["update"] for record in trained]
    assert [record["gold_probability"] for record in trained] == pytest.approx(expected)
    assert losses[0][-1] < losses[0][0]
