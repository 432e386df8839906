"""A run that is killed, stopped or disturbed and then resumed gives the same bytes as an uninterrupted run."""

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.bundle.folder import WEIGHTS, Bundle, load_tensors
from nmt.errors import DataError, UsageError
from nmt.model.interface import ModelOutput
from nmt.model.recurrent import RecurrentModel
from nmt.recipe import Recipe, dump_recipe
from nmt.training import best, trainer
from nmt.training.folder import LOCK, STATE, load_state, lock_folder
from nmt.training.losses import PendingStats
from nmt.training.optim import Clock
from nmt.training.preparation import TrainingText
from nmt.training.trainer import Interrupted, train
from nmt.training.update import PreparedGroup, TrainStep
from nmt.training.validation import Validator
from tests.commands import Running, good
from tests.training.runs import outcome, timeless
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

CPU = torch.device("cpu")

EVERYTHING: dict[str, Any] = {
    "ema": 0.9,
    "accumulate": 2,
    "log_every": 3,
    "validation": {"keep_best": 3, "every": 4, "patience": None, "metrics": ["bleu", "chrf"]},
    "schedule": {"kind": "plateau", "patience": 1},
    "guided_alignment": {"links": "train.align", "decay": 0.5},
    "scheduled_sampling": {"kind": "inverse-sigmoid", "scale": 10},
}
SAMPLED = {"kind": "unigram", "size": 20, "byte_fallback": False, "sampling": 0.5}
SIZES = {"embedding": 16, "encoder": {"hidden": 16}, "decoder": {"hidden": 16, "readout": {"kind": "tanh", "size": 16}}}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    write_reversal(folder, pairs=120, held_out=10)
    return folder


@pytest.fixture(autouse=True)
def beside_the_links(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus)


def everything(corpus: Path, **training: Any) -> Recipe:
    """A recipe that uses everything that a state holds."""
    settings = {**EVERYTHING, "epochs": 3, **training}
    return toy_recipe(corpus, training=settings, model={**SIZES, "dropout": 0.3}, subwords=SAMPLED)


def plain(corpus: Path, **training: Any) -> Recipe:
    """A recipe that trains quickly: two updates per epoch, and a validation after each epoch."""
    settings = {"epochs": 2, "log_every": 1, "batch_tokens": 512, "validation": {"metrics": "perplexity"}, **training}
    return toy_recipe(corpus, training=settings, model={**SIZES, "dropout": 0.1})


@pytest.fixture(scope="module")
def two_best(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, dict[str, Any]]:
    """A plain recipe that keeps two checkpoints, and the outcome of an uninterrupted run."""
    recipe, run = plain(corpus, validation={"metrics": "perplexity", "keep_best": 2}), tmp_path_factory.mktemp("runs")
    train(recipe, run / "whole", device=CPU, quiet=True)
    return recipe, outcome(run / "whole")


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the plain recipe. Tests that change it copy it."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    train(plain(corpus), run, device=CPU, quiet=True)
    return run


def process(recipe: Recipe, run: Path, *options: str) -> Running:
    """A process that runs `nmt train`."""
    file = run.with_suffix(".yaml")
    file.write_text(dump_recipe(recipe))
    return Running("train", file, "--out", run, "-q", "--threads", "1", *options)


def without_picture(run: Path) -> dict[str, Any]:
    """The outcome without the learning curve, which only the command writes, and the lock of a killed process."""
    return {name: value for name, value in outcome(run).items() if name not in ("learning-curve.png", LOCK)}


# --- real processes ----------------------------------------------------------------------------------------------


def wait_for_work(run: Path, running: Running) -> None:
    """Wait until the process logs an update."""
    before = modification_time(run / "metrics.jsonl")
    while running.poll() is None and modification_time(run / "metrics.jsonl") == before:
        time.sleep(0.001)


def modification_time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kills", "epochs"), [(2, 12), pytest.param(30, 150, marks=pytest.mark.slow)])
def test_a_killed_run_is_resumed_to_the_same_bytes(corpus: Path, tmp_path: Path, kills: int, epochs: int) -> None:
    """`test_faults.py` kills runs at every system call of a save."""
    recipe, run, draw = everything(corpus, epochs=epochs), tmp_path / "parts", random.Random(1)
    train(recipe, tmp_path / "whole", device=CPU, quiet=True)
    for _ in range(kills):
        running = process(recipe, run, *(["--resume"] if run.is_dir() else []))
        wait_for_work(run, running)
        time.sleep(draw.uniform(0, 0.3))
        os.kill(running.pid, signal.SIGKILL)
        ended = running.finish()
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        if (run / WEIGHTS).exists():
            Bundle.load(run)
    good(process(recipe, run, *(["--resume"] if run.is_dir() else [])).finish())
    assert without_picture(run) == outcome(tmp_path / "whole")


