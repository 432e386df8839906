"""Trainings of several ranks: forks of this process, or processes that torchrun starts."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from nmt.bundle.folder import load_tensors
from nmt.recipe import Recipe, dump_recipe
from nmt.training.checkpoint import STATE
from nmt.training.trainer import train
from tests.training.toy import recipe as toy_recipe

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
