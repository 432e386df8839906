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
from nmt.training.folder import has_state, load_state
from nmt.training.trainer import train
from tests.training.runs import outcome
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

CPU = torch.device("cpu")


class Killed(BaseException):
    """The death of the process: no later system call has an effect."""


@dataclass
class Disk:
    """Counts the system calls that write below a folder, and makes one of them fail: with an errno, or by death."""

    root: Path
    fault: int | type[Killed]
    at: int
    calls: list[str] = field(default_factory=list)
    dead: bool = False
    _paths: dict[int, Path] = field(default_factory=dict)

    def reach(self, call: str, place: Any, *, halfway: Callable[[], object] = lambda: None) -> None:
        """Count a call. If it is the one to fail, run `halfway`, the part that a failing write completes, and raise."""
        path = self._paths.get(place) if isinstance(place, int) else Path(place)
        if path is None or not path.is_relative_to(self.root):
            return
        if self.dead:
            raise Killed
        self.calls.append(f"{call} {path.relative_to(self.root)}")
        if len(self.calls) != self.at:
            return
        halfway()
        if isinstance(self.fault, int):
            raise OSError(self.fault, os.strerror(self.fault), str(path))
        self.dead = True
        raise self.fault

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """A context in which the system calls of Python code go through this disk."""
        real_open, real_file = os.open, io.open

        def open_descriptor(path: Any, *rest: Any, **named: Any) -> int:
            self.reach("open", path)
            descriptor = real_open(path, *rest, **named)
            self._paths[descriptor] = Path(path)
            return descriptor

        def open_file(path: Any, *rest: Any, **named: Any) -> Any:
            if isinstance(path, int):
                return real_file(path, *rest, **named)
            self.reach("open", path)
            file = real_file(path, *rest, **named)
            if file.writable():
                file.write = self._counted_write(path, file)
            self._paths[file.fileno()] = Path(path)
            return file

        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "replace", "unlink", "mkdir", "ftruncate", "pwrite"):
                patch.setattr(os, name, self._counted(name, getattr(os, name)))
            patch.setattr(os, "open", open_descriptor)
            patch.setattr(io, "open", open_file)
            yield

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(place: Any, *rest: Any, **named: Any) -> Any:
            self.reach(name, place)
            return real(place, *rest, **named)

        return call

    def _counted_write(self, path: Path, file: Any) -> Callable[[Any], int]:
        real = file.write

        def write(content: Any) -> int:
            def half() -> None:
                real(content[: len(content) // 2])
                file.flush()

            self.reach("write", path, halfway=half)
            return int(real(content))

        return write


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
    place = f"{disk.fault} at call {disk.at}, {disk.calls[-1]}"
    if not isinstance(disk.fault, int):
        assert isinstance(problem, Killed), place
    elif problem is not None:  # the run survives some errors, such as failing to remove a file
        assert str(run) in str(problem), place
        assert os.strerror(disk.fault) in str(problem), place
        assert "\n" not in str(problem), place
    begun = has_state(run)
    if begun:
        load_state(run)
    if (run / WEIGHTS).exists():
        assert begun, place
        Bundle.load(run)
    train(recipe, run, device=CPU, quiet=True, resume=run.is_dir())
    assert outcome(run) == whole, place


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_faults_at_all_calls_lose_nothing(recipe: Recipe, whole: dict[str, Any], tmp_path: Path) -> None:
    counting = Disk(tmp_path / "counted", Killed, at=0)
    with counting.mounted():
        train(recipe, tmp_path / "counted", device=CPU, quiet=True)
    assert len(counting.calls) > 50
    for at in range(1, len(counting.calls) + 1):
        for fault in (errno.ENOSPC, errno.EIO, Killed):
            run = tmp_path / f"{at}-{fault if isinstance(fault, int) else 'kill'}"
            survive(recipe, run, Disk(run, fault, at), whole)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_data_error(recipe: Recipe, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match=r"Cannot write to .*run: Permission denied"):
            train(recipe, tmp_path / "run", device=CPU, quiet=True)
    finally:
        tmp_path.chmod(0o700)
