"""On a GPU, where there is one, the same code computes what it computes on the CPU; without one all of this is skipped."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.batching import Batch, make_batch
from nmt.device import choose_device
from nmt.fast import accelerate
from nmt.model.interface import TranslationModel
from nmt.model_folder import Bundle
from nmt.training.trainer import train
from tests.decoding.test_translator import LINES, MODELS, TEXT, bundle, translate
from tests.training import toy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")


def moved(of: Bundle, device: torch.device) -> Bundle:
    return replace(of, model=deepcopy(of.model).to(device))


def losses_and_gradients(model: TranslationModel[Any, Any], batch: Batch) -> dict[str, Tensor]:
    """The smoothed loss, the alignment, and the gradient of every weight, brought to the CPU.

    In training mode, without which cuDNN gives no gradients, but with nothing dropped.
    """
    fast = accelerate(model).train()
    for module in fast.modules():
        for rate in {"rate", "p"} & vars(module).keys():
            setattr(module, rate, 0.0)
    output = fast(batch, 0.1)
    output.loss.backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    return {
        name: value.detach().cpu()
        for name, value in {"loss": output.loss, "alignment": output.alignment, **gradients}.items()
    }


@pytest.mark.parametrize("name", MODELS)
def test_losses_alignments_and_gradients_are_those_of_the_cpu(name: str) -> None:
    made, device = bundle(name), choose_device("cuda")
    ids = made.source.encode_batch(TEXT)
    batch = make_batch(list(zip(ids, reversed(ids), strict=True)))
    wanted = losses_and_gradients(deepcopy(made.model), batch)
    found = losses_and_gradients(moved(made, device).model, batch.to(device))
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        torch.testing.assert_close(found[key], value, rtol=1e-4, atol=1e-4, msg=partial("{}: {}".format, key))


@pytest.mark.parametrize("name", MODELS)
def test_translations_are_those_of_the_cpu(name: str) -> None:
    wanted = translate([bundle(name)], n_best=2)
    found = translate([moved(bundle(name), choose_device("cuda"))], n_best=2)
    for one, other in zip(found, wanted, strict=True):
        assert [each.text for each in one.hypotheses] == [each.text for each in other.hypotheses]
        for mine, yours in zip(one.hypotheses, other.hypotheses, strict=True):
            assert mine.score == pytest.approx(yours.score, abs=1e-4)
            torch.testing.assert_close(mine.alignment, yours.alignment, rtol=0, atol=1e-4)


def test_half_precision_translates_every_line() -> None:
    found = translate([moved(bundle(), choose_device("cuda"))], precision="bf16")
    assert [each.source for each in found] == LINES
    assert all(math.isfinite(hypothesis.score) for each in found for hypothesis in each.hypotheses)


def test_training_learns_in_the_precision_that_auto_chooses(tmp_path: Path) -> None:
    toy.write_reversal(tmp_path)
    chosen = toy.recipe(tmp_path, training={"epochs": 14, "precision": "auto"})
    assert train(chosen, tmp_path / "run", device=choose_device("cuda"), quiet=True).best > 80
