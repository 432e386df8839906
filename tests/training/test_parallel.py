"""Several processes train the model that one process trains; they stop, fail and resume together."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from torch import Tensor, distributed

from nmt.bundle.folder import Bundle, load_tensors
from nmt.errors import DataError, UsageError
from nmt.recipe import Recipe, dump_recipe, parse_recipe
from nmt.training.folder import STATE, load_state
from nmt.training.optim import Clock
from nmt.training.parallel import Ranks, device_of_rank, goes_on_by_itself
from nmt.training.trainer import train
from nmt.training.update import TrainStep
from tests.training.runs import outcome, timeless
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import train_step as toy_train_step
from tests.training.toy import write_reversal

CPU = torch.device("cpu")
TWO = ("--standalone", "--nproc-per-node", "2")
SECONDS = 300
SETTINGS: dict[str, Any] = {
    "epochs": 5,
    "updates": 20,
    "optimizer": {"kind": "sgd", "rate": 0.5},
    "batch_tokens": 500,
    "accumulate": 2,
    "validation": {"metrics": "bleu", "every": 5, "keep_best": 2},
}
SIZES = {"embedding": 16, "encoder": {"hidden": 16}, "decoder": {"hidden": 32}}


def small_recipe(corpus: Path, *, dropout: float = 0.0, **training: Any) -> Recipe:
    """A small model of the reversal corpus, which any number of ranks trains alike."""
    return toy_recipe(corpus, training={**SETTINGS, **training}, model={**SIZES, "dropout": dropout})


def train_together(recipe: Recipe, run: Path, count: int, **options: Any) -> None:
    """Train with so many forks of this process."""
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    variables = {"WORLD_SIZE": str(count), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}

    def rank(number: int) -> None:
        os.environ.update(variables, RANK=str(number))
        train(recipe, run, device="cpu", quiet=True, **options)

    forks = multiprocessing.get_context("fork")
    processes = [forks.Process(target=rank, args=(number,)) for number in range(count)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking a process with threads, which wait
        for process in processes:
            process.start()
    for process in processes:
        process.join(SECONDS)
    assert [process.exitcode for process in processes] == [0] * count


def torchrun(recipe: Recipe, run: Path, *options: str, resume: bool = False) -> subprocess.Popen[str]:
    """Start torchrun with these options of it."""
    file = run.with_suffix(".yaml")
    file.write_text(dump_recipe(recipe))
    training = ["-m", "nmt", "train", str(file), "-o", str(run), "--threads", "1", *(["--resume"] if resume else [])]
    variables = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", *options, *training]
    environment = {**os.environ, **variables}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


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


def wait_for_updates(run: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the run has saved a model."""
    until = time.monotonic() + SECONDS
    while not (run / "weights.safetensors").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