# --- signals -----------------------------------------------------------------------------------------------------


def interrupted(recipe: Recipe, run: Path, *, resume: bool = False) -> Interrupted:
    with pytest.raises(Interrupted) as caught:
        train(recipe, run, device=CPU, quiet=True, resume=resume)
    return caught.value


def signal_in_call(function: Callable[..., Any], at: int, *numbers: int) -> Callable[..., Any]:
    """The function, with signals sent in its `at`-th call."""
    count = 0

    def signalled(*args: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            for number in numbers:
                os.kill(os.getpid(), number)
        return function(*args, **named)

    return signalled


@pytest.mark.parametrize(
    ("place", "name", "at", "number"),
    [
        (TrainingText, "load", 1, signal.SIGTERM),
        (RecurrentModel, "forward", 2, signal.SIGTERM),
        (Validator, "validate", 1, signal.SIGINT),
        (Validator, "validate", 3, signal.SIGTERM),
        (trainer, "save_state", 1, signal.SIGHUP),
        (best, "save_tensors", 1, signal.SIGINT),
    ],
    ids=["reading", "update", "validation", "mean", "first save", "model"],
)
def test_a_signal_at_any_moment_saves(
    two_best: tuple[Recipe, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: Any,
    name: str,
    at: int,
    number: int,
) -> None:
    recipe, expected = two_best
    with monkeypatch.context() as patch:
        patch.setattr(place, name, signal_in_call(getattr(place, name), at, number))
        stopped = interrupted(recipe, tmp_path / "parts")
    assert stopped.exit_status == 128 + number
    if name == "load":
        assert str(stopped) == "Stopped. Training had not begun yet."
        return
    assert "The state is saved; go on with --resume." in str(stopped)
    train(recipe, tmp_path / "parts", device=CPU, quiet=True, resume=True)
    result = outcome(tmp_path / "parts")
    if at == 3 and name == "validate":  # the last epoch may count as completed or not
        assert result[STATE][1:] == expected[STATE][1:]
        expected = {**expected, STATE: result[STATE]}
    assert result == expected


def test_a_second_ctrl_c_stops_at_once_and_damages_nothing(
    corpus: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(trainer.Trainer, "save", signal_in_call(trainer.Trainer.save, 2, signal.SIGINT, signal.SIGINT))
        stopped = interrupted(plain(corpus), tmp_path / "parts")
    assert (stopped.exit_status, str(stopped)) == (130, "Stopped. The last saved state is kept; go on with --resume.")
    train(plain(corpus), tmp_path / "parts", device=CPU, quiet=True, resume=True)
    assert outcome(tmp_path / "parts") == outcome(finished)


# --- checks before resuming --------------------------------------------------------------------------------------


def test_a_finished_run_is_resumed_to_itself_without_the_leftovers_of_a_killed_save(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    recipe, run = plain(corpus), tmp_path / "run"
    shutil.copytree(finished, run)
    before = outcome(run)
    (run / f".{STATE}.12345.new").write_bytes(b"half of a")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "update": 99}\n{"kind": "tr')
    train(recipe, run, device=CPU, quiet=True, resume=True)
    assert outcome(run) == before


def test_resuming_on_another_text_names_its_setting(tmp_path: Path) -> None:
    write_reversal(tmp_path, pairs=120, held_out=10)
    recipe = plain(tmp_path, guided_alignment={"links": str(tmp_path / "train.align")}, updates=1)
    train(recipe, tmp_path / "run", device=CPU, quiet=True)
    settings = {
        "train.src": "data.train",
        "valid.tgt": "data.train and data.valid",
        "train.align": "data.train and data.valid and training.guided_alignment.links",
    }
    for file, changed in settings.items():
        text = (tmp_path / file).read_text()
        (tmp_path / file).write_text(text[text.index("\n") :] if file == "train.align" else text.replace("a", "b", 1))
        with pytest.raises(DataError, match=rf"What {changed} name has changed .* --force"):
            train(recipe, tmp_path / "run", device=CPU, quiet=True, resume=True)
    train(recipe, tmp_path / "run", device=CPU, quiet=True, resume=True, force=True)


def test_a_model_without_a_state_is_not_overwritten(corpus: Path, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / STATE).unlink()
    with pytest.raises(DataError, match=r"no state of a training to go on from"):
        train(plain(corpus), tmp_path / "run", device=CPU, quiet=True, resume=True)
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == (finished / WEIGHTS).read_bytes()


def test_a_forced_recipe_may_change_training_but_not_the_model(corpus: Path, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    with pytest.raises(
        DataError, match=r"cannot go on with this recipe, not even by --force: .* of shape \[.*\] is only in"
    ):
        train(toy_recipe(corpus, training={"epochs": 3}), run, device=CPU, quiet=True, resume=True, force=True)
    assert (run / "recipe.yaml").read_bytes() == (finished / "recipe.yaml").read_bytes()
    changed = plain(corpus, epochs=4, optimizer={"kind": "sgd", "rate": 0.1, "momentum": 0.9}, ema=0.5)
    train(changed, run, device=CPU, quiet=True, resume=True, force=True)
    state = load_state(run)
    assert state.progress["epoch"] == 3
    assert {name.split(".")[1] for name in state.optimizer} == {"momentum_buffer"}
    assert state.average.keys() == state.weights.keys()


def test_the_mean_of_the_best_is_validated_once_and_stays_the_model_until_a_later_one_is_better(
    corpus: Path, two_best: tuple[Recipe, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, (recipe, _) = tmp_path / "run", two_best
    mean = 0.5  # a perplexity that only the first mean has
    monkeypatch.setattr(
        Validator, "rank", lambda _, record: (float(record["perplexity"] == mean), -record["perplexity"])
    )
    validate, calls = Validator.validate, 0

    def count(self: Validator) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        record = validate(self)
        return {**record, "perplexity": mean} if calls == 3 else record

    monkeypatch.setattr(Validator, "validate", count)
    train(recipe, run, device=CPU, quiet=True)
    weights = outcome(run)[WEIGHTS]
    assert calls == 3
    assert load_state(run).progress["best"] == [1.0, -mean]
    train(recipe, run, device=CPU, quiet=True, resume=True)
    assert calls == 3
    longer = plain(corpus, epochs=3, validation={"metrics": "perplexity", "keep_best": 2})
    train(longer, run, device=CPU, quiet=True, resume=True)
    assert calls == 5
    assert outcome(run)[WEIGHTS] == weights
    assert [record["best"] for record in timeless(run) if record["kind"] == "valid"][2:] == [True, False, False]


def test_a_damaged_state_is_a_data_error(corpus: Path, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for content in ((run / STATE).read_bytes()[:-9], b"", b"\xff" * 99):
        (run / STATE).write_bytes(content)
        with pytest.raises(DataError, match=rf"{run / STATE}"):
            train(plain(corpus), run, device=CPU, quiet=True, resume=True)


@pytest.mark.parametrize(
    ("folder", "training", "resume", "error", "problem"),
    [
        ("none", {}, True, DataError, "There is no model folder"),
        ("finished", {}, False, UsageError, "exists already: go on with --resume"),
        ("finished", {"epochs": 3, "clip_norm": 2.0}, True, UsageError, r"differs .* in training\.clip_norm: undo"),
        ("new", {"pretrained": "absent"}, False, DataError, "There is no model folder absent"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    corpus: Path,
    finished: Path,
    tmp_path: Path,
    folder: str,
    training: dict[str, Any],
    resume: bool,
    error: type[Exception],
    problem: str,
) -> None:
    run = finished if folder == "finished" else tmp_path / folder
    before = outcome(finished)
    with pytest.raises(error, match=problem):
        train(plain(corpus, **training), run, device=CPU, quiet=True, resume=resume)
    assert outcome(finished) == before


def test_a_folder_in_use_is_refused(corpus: Path, tmp_path: Path) -> None:
    with lock_folder(tmp_path / "run"), pytest.raises(UsageError, match="Another training is at work in"):
        train(plain(corpus), tmp_path / "run", device=CPU, quiet=True)


# --- bad updates ---------------------------------------------------------------------------------------------------


def spoil(patch: pytest.MonkeyPatch, bad: set[int], how: str) -> None:
    """Make the loss or the gradient of these updates not finite, or make memory run out."""
    right, forward, number = TrainStep.update, RecurrentModel.forward, 0

    def numbered(self: TrainStep, group: PreparedGroup, clock: Clock) -> PendingStats:
        nonlocal number
        number = clock.update + 1
        return right(self, group, clock)

    def spoiled(self: RecurrentModel, *args: Any) -> ModelOutput:
        output = forward(self, *args)
        if number not in bad or not self.training:
            return output
        if how == "memory":
            raise torch.OutOfMemoryError
        if how == "loss":
            return replace(output, token_log_probs=output.token_log_probs * float("nan"))
        return replace(output, loss=output.loss * float("inf"))

    patch.setattr(TrainStep, "update", numbered)
    patch.setattr(RecurrentModel, "forward", spoiled)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("loss", "the loss is not a finite number"),
        ("gradient", "the gradient is not a finite number"),
        ("memory", "pairs does not fit into memory"),
    ],
)
def test_bad_updates_are_skipped_and_logged_and_the_run_resumes_the_same(
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    how: str,
    reason: str,
) -> None:
    spoil(monkeypatch, {2, 3, 6}, how)
    recipe = plain(corpus, batch_tokens=128, epochs=2, ema=0.5, accumulate=2, guided_alignment={"links": "train.align"})
    train(recipe, tmp_path / "whole", device=CPU)
    assert "Update 3 is skipped: " in capfd.readouterr().err
    skips = [record for record in timeless(tmp_path / "whole") if record["kind"] == "skip"]
    assert [(record["update"], record["skipped"]) for record in skips] == [(2, 1), (3, 2), (6, 3)]
    assert all(reason in record["reason"] for record in skips)
    assert all(value.isfinite().all() for value in load_tensors(tmp_path / "whole" / WEIGHTS).values())
    resume = False
    for at in (1, 2, 3, 2):  # stopped after updates 1, 3, 4 and 6; 3 and 6 are repeated
        with monkeypatch.context() as patch:
            patch.setattr(TrainStep, "update", signal_in_call(TrainStep.update, at, signal.SIGTERM))
            interrupted(recipe, tmp_path / "parts", resume=resume)
        resume = True
    train(recipe, tmp_path / "parts", device=CPU, quiet=True, resume=True)
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


@pytest.mark.parametrize(
    ("how", "advice"),
    [("loss", r"diverged at update 9: .*training\.optimizer\.rate"), ("memory", r"Memory .*training\.batch_tokens")],
)
def test_many_bad_updates_in_a_row_stop_the_run_and_keep_the_last_good_state(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, advice: str
) -> None:
    run = tmp_path / "run"
    train(plain(corpus, updates=4, epochs=9), tmp_path / "good", device=CPU, quiet=True)
    recipe = plain(corpus, epochs=9, validation={"metrics": "perplexity", "every": 4})
    with monkeypatch.context() as patch:
        spoil(patch, set(range(5, 99)), how)
        with pytest.raises(DataError, match=advice) as caught:
            train(recipe, run, device=CPU, quiet=True)
    assert "as in all of the last 5 updates" in str(caught.value)
    assert "The last good state is kept; go on with --resume --force --set KEY=VALUE." in str(caught.value)
    good = load_tensors(tmp_path / "good" / WEIGHTS)
    assert all(torch.equal(value, good[name]) for name, value in load_tensors(run / WEIGHTS).items())
    train(recipe, run, device=CPU, quiet=True, resume=True)
    assert load_state(run).progress["skipped"] == 4, "the validation after update 8 found the weights good"


def test_diverged_weights_are_never_saved(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    wild = plain(corpus, optimizer={"kind": "sgd", "rate": 1e30}, clip_norm=None, validation={"every": 1})
    with pytest.raises(
        DataError, match=r"diverged at update 1: the loss of the validation text is \S+ nats per token\. Lower"
    ):
        train(wild, run, device=CPU, quiet=True)
    assert not (run / WEIGHTS).exists()
    state = load_state(run)
    assert state.progress["update"] == 0
    assert all(value.isfinite().all() for value in state.weights.values())
    tame = plain(corpus, optimizer={"kind": "sgd", "rate": 0.1}, validation={"every": 1})
    train(tame, run, device=CPU, quiet=True, resume=True, force=True)
    assert json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["best"] is not None
