"""A run records the implementation that computes it, and warns if it is resumed with another one."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

import nmt
from nmt.fast import arithmetic
from nmt.fast.kernels import build
from nmt.training.checkpoint import load_state
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal


def test_resuming_with_another_implementation_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5)
    run = tmp_path / "run"
    monkeypatch.setenv("NMT_FAST", "0")
    nmt.train(toy_recipe(tmp_path, training={"updates": 2}), run, device="cpu", quiet=True)
    assert load_state(run).arithmetic == "plain PyTorch"
    nmt.train(toy_recipe(tmp_path, training={"updates": 2}), run, device="cpu", quiet=True, resume=True)
    assert not caplog.records
    monkeypatch.setenv("NMT_FAST", "1")
    nmt.train(toy_recipe(tmp_path, training={"updates": 3}), run, device="cpu", quiet=True, resume=True, force=True)
    [record] = caplog.records
    assert record.getMessage().startswith(f"The run in {run} computed with plain PyTorch and goes on with fast modules")
    assert load_state(run).arithmetic == arithmetic()


def test_arithmetic_names_the_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_FAST", "1")
    monkeypatch.setattr(build.prepared, "library", ctypes.CDLL(None))
    assert arithmetic() == "fast modules and kernels (native)"
    monkeypatch.setattr(build.prepared, "library", None)
    assert arithmetic() == "fast modules"
    monkeypatch.setenv("NMT_FAST", "0")
    assert arithmetic() == "plain PyTorch"