def ranks_of(process: subprocess.Popen[str]) -> dict[int, int]:
    """The process ids of the ranks that torchrun has started, by the number of the rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    processes = {}
    for child in map(int, children):
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        processes.update({int(entry[5:]): child for entry in variables if entry.startswith(b"RANK=")})
    return processes


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_reversal(folder, pairs=600, held_out=15)
    return folder


# --- the same model -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "training"),
    [
        (2, {"guided_alignment": {"links": "train.align"}}),
        (4, {"batch_sentences": 3, "normalization": "sentences"}),  # so that the last rank has no pair
    ],
)
def test_several_processes_train_the_model_of_one(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, training: dict[str, Any]
) -> None:
    monkeypatch.chdir(corpus)
    mixture = [{"corpus": f"{corpus}/{part}.{{src,tgt}}", "weight": 1.5} for part in ("train", "valid")]
    tree = small_recipe(corpus, updates=10, **training).model_dump()
    if "guided_alignment" not in training:
        tree["data"]["train"] = mixture
    recipe = parse_recipe(tree, "the test's recipe")
    train(recipe, tmp_path / "one", device=CPU, quiet=True)
    train_together(recipe, tmp_path / "several", count)
    assert difference(tmp_path / "one", tmp_path / "several") < 1e-6
    one, several = (timeless(tmp_path / name) for name in ("one", "several"))
    assert [record["update"] for record in one] == [record["update"] for record in several]
    for ours, theirs in zip(one, several, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    Bundle.load(tmp_path / "several")


def test_a_run_resumes_with_another_number_of_processes(corpus: Path, tmp_path: Path) -> None:
    short, long = (small_recipe(corpus, updates=updates) for updates in (10, 20))
    train(long, tmp_path / "whole", device=CPU, quiet=True)
    train_together(short, tmp_path / "parts", 3)
    train(long, tmp_path / "parts", device=CPU, quiet=True, resume=True, force=True)
    assert difference(tmp_path / "whole", tmp_path / "parts") < 1e-6


@pytest.mark.slow
def test_torchrun_passes_signals_on_and_the_run_resumes_to_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, dropout=0.3, optimizer="adam", updates=60, ema=0.9)
    status, errors = finish(torchrun(recipe, tmp_path / "whole", *TWO))
    assert status == 0, errors
    assert errors.count("run folder") == 1
    stopped = torchrun(recipe, tmp_path / "parts", *TWO)
    wait_for_updates(tmp_path / "parts", stopped)
    stopped.send_signal(signal.SIGTERM)
    status, errors = finish(stopped)
    assert status != 0
    assert "The state is saved; go on with --resume." in errors  # by the signal, or since the other has ended by it
    status, errors = finish(torchrun(recipe, tmp_path / "parts", *TWO, resume=True))
    assert status == 0, errors
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="process ids are read from /proc")
def test_a_training_that_torchrun_restarts_after_a_rank_was_lost_ends_with_the_same_bytes(
    corpus: Path, tmp_path: Path
) -> None:
    recipe = small_recipe(corpus, dropout=0.3, optimizer="adam", updates=150, epochs=100, ema=0.9)
    for name in ("whole", "disturbed"):
        node = torchrun(recipe, tmp_path / name, "--max-restarts", "9", *TWO)
        if name == "disturbed":
            wait_for_updates(tmp_path / name, node)
            os.kill(ranks_of(node)[1], signal.SIGKILL)
        status, errors = finish(node)
        assert status == 0, errors
        for said in ("(exitcode: -9)", "nmt: Another process of this training has ended. The state is saved; "):
            assert (said in errors) == (name == "disturbed")
    assert outcome(tmp_path / "disturbed") == outcome(tmp_path / "whole")


# --- parts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_ranks(tmp_path: Path) -> Iterator[Ranks]:
    """The first of two ranks, whose group is this process alone: what it sends comes back."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield Ranks(0, 2)
    distributed.destroy_process_group()


@pytest.mark.parametrize("batches", [1, 4])
def test_gradients_are_sent_once_per_update(corpus: Path, two_ranks: Ranks, batches: int) -> None:
    sent: list[int] = []

    def keep(gradients: Tensor) -> torch.futures.Future[Tensor]:
        sent.append(gradients.numel())
        future: torch.futures.Future[Tensor] = torch.futures.Future()
        future.set_result(gradients)
        return future

    step, pairs = toy_train_step(toy_recipe(corpus), ranks=two_ranks)
    step.parallel_model.register_comm_hook(None, lambda _, bucket: keep(bucket.buffer()))  # type: ignore[operator]
    for update in range(2):  # the second one has buckets in the order of the backward pass
        rows = np.arange(6 * batches, dtype=np.int32).reshape(batches, 6)
        step.update(step.prepare(pairs, list(rows)), Clock(update, 0.0, 0.0, 0))
        assert sum(sent) == sum(weight.numel() for weight in step.model.parameters())
        sent.clear()


def test_a_batch_too_large_for_one_rank_ends_the_training(
    corpus: Path, tmp_path: Path, two_ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait for its gradients, so none of them can leave the batch out."""
    monkeypatch.setattr("nmt.training.trainer.open_ranks", lambda _: nullcontext(two_ranks))
    monkeypatch.setattr(TrainStep, "_compute_gradient", raise_out_of_memory)
    with pytest.raises(DataError, match=r"does not fit into memory.*training\.batch_tokens") as failure:
        train(small_recipe(corpus), tmp_path / "run", device=CPU, quiet=True)
    assert "go on with" in str(failure.value)
    assert load_state(tmp_path / "run").progress["update"] == 0


def raise_out_of_memory(*_: object) -> NoReturn:
    raise torch.OutOfMemoryError


def test_ranks_that_torchrun_restarts_go_on_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not goes_on_by_itself(tmp_path)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "False")
    assert goes_on_by_itself(tmp_path)
    assert not goes_on_by_itself(tmp_path / "new")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    with pytest.raises(UsageError, match="TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"):
        goes_on_by_itself(tmp_path)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "0")
    assert not goes_on_by_itself(tmp_path)


def test_each_rank_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.device("cuda")
    assert device_of_rank(cuda) == cuda
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert device_of_rank(cuda) == torch.device("cuda:3")
    assert device_of_rank(CPU) == CPU
