"""One update: its gradient is clipped by its total norm, and only if that is above clip_norm."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.encoded import encode_corpus
from nmt.model_folder import Bundle
from nmt.training.optim import Clock
from nmt.training.text import TrainingText
from nmt.training.update import TrainStep
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

RATE = 0.5


def step_of(folder: Path, clip_norm: float | None, **training: str) -> torch.Tensor:
    """The change of all weights in one update of plain gradient descent, as one vector."""
    settings = {"optimizer": {"kind": "sgd", "rate": RATE}, "clip_norm": clip_norm, **training}
    reversal = toy_recipe(folder, training=settings)
    text = TrainingText.load(reversal)
    bundle = Bundle.fresh(reversal, *text.subwords(reversal))
    corpus = encode_corpus(text.train, bundle.source, bundle.target, None)
    train_step = TrainStep(bundle, None, precision="fp32", device=torch.device("cpu"))
    before = [parameter.detach().clone() for parameter in bundle.model.parameters()]
    group = train_step.prepare(corpus, [np.arange(4, dtype=np.int32)])
    train_step.update(group, Clock(update=0, epochs=0.0, fraction=0.0, plateaus=0))
    after = bundle.model.parameters()
    return torch.cat([(new.detach() - old).flatten() for old, new in zip(before, after, strict=True)])


def test_a_larger_gradient_is_scaled_to_clip_norm_and_keeps_its_direction(tmp_path: Path) -> None:
    write_reversal(tmp_path)
    unclipped = step_of(tmp_path, None)
    norm = float(unclipped.norm()) / RATE
    clipped = step_of(tmp_path, norm / 3)
    assert float(clipped.norm()) / RATE == pytest.approx(norm / 3, rel=1e-4)
    torch.testing.assert_close(clipped * 3, unclipped, rtol=1e-3, atol=1e-6)


def test_a_smaller_gradient_is_unchanged(tmp_path: Path) -> None:
    write_reversal(tmp_path)
    unclipped = step_of(tmp_path, None)
    assert torch.equal(step_of(tmp_path, 10 * float(unclipped.norm()) / RATE), unclipped)


def test_the_loss_may_be_averaged_over_sentences(tmp_path: Path) -> None:
    write_reversal(tmp_path)
    targets = (tmp_path / "train.tgt").read_text().splitlines()[:4]
    tokens = sum(len(line.split()) + 1 for line in targets)
    by_token, by_sentence = (step_of(tmp_path, None, normalization=over) for over in ("tokens", "sentences"))
    torch.testing.assert_close(by_sentence * 4, by_token * tokens, rtol=1e-4, atol=1e-6)
