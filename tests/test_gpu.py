"""A GPU computes what the CPU computes. Skipped without a GPU."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.bundle.folder import Bundle
from nmt.data.batching import Batch, make_batch
from nmt.fast import accelerate
from nmt.model.interface import ModelOutput, TranslationModel
from nmt.model.recurrent import RecurrentModel
from nmt.recipe import ModelConfig
from nmt.runtime.device import Precision, choose_device
from nmt.training.log import METRICS
from nmt.training.optim import Clock
from nmt.training.trainer import train
from tests.decoding.test_translator import MODELS, TEXT, bundle, translate
from tests.fast.compiled_steps import COMPARED, COMPARED_IN_BF16, assert_equal_to_plain
from tests.test_meta_device import BEAM, CONFIGS, PAIRS, model_of, take_steps, transformer_config
from tests.training import toy

CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")


def moved(original: Bundle, device: torch.device) -> Bundle:
    return replace(original, model=deepcopy(original.model).to(device))


def losses_and_gradients(model: TranslationModel[Any, Any], batch: Batch) -> dict[str, Tensor]:
    """The smoothed loss, the alignment and the gradient of every weight, on the CPU.

    In training mode, because cuDNN has no gradients otherwise, but without dropout.
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


@pytest.mark.parametrize("name", [*MODELS, "pre", "post"])
def test_losses_alignments_and_gradients_are_those_of_the_cpu(name: str) -> None:
    if name in MODELS:
        ids = bundle(name).source.encode_batch(TEXT)
        model, batch = deepcopy(bundle(name).model), make_batch(list(zip(ids, reversed(ids), strict=True)))
    else:
        model, batch = model_of(transformer_config(name), CPU), make_batch(PAIRS)
    device = choose_device("cuda")
    expected = losses_and_gradients(deepcopy(model), batch)
    actual = losses_and_gradients(model.to(device), batch.to(device))
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(actual[key], value, rtol=1e-4, atol=1e-4, msg=partial("{}: {}".format, key))


@pytest.mark.parametrize(
    ("name", "precision"),
    [*((name, "fp32") for name in COMPARED), *((name, "bf16") for name in COMPARED_IN_BF16)],
)
def test_losses_and_gradients_of_compiled_steps_are_those_of_plain_ones(name: str, precision: Precision) -> None:
    assert_equal_to_plain(name, "cuda", precision)


@contextmanager
def waiting_refused() -> Iterator[None]:
    """A context in which an operation that waits for the GPU raises."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_reading_a_value_is_refused() -> None:
    ones = torch.ones(2, device=choose_device("cuda"))
    with pytest.raises(RuntimeError), waiting_refused():
        ones.sum().item()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_an_update_waits_for_nothing(precision: Precision, tmp_path: Path) -> None:
    toy.write_reversal(tmp_path, pairs=40)
    step, corpus = toy.train_step(toy.recipe(tmp_path), precision=precision, device=choose_device("cuda"))
    groups = [step.prepare(corpus, [np.arange(first, first + 4, dtype=np.int32)]) for first in (0, 4, 8)]
    step.update(groups[0], Clock(0, 0.0, 0.0, 0))
    with waiting_refused():
        pending = [step.update(group, Clock(1, 0.1, 0.1, 0)) for group in groups[1:]]
    assert [stats.read().tokens for stats in pending] == [group.tokens for group in groups[1:]]


@pytest.mark.parametrize("config", CONFIGS.values())
def test_steps_of_a_beam_search_wait_for_nothing(config: ModelConfig) -> None:
    take_steps(config, BEAM, device=choose_device("cuda"), watch=waiting_refused)


@pytest.mark.parametrize("name", MODELS)
def test_translations_are_those_of_the_cpu(name: str) -> None:
    expected = translate([bundle(name)], n_best=2)
    actual = translate([moved(bundle(name), choose_device("cuda"))], n_best=2)
    for ours, theirs in zip(actual, expected, strict=True):
        assert [hypothesis.text for hypothesis in ours.hypotheses] == [
            hypothesis.text for hypothesis in theirs.hypotheses
        ]
        for hypothesis, reference in zip(ours.hypotheses, theirs.hypotheses, strict=True):
            assert hypothesis.score == pytest.approx(reference.score, abs=1e-4)
            torch.testing.assert_close(hypothesis.alignment, reference.alignment, rtol=0, atol=1e-4)


def test_an_update_that_is_not_finite_is_skipped_on_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And counted, one update later."""
    toy.write_reversal(tmp_path)
    recipe = toy.recipe(tmp_path, training={"epochs": 1, "precision": "fp32"})
    forward, count = RecurrentModel.forward, 0

    def spoiled(self: RecurrentModel, *args: Any) -> ModelOutput:
        nonlocal count
        count += self.training
        output = forward(self, *args)
        return replace(output, loss=output.loss * float("inf")) if count in (3, 4) else output

    monkeypatch.setattr(RecurrentModel, "forward", spoiled)
    train(recipe, tmp_path / "run", device=choose_device("cuda"), quiet=True)
    records = [json.loads(line) for line in (tmp_path / "run" / METRICS).read_text().splitlines()]
    assert [record["update"] for record in records if record["kind"] == "skip"] == [3, 4]
    assert all(math.isfinite(record["loss"]) for record in records if record["kind"] == "valid")
