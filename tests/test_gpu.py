"""A GPU computes what the CPU computes. Skipped without a GPU."""

from __future__ import annotations

import json
import math
import subprocess
import sys
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
from tests.decoding.test_translator import LINES, MODELS, TEXT, bundle, translate
from tests.fast.compiled_steps import COMPARED, COMPARED_IN_BF16, assert_equal_to_plain
from tests.test_meta_device import BEAM, CONFIGS, PAIRS, is_read_back, model_of, take_steps, transformer_config
from tests.training import toy

CPU = torch.device("cpu")
needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
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


@pytest.mark.parametrize("name", MODELS)
def test_losses_alignments_and_gradients_are_those_of_the_cpu(name: str) -> None:
    original, device = bundle(name), choose_device("cuda")
    ids = original.source.encode_batch(TEXT)
    batch = make_batch(list(zip(ids, reversed(ids), strict=True)))
    expected = losses_and_gradients(deepcopy(original.model), batch)
    actual = losses_and_gradients(moved(original, device).model, batch.to(device))
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(actual[key], value, rtol=1e-4, atol=1e-4, msg=partial("{}: {}".format, key))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_losses_alignments_and_gradients_of_a_transformer_are_those_of_the_cpu(norm: str) -> None:
    model, batch, device = model_of(transformer_config(norm), CPU), make_batch(PAIRS), choose_device("cuda")
    expected = losses_and_gradients(deepcopy(model), batch)
    for key, value in losses_and_gradients(model.to(device), batch.to(device)).items():
        torch.testing.assert_close(value, expected[key], rtol=1e-4, atol=1e-4, msg=partial("{}: {}".format, key))


@pytest.mark.parametrize("name", COMPARED)
def test_losses_and_gradients_of_compiled_steps_are_those_of_plain_ones(name: str) -> None:
    assert_equal_to_plain(name, "cuda")


@pytest.mark.parametrize("name", COMPARED_IN_BF16)
def test_they_are_so_under_autocast(name: str) -> None:
    assert_equal_to_plain(name, "cuda", "bf16")


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


@pytest.mark.parametrize("config", [config for config in CONFIGS.values() if not is_read_back(config)])
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


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_translates_every_line(precision: str) -> None:
    translations = translate([moved(bundle(), choose_device("cuda"))], precision=precision)
    assert [translation.source for translation in translations] == LINES
    assert all(math.isfinite(hypothesis.score) for translation in translations for hypothesis in translation.hypotheses)


@pytest.mark.parametrize("precision", ["auto", "fp16"])
def test_training_learns_in_half_precision(precision: str, tmp_path: Path) -> None:
    toy.write_reversal(tmp_path)
    recipe = toy.recipe(tmp_path, training={"epochs": 14, "precision": precision})
    assert train(recipe, tmp_path / "run", device=choose_device("cuda"), quiet=True).best > 80


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


@needs_two
def test_two_gpus_train_one_model(tmp_path: Path) -> None:
    toy.write_reversal(tmp_path)
    recipe = toy.recipe(tmp_path, training={"epochs": 14}).model_dump_json()
    (tmp_path / "recipe.yaml").write_text(recipe)  # JSON is YAML
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    training = ["-m", "nmt", "train", "recipe.yaml", "--device", "cuda", "-o", "run"]
    subprocess.run([*torchrun, *training], check=True, cwd=tmp_path)
