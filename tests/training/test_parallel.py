"""Several processes train the model that one process trains; they stop, fail and resume together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.bundle.folder import Bundle, load_tensors
from nmt.errors import UsageError
from nmt.recipe import dump_recipe, parse_recipe
from nmt.training import launch
from nmt.training.checkpoint import STATE, load_state
from nmt.training.folder import resume_command
from nmt.training.optim import Clock
from nmt.training.parallel import ALONE, Ranks, device_of_rank
from nmt.training.trainer import train
from tests.commands import NMT, Forked, use_forks
from tests.training.runs import outcome, timeless
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import train_step as toy_train_step
from tests.training.toy import write_reversal

CPU = torch.device("cpu")
SECONDS = 300


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_reversal(folder, pairs=600, held_out=15)
    return folder


def recipe_file(corpus: Path, folder: Path, *, train: Any = None, dropout: float = 0.0, **training: Any) -> Path:
    settings = {
        "epochs": 5,
        "updates": 20,
        "optimizer": {"kind": "sgd", "rate": 0.5},
        "batch_tokens": 500,
        "accumulate": 2,
        "validation": {"metrics": "bleu", "every": 5, "keep_best": 2},
        **training,
    }
    folder.mkdir(exist_ok=True)
    sizes = {"embedding": 16, "encoder": {"hidden": 16}, "decoder": {"hidden": 32}}
    recipe = toy_recipe(corpus, training=settings, model={**sizes, "dropout": dropout})
    if train is not None:
        tree = recipe.model_dump()
        recipe = parse_recipe(tree | {"data": tree["data"] | {"train": train}}, "the test's recipe")
    path = folder / "toy.yaml"
    path.write_text(dump_recipe(recipe))
    return path


def command(recipe: Path, run: Path, count: int, *options: str) -> list[str]:
    return [*NMT, "train", str(recipe), "-o", str(run), "--processes", str(count), "--threads", "1", *options]


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and stderr."""
    _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors


def difference(one: Path, other: Path) -> float:
    """The largest difference between the weights of two states."""
    states = [load_tensors(run / STATE) for run in (one, other)]
    names = [name for name in states[0] if name.startswith("weights.")]
    assert names
    return max(float((states[0][name] - states[1][name]).abs().max()) for name in names)


