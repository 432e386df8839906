"""Compares compiled training with plain training, in a process of its own: shapes that are checked cannot be compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nmt.data.batching import Batch, make_batch
from nmt.fast import accelerate
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.recipe import RecurrentModelConfig, TransformerModelConfig
from nmt.runtime.device import Precision, autocast
from tests.commands import ROOT
from tests.reference.settings import small

COMPARED = [
    "transformer",
    "additive local-p bahdanau-conditional",
    "additive global luong-feeding",
    "additive global bahdanau",
    "general global luong",
    "location global bahdanau-conditional",
    "none global luong-feeding",
]
"""A Transformer, and recurrent models by score, window and order."""
COMPARED_IN_BF16 = ["transformer", "additive global bahdanau"]
SHAPES = [(7, 9, 5), (11, 13, 10), (8, 16, 6), (13, 7, 11)]
TOKENS = 40
TOLERANCES: dict[str, float] = {"fp32": 1e-5, "bf16": 5e-2}
TRANSFORMER = {
    "kind": "transformer",
    "embedding": 8,
    "feed_forward": 12,
    "heads": 2,
    "dropout": 0.0,
    "encoder": {"layers": 2},
    "decoder": {"layers": 2},
}


def assert_equal_to_plain(name: str, device: str, precision: Precision = "fp32") -> None:
    """Losses and gradients are those of plain steps to within rounding, and the compilations for one batch serve those of other shapes."""
    command = [sys.executable, "-m", __name__, name, device, precision]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    report = json.loads(result.stdout)
    assert "cannot compile" not in result.stderr.decode()
    assert report["difference"] <= TOLERANCES[precision]
    assert report["breaks"] == 0
    assert 1 <= report["graphs"] <= 4


def batches() -> list[Batch]:
    generator = np.random.default_rng(1)

    def sentence(longest: int) -> list[int]:
        return generator.integers(4, TOKENS, int(generator.integers(2, longest + 1))).tolist()  # type: ignore[no-any-return]

    return [make_batch([(sentence(source), sentence(target)) for _ in range(size)]) for size, source, target in SHAPES]


def losses_and_gradients(model: TranslationModel[Any, Any], batch: Batch, precision: Precision) -> list[Tensor]:
    model.zero_grad()
    with autocast(precision, batch.source.device):
        output = model(batch, 0.1)
    (output.loss / len(batch.source)).backward()
    weights = list(model.parameters())
    gradients = [torch.zeros_like(weight) if weight.grad is None else weight.grad.clone() for weight in weights]
    return [output.loss.detach() / len(batch.source), output.alignment.detach(), *gradients]


def compare(name: str, device: torch.device, precision: Precision) -> dict[str, Any]:
    """The largest difference over all batches, and the number of compiled graphs and of places where compiling broke off."""
    config: Any
    if name == "transformer":
        config = TransformerModelConfig.model_validate(TRANSFORMER)
    else:
        score, window, order = name.split()
        config = RecurrentModelConfig.model_validate(small(score=score, window=window, order=order))
    torch.manual_seed(1)
    model = build_model(config, source_size=TOKENS, target_size=TOKENS).to(device)
    fast = accelerate(model, compiles=True)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    worst = 0.0
    for batch in [batch.to(device) for batch in batches()]:
        expected, actual = (losses_and_gradients(each, batch, precision) for each in (model, fast))
        worst = max([worst, *(float((one - other).abs().max()) for one, other in zip(expected, actual, strict=True))])
    counters = torch._dynamo.utils.counters
    graphs = counters["stats"]["unique_graphs"]
    return {"difference": worst, "graphs": graphs, "breaks": sum(counters["graph_break"].values())}


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.stdout.write(json.dumps(compare(sys.argv[1], torch.device(sys.argv[2]), cast(Precision, sys.argv[3]))) + "\n")
