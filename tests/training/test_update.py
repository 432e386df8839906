"""One update: its gradient is clipped by its total norm, and only if that is above clip_norm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.runtime.device import Precision
from nmt.training.losses import Diverged
from nmt.training.optim import Clock
from nmt.training.update import PreparedGroup, TrainStep
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import train_step as toy_train_step
from tests.training.toy import write_reversal

RATE = 0.5


START = Clock(update=0, epochs=0.0, fraction=0.0, plateaus=0)


def one_update(folder: Path, precision: Precision = "fp32", **training: Any) -> tuple[TrainStep, PreparedGroup]:
    """A model at its start, and the batch of its first update."""
    reversal = toy_recipe(folder, training={"optimizer": {"kind": "sgd", "rate": RATE}, **training})
    train_step, corpus = toy_train_step(reversal, precision=precision)
    return train_step, train_step.prepare(corpus, [np.arange(4, dtype=np.int32)])


def weights_of(train_step: TrainStep) -> torch.Tensor:
    """All weights, as one vector."""
    return torch.cat([parameter.detach().flatten() for parameter in train_step.model.parameters()])


def step_of(folder: Path, clip_norm: float | None, **training: Any) -> torch.Tensor:
    """The change of all weights in one update of plain gradient descent, as one vector."""
    train_step, group = one_update(folder, clip_norm=clip_norm, **training)
    before = weights_of(train_step)
    train_step.update(group, START)
    return weights_of(train_step) - before


def test_a_larger_gradient_is_scaled_to_clip_norm_and_keeps_its_direction(tmp_path: Path) -> None:
    write_reversal(tmp_path)
    unclipped = step_of(tmp_path, None)
    norm = float(unclipped.norm()) / RATE
    clipped = step_of(tmp_path, norm / 3)
    assert float(clipped.norm()) / RATE == pytest.approx(norm / 3, rel=1e-4)
    torch.testing.assert_close(clipped * 3, unclipped, rtol=1e-3, atol=1e-6)
    assert torch.equal(step_of(tmp_path, 10 * norm), unclipped)


def test_the_loss_may_be_averaged_over_sentences(tmp_path: Path) -> None:
    write_reversal(tmp_path)
    targets = (tmp_path / "train.tgt").read_text().splitlines()[:4]
    tokens = sum(len(line.split()) + 1 for line in targets)
    by_token, by_sentence = (step_of(tmp_path, None, normalization=over) for over in ("tokens", "sentences"))
    torch.testing.assert_close(by_sentence * 4, by_token * tokens, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["sgd", "adadelta"])
def test_a_loss_in_fp16_is_scaled_down_when_a_gradient_overflows(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU, which computes in fp16 too, but slowly."""
    monkeypatch.setenv("NMT_FAST", "0")
    write_reversal(tmp_path)
    train_step, group = one_update(tmp_path, "fp16", optimizer={"kind": kind, "rate": RATE})
    before = weights_of(train_step)
    train_step.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
    while train_step.scaler.get_scale() == 2.0**24 or torch.equal(weights_of(train_step), before):
        scale = train_step.scaler.get_scale()
        try:
            train_step.update(group, START)
        except Diverged:
            assert torch.equal(weights_of(train_step), before)
            assert train_step.scaler.get_scale() == scale / 2
    exact, same_group = one_update(tmp_path, optimizer={"kind": kind, "rate": RATE})
    exact.update(same_group, START)
    torch.testing.assert_close(weights_of(train_step) - before, weights_of(exact) - before, rtol=0.5, atol=1e-4)


def test_the_scale_of_the_loss_is_part_of_the_state(tmp_path: Path) -> None:
    write_reversal(tmp_path)
    train_step, _ = one_update(tmp_path, "fp16")
    train_step.scaler.load_state_dict(train_step.scaler.state_dict() | {"scale": 123.0})
    other, _ = one_update(tmp_path, "fp16")
    other.load_state_dict(train_step.state_dict())
    assert other.scaler.get_scale() == 123.0
