"""A run records what computes it, and says so where it goes on with something else."""

from __future__ import annotations

from pathlib import Path

import pytest

import nmt
from nmt.fast import arithmetic
from nmt.fast.kernels import build
from nmt.training.checkpoint import load_state
from tests.training.toy import recipe, write_reversal


def test_a_run_says_what_computed_it_and_what_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5)
    run = tmp_path / "run"
    monkeypatch.setenv("NMT_FAST", "0")
    nmt.train(recipe(tmp_path, training={"updates": 2}), run, device="cpu", quiet=True)
    assert load_state(run).arithmetic == "plain PyTorch"
    nmt.train(recipe(tmp_path, training={"updates": 2}), run, device="cpu", quiet=True, resume=True)
    assert not caplog.records
    monkeypatch.setenv("NMT_FAST", "1")
    nmt.train(recipe(tmp_path, training={"updates": 3}), run, device="cpu", quiet=True, resume=True, force=True)
    [record] = caplog.records
    assert record.getMessage().startswith(f"The run in {run} computed with plain PyTorch and goes on with fast modules")
    assert load_state(run).arithmetic == arithmetic()


def test_what_computes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_FAST", "1")
    monkeypatch.setattr(build.prepared, "library", None)
    assert arithmetic() == "fast modules"
    monkeypatch.setenv("NMT_FAST", "0")
    assert arithmetic() == "plain PyTorch"