# --- the same model -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "normalization"),
    [(2, "tokens"), *(pytest.param(4, kind, marks=pytest.mark.slow) for kind in ("tokens", "sentences"))],
)
def test_several_processes_train_the_model_of_one(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, normalization: str
) -> None:
    validation = {"metrics": "bleu", "every": 5, "keep_best": 2}
    mixture = [{"corpus": f"{corpus}/{part}.{{src,tgt}}", "weight": 1.5} for part in ("train", "valid")]
    recipe = recipe_file(
        corpus, tmp_path, train=mixture, normalization=normalization, updates=10, validation=validation
    )
    train(recipe, tmp_path / "one", device=CPU, quiet=True)
    use_forks(launch, monkeypatch)
    with (tmp_path / "log").open("wb") as log:
        status = Forked(command(recipe, tmp_path / "several", count), env=os.environ, stdout=log).wait()
    errors = (tmp_path / "log").read_text()
    assert status == 0, errors
    assert f"{count} processes of 1 thread" in errors
    assert difference(tmp_path / "one", tmp_path / "several") < 1e-6
    one, several = (timeless(tmp_path / name) for name in ("one", "several"))
    assert [record["update"] for record in one] == [record["update"] for record in several]
    for ours, theirs in zip(one, several, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    Bundle.load(tmp_path / "several")


@pytest.mark.slow
def test_the_same_processes_train_the_same_bytes_even_if_stopped_and_resumed(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_file(corpus, tmp_path, dropout=0.3, optimizer="adam", updates=60, ema=0.9)
    for name in ("whole", "again"):
        assert finish(start(command(recipe, tmp_path / name, 2, "-q"))) == (0, "")
    expected = outcome(tmp_path / "whole")
    assert outcome(tmp_path / "again") == expected
    stopped = start(command(recipe, tmp_path / "parts", 2, "-q"))
    wait_for_updates(tmp_path / "parts", stopped)
    stopped.send_signal(signal.SIGTERM)
    status, errors = finish(stopped)
    assert status == 128 + signal.SIGTERM
    assert errors.startswith("nmt: Stopped. The state is saved; go on with: nmt train ")
    assert errors.count("\n") == 1
    assert "--processes 2" in errors
    assert finish(start(command(recipe, tmp_path / "parts", 2, "-q", "--resume"))) == (0, "")
    assert outcome(tmp_path / "parts") == expected


@pytest.mark.slow
def test_a_run_resumes_with_another_number_of_processes(corpus: Path, tmp_path: Path) -> None:
    short, long = (recipe_file(corpus, tmp_path / name, updates=count) for name, count in (("a", 10), ("b", 20)))
    train(long, tmp_path / "whole", device=CPU, quiet=True)
    assert finish(start(command(short, tmp_path / "parts", 2, "-q"))) == (0, "")
    status, errors = finish(start(command(long, tmp_path / "parts", 3, "--resume", "--force")))
    assert status == 0
    assert "had --processes 2 and goes on with 3" in errors
    assert difference(tmp_path / "whole", tmp_path / "parts") < 1e-6


@pytest.mark.slow
def test_torchrun_starts_ranks_too(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_file(corpus, tmp_path)
    train(recipe, tmp_path / "one", device=CPU, quiet=True)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    status, errors = finish(start([*torchrun, "nmt", "train", str(recipe), "-o", str(tmp_path / "two")]))
    assert status == 0, errors
    assert errors.count("run folder") == 1
    assert difference(tmp_path / "one", tmp_path / "two") < 1e-6


# --- failures -----------------------------------------------------------------------------------------------------


def wait_for_updates(run: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the run has saved a state."""
    until = time.monotonic() + SECONDS
    while not (run / "weights.safetensors").exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)


def ranks_of(process: subprocess.Popen[str]) -> list[int]:
    """The process ids of the ranks that a command has started, in their order."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    places = {}
    for child in map(int, children):
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        places.update({int(entry[5:]): child for entry in variables if entry.startswith(b"RANK=")})
    return [places[rank] for rank in sorted(places)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="process ids are read from /proc")
@pytest.mark.parametrize(
    ("victim", "sentence"),
    [
        (1, "nmt: Another process of this training has ended. The state is saved; go on with: nmt train"),
        (0, "nmt: The first of 2 processes was ended by SIGKILL."),
    ],
)
def test_a_killed_process_ends_the_run_with_one_sentence(
    corpus: Path, tmp_path: Path, victim: int, sentence: str
) -> None:
    recipe = recipe_file(corpus, tmp_path, epochs=1000, updates=None)
    running = start(command(recipe, tmp_path / "run", 2, "-q"))
    wait_for_updates(tmp_path / "run", running)
    ranks = ranks_of(running)
    os.kill(ranks[victim], signal.SIGKILL)
    status, errors = finish(running)
    assert status == 1
    assert errors.startswith(sentence)
    assert errors.count("\n") == 1
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)
    Bundle.load(tmp_path / "run")


@pytest.mark.slow
def test_ranks_save_and_end_when_their_launcher_is_killed(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_file(corpus, tmp_path, epochs=1000, updates=None)
    running = start(command(recipe, tmp_path / "run", 2, "-q"))
    wait_for_updates(tmp_path / "run", running)
    ranks = ranks_of(running)
    assert len(ranks) == 2
    running.kill()
    running.communicate(timeout=SECONDS)  # both ranks have closed their output
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{rank}").exists() for rank in ranks) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)
    assert load_state(tmp_path / "run").progress["update"] > 0


@pytest.mark.slow
def test_bad_text_is_reported_once(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_file(corpus, tmp_path)
    status, errors = finish(start(command(recipe, tmp_path / "run", 2, "--set", "data.train=missing/train")))
    assert status == 1
    assert errors.count("\n") == 1
    assert "missing/train" in errors
    assert not (tmp_path / "run").exists()


# --- parts --------------------------------------------------------------------------------------------------------


def test_shares_are_disjoint_and_complete() -> None:
    rows = list(range(11))
    shares = [Ranks(rank, 4).share(rows) for rank in range(4)]
    assert sorted(row for share in shares for row in share) == rows
    assert max(map(len, shares)) - min(map(len, shares)) == 1
    assert [list(Ranks(rank, 4).share([7])) for rank in range(4)] == [[7], [], [], []]


@pytest.mark.parametrize("batches", [1, 4])
def test_gradients_are_summed_once_per_update(corpus: Path, monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    sums: list[int] = []
    monkeypatch.setattr("torch.distributed.all_reduce", lambda tensor: sums.append(tensor.numel()))
    step, pairs = toy_train_step(toy_recipe(corpus), ranks=Ranks(0, 2))
    rows = np.arange(6 * batches, dtype=np.int32).reshape(batches, 6)
    step.update(step.prepare(pairs, list(rows)), Clock(0, 0.0, 0.0, 0))
    gradients = sum(weight.numel() for weight in step.model.parameters())
    assert sums == [1, 3, gradients]  # before them, whether memory ran out, and the figures of the log


def test_a_process_alone_needs_nobody() -> None:
    model = torch.nn.Linear(2, 1)
    model.weight.grad = torch.ones(1, 2)
    ALONE.sum_gradients(model, torch.zeros(3))
    assert model.weight.grad.tolist() == [[1.0, 1.0]]
    assert model.bias.grad is None
    assert ALONE.sum([1, 2.5]) == [1, 2.5]
    assert ALONE.gather("x") == ["x"]
    assert ALONE.from_first(lambda: 3) == 3
    assert ALONE.any(value=True)
    assert not ALONE.any(value=False)
    state = torch.get_rng_state()
    ALONE.seed(1, 2)
    assert torch.equal(torch.get_rng_state(), state)


def test_ranks_draw_different_numbers_in_every_update() -> None:
    draws = set()
    for rank, update in [(0, 0), (1, 0), (0, 1), (1, 1)]:
        Ranks(rank, 2).seed(1, update)
        draws.add(torch.rand(()).item())
    assert len(draws) == 4


def test_the_command_to_resume_has_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--processes" not in resume_command(Path("run"), CPU)
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert resume_command(Path("run"), CPU).startswith("torchrun --nproc-per-node 2 -m nmt train run/recipe.yaml")
    monkeypatch.setenv(launch.RENDEZVOUS, "file:///x")
    assert resume_command(Path("run"), CPU).endswith("--processes 4")
    assert "--device cuda --processes 4" in resume_command(Path("run"), torch.device("cuda:0"))


def test_each_rank_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.device("cuda")
    assert device_of_rank(cuda) == cuda
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert device_of_rank(cuda) == torch.device("cuda:3")
    assert device_of_rank(CPU) == CPU


def test_ranks_do_not_share_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(UsageError, match="this machine has 1 GPU"):
        device_of_rank(torch.device("cuda"))
    with pytest.raises(UsageError, match="cannot share cuda:0"):
        device_of_rank(torch.device("cuda:0"))
