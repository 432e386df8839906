"""Scheduled sampling: the teacher forcing ratio follows its equations, and the mixed target holds reference or model tokens."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt import recipe
from nmt.data.batching import Batch, make_batch
from nmt.fast import accelerate
from nmt.model.interface import TranslationModel
from nmt.model.recurrent import RecurrentModel
from nmt.text.subwords import BOS, EOS, PAD
from nmt.training.scheduled_sampling import choose_replaced, mix_target_in, teacher_forcing_ratio
from nmt.training.trainer import train
from tests.reference.settings import ORDERS
from tests.reference.settings import small as small_model
from tests.training.toy import recipe as toy_recipe

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
def test_the_ratio_follows_its_equation(decay: recipe.ScheduledSamplingConfig, update: int, expected: float) -> None:
    assert teacher_forcing_ratio(decay, update) == pytest.approx(expected)


# --- mixed targets ----------------------------------------------------------------------------------------------


def build(**settings: Any) -> RecurrentModel:
    torch.manual_seed(1)
    model = RecurrentModel(
        recipe.RecurrentModelConfig.model_validate(small_model(**settings)), source_size=SIZE, target_size=SIZE
    )
    return model.train()


def batch() -> Batch:
    return make_batch([([4, 5, 6], [7, 8, 9, 10]), ([6], [5]), ([9, 4], [4, 6, 5])])


def sharpen(model: RecurrentModel) -> RecurrentModel:
    """Give the most probable token a probability of 1, so that sampling is deterministic."""
    with torch.no_grad():
        model.output.weight *= 1e6
    return model


def log_probs_of(model: TranslationModel[Any, Any], original: Batch, row: int, prefix: Tensor) -> Tensor:
    """The log-probabilities of the next token of one sentence after a prefix."""
    memory = model.encode(original.source[row : row + 1], original.source_mask[row : row + 1])
    state, only = model.start(memory), torch.tensor([0])
    for token in prefix:
        step = model.step(token[None], state, memory, only)
        state = step.state
    return step.log_probs[:][0].clone()


def by_hand(model: RecurrentModel, original: Batch, is_replaced: Tensor) -> Tensor:
    """The mixed target computed one sentence and one position at a time, with the most probable tokens."""
    mixed = original.target_in.clone()
    for row in range(len(mixed)):
        for position in range(1, mixed.shape[1]):
            if is_replaced[row, position]:
                log_probs = log_probs_of(model, original, row, mixed[row, :position])
                log_probs[[PAD, BOS, EOS]] = float("-inf")
                mixed[row, position] = log_probs.argmax()
    return mixed


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_each_replaced_token_follows_from_the_mixed_tokens_before_it(
    order: str, ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, original = sharpen(build(order=order, dropout=0.4)), batch()
    uniform = torch.rand(original.target_in.shape)
    is_replaced = (uniform >= ratio) & (original.target_in > BOS)
    monkeypatch.setattr(torch, "rand", lambda *shape: uniform)
    mixed = mix_target_in(model, original, choose_replaced(original, ratio))
    assert torch.equal(mixed, mix_target_in(accelerate(model), original, choose_replaced(original, ratio)))
    with torch.no_grad():
        assert torch.equal(mixed, by_hand(model.eval(), original, is_replaced))
    assert torch.equal(mixed[~is_replaced], original.target_in[~is_replaced])
    assert not (mixed == EOS).any()
    assert not torch.equal(mixed, original.target_in)


def test_tokens_are_sampled_with_their_probabilities() -> None:
    model = build().eval()
    original = make_batch([([4, 5], [7])] * 20_000)
    frequencies = (
        torch.bincount(mix_target_in(model, original, choose_replaced(original, 0.0))[:, 1], minlength=SIZE) / 20_000
    )
    with torch.no_grad():
        log_probs = log_probs_of(model, original, 0, original.target_in[0, :1])
    log_probs[[PAD, BOS, EOS]] = float("-inf")
    torch.testing.assert_close(frequencies, torch.softmax(log_probs, -1), rtol=0, atol=0.015)


# --- in training ------------------------------------------------------------------------------------------------


def test_the_log_has_the_ratio_of_each_update(small: Path, tmp_path: Path) -> None:
    settings = {"epochs": 1, "log_every": 1, "scheduled_sampling": {"kind": "exponential", "base": 0.98}}
    train(toy_recipe(small, training=settings), tmp_path / "run", device=CPU, quiet=True)
    records = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    trained = [record for record in records if record["kind"] == "train"]
    expected = [0.98 ** record["update"] for record in trained]
    assert [record["gold_probability"] for record in trained] == pytest.approx(expected)
