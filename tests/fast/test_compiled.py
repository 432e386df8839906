"""Compiled steps compute what the plain ones compute, and training goes on without them where PyTorch cannot compile."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal

import pytest
import torch

from nmt.fast import is_compiled
from nmt.runtime.device import Precision
from nmt.training.log import METRICS
from tests.commands import NMT
from tests.fast.compiled_steps import COMPARED, COMPARED_IN_BF16, assert_equal_to_plain
from tests.training import toy

pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script_method. is deprecated"
)  # by what PyTorch itself imports
VOLTA, PASCAL = (7, 0), (6, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision"), [*((name, "fp32") for name in COMPARED), *((name, "bf16") for name in COMPARED_IN_BF16)]
)
def test_losses_and_gradients_are_those_of_plain_steps(name: str, precision: Precision) -> None:
    assert_equal_to_plain(name, "cpu", precision)


@pytest.mark.slow
def test_a_recipe_can_ask_for_it_on_a_cpu(tmp_path: Path) -> None:
    toy.write_reversal(tmp_path, pairs=300)
    recipe = toy.recipe(tmp_path, training={"updates": 6, "log_every": 2}).model_dump_json()
    (tmp_path / "recipe.yaml").write_text(recipe)  # JSON is YAML
    losses = []
    for setting in ("false", "true"):
        changes = ["--set", f"training.compile={setting}", "--device", "cpu"]
        command = [*NMT, "train", "recipe.yaml", "-o", setting, *changes]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr.decode()
        assert (b"PyTorch compiles the steps" in result.stderr) == (setting == "true")
        records = [json.loads(line) for line in (tmp_path / setting / METRICS).read_text().splitlines()]
        losses.append([record["loss"] for record in records if record["kind"] == "train"])
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., torch.device]:
    """Pretends that there is a GPU."""
    for name in ("CC", "NMT_FAST"):
        monkeypatch.delenv(name, raising=False)

    def pretend(capability: tuple[int, int] = VOLTA, *, triton: bool = True, compiler: bool = True) -> torch.device:
        monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: capability)
        module = import_module("nmt.fast.accelerate")  # the package has a function of this name
        monkeypatch.setattr(module, "find_spec", lambda name: object() if triton else None)
        monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/cc" if compiler else None)
        return torch.device("cuda")

    return pretend


def test_auto_compiles_on_a_gpu_that_pytorch_compiles_for(gpu: Callable[..., torch.device]) -> None:
    assert is_compiled("auto", gpu())
    assert not is_compiled("auto", gpu(PASCAL))
    assert not is_compiled("auto", gpu(triton=False))
    assert not is_compiled("auto", gpu(compiler=False))
    assert not is_compiled("auto", torch.device("cpu"))


def test_a_recipe_and_the_environment_can_refuse(
    gpu: Callable[..., torch.device], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: list[Literal["auto"] | bool] = ["auto", True, False]
    assert [is_compiled(setting, gpu()) for setting in settings] == [True, True, False]
    monkeypatch.setenv("NMT_FAST", "0")
    assert [is_compiled(setting, gpu()) for setting in settings] == [False, False, False]


@pytest.mark.slow
def test_what_cannot_be_compiled_runs_as_it_is() -> None:
    from nmt.fast.compiled import compiled

    def fail(*_: object) -> Callable[..., int]:
        raise RuntimeError("no compiler")

    assert compiled(torch.neg, backend=fail)(torch.ones(1)).item() == -1
