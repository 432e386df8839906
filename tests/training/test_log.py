"""The log tells losses, speed and time as they were, also of a resumed run."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt.errors import UsageError
from nmt.training import log
from nmt.training.log import Log, Meter
from nmt.training.losses import LossStats

Wait = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """A function that lets time pass for a meter."""
    now = [100.0]
    monkeypatch.setattr(log, "time", SimpleNamespace(monotonic=lambda: now[0]))  # not the clock of other threads

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def make_updates(meter: Meter, wait: Wait, count: int) -> None:
    for _ in range(count):
        wait(0.5)
        meter.add(LossStats(tokens=6, nll=3.0, alignment_loss=2.0, linked_tokens=4))


def test_a_validation_counts_as_time_but_not_for_the_speed(wait: Wait) -> None:
    meter = Meter()
    make_updates(meter, wait, 1)
    wait(20.0)
    meter.tick()
    make_updates(meter, wait, 1)
    assert meter.times(100) == pytest.approx({"tokens_per_second": 12.0, "seconds": 21.0, "seconds_left": 1050.0})
    assert meter.losses() == pytest.approx({"loss": 0.5, "perplexity": 2.718281828**0.5, "alignment_loss": 0.5})


def test_a_resumed_run_goes_on_with_losses_and_time_and_measures_its_own_speed(wait: Wait) -> None:
    stopped, resumed = Meter(), Meter()
    make_updates(stopped, wait, 1)
    stopped.reset()
    assert stopped.stats == LossStats()
    make_updates(stopped, wait, 3)
    resumed.load_state_dict(stopped.state_dict())
    assert resumed.losses() == stopped.losses()
    wait(1000.0)
    resumed.start()
    make_updates(resumed, wait, 1)
    assert resumed.times(8) == pytest.approx({"tokens_per_second": 12.0, "seconds": 2.5, "seconds_left": 4.0})


def test_records_go_to_tensorboard_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[object, ...]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            written.append((folder,))

        def add_scalar(self, *row: object) -> None:
            written.append(row)

        def flush(self) -> None:
            written.append(())

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer))
    records = Log(tmp_path, quiet=True, tensorboard=True)
    records.skipped({"update": 3, "reason": "no number", "skipped": 1})
    records.sync()
    assert written == [(str(tmp_path / "tensorboard"),), ("skip/update", 3, 3), ("skip/skipped", 1, 3), ()]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UsageError, match="needs TensorBoard"):
        Log(tmp_path, quiet=True, tensorboard=True)
