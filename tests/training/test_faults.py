"""A disk error or the death of the process at any system call of a run leaves an intact state and model."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.bundle.folder import WEIGHTS, Bundle
from nmt.errors import DataError
from nmt.recipe import Recipe
from nmt.training.folder import load_state
from nmt.training.trainer import train
from tests.training.runs import outcome
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

CPU = torch.device("cpu")


class Killed(BaseException):
    """The death of the process: no later system call has an effect."""


@dataclass
class Disk:
    """Counts the calls that write below a folder, and makes one of them fail: with an errno, or by death."""

    root: Path
    fault: int | type[Killed]
    at: int
    calls: list[str] = field(default_factory=list)

    def reach(self, call: str, path: Any, *, halfway: Callable[[], object] = lambda: None) -> None:
        """Count a call. If it is the one to fail, run `halfway`, the part that a failing write completes, and raise."""
        if isinstance(path, int) or not Path(path).is_relative_to(self.root):
            return
        if self.fault is Killed and len(self.calls) == self.at > 0:
            raise Killed
        self.calls.append(f"{call} {Path(path).relative_to(self.root)}")
        if len(self.calls) == self.at:
            halfway()
            raise OSError(self.fault, os.strerror(self.fault), str(path)) if isinstance(self.fault, int) else self.fault

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """A context in which the calls of Python code go through this disk."""
        real_open = io.open

        def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(path: Any, *rest: Any, **named: Any) -> Any:
                self.reach(name, path)
                return real(path, *rest, **named)

            return call

        def open_file(path: Any, *rest: Any, **named: Any) -> Any:
            self.reach("open", path)
            file = real_open(path, *rest, **named)
            write = file.write

            def write_half(content: Any) -> None:
                write(content[: len(content) // 2])
                file.flush()

            def counted_write(content: Any) -> Any:
                self.reach("write", path, halfway=lambda: write_half(content))
                return write(content)

            if file.writable():
                file.write = counted_write
            return file

        with pytest.MonkeyPatch.context() as patch:
            for name in ("open", "replace", "unlink", "mkdir"):
                patch.setattr(os, name, counted(name, getattr(os, name)))
            patch.setattr(io, "open", open_file)
            yield


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    folder = tmp_path_factory.mktemp("small")
    write_reversal(folder, pairs=40, held_out=5)
    training = {
        "updates": 3,
        "epochs": 3,
        "log_every": 1,
        "ema": 0.5,
        "batch_tokens": 128,
        "optimizer": {"kind": "adam", "rate": 0.02},
        "validation": {"every": 1, "keep_best": 2, "metrics": "perplexity"},
    }
    sizes = {"embedding": 8, "encoder": {"hidden": 8}, "decoder": {"hidden": 8, "readout": {"kind": "tanh", "size": 8}}}
    return toy_recipe(folder, training=training, model={**sizes, "dropout": 0.1})


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcome of a run without faults."""
    run = tmp_path_factory.mktemp("whole") / "run"
    train(recipe, run, device=CPU, quiet=True)
    return outcome(run)


def survive(recipe: Recipe, run: Path, disk: Disk, whole: dict[str, Any]) -> None:
    """Train with a fault, check what it left, resume without faults, and compare the outcome."""
    problem: BaseException | None = None
    with disk.mounted():
        try:
            train(recipe, run, device=CPU, quiet=True)
        except (DataError, OSError, Killed) as caught:
            problem = caught
    failed = f"{disk.fault} at call {disk.at}, {disk.calls[-1]}"
    if not isinstance(disk.fault, int):
        assert isinstance(problem, Killed), failed
    elif problem is not None:  # the run survives some errors, such as failing to remove a file
        assert str(run) in str(problem), failed
        assert os.strerror(disk.fault) in str(problem), failed
    if (run / WEIGHTS).exists():
        load_state(run)
        Bundle.load(run)
    train(recipe, run, device=CPU, quiet=True, resume=run.is_dir())
    assert outcome(run) == whole, failed


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_faults_at_all_calls_lose_nothing(recipe: Recipe, whole: dict[str, Any], tmp_path: Path) -> None:
    counting = Disk(tmp_path / "counted", Killed, at=0)
    with counting.mounted():
        train(recipe, tmp_path / "counted", device=CPU, quiet=True)
    assert len(counting.calls) > 50
    for at in range(1, len(counting.calls) + 1):
        for fault in (errno.ENOSPC, Killed):
            run = tmp_path / f"{at}-{fault if isinstance(fault, int) else 'kill'}"
            survive(recipe, run, Disk(run, fault, at), whole)
