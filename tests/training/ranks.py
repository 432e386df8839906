"""Commands that train with several processes, and the processes that they start."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.bundle.folder import load_tensors
from nmt.recipe import dump_recipe, parse_recipe
from nmt.training.checkpoint import STATE
from tests.commands import NMT
from tests.training.toy import recipe as toy_recipe

SECONDS = 300


def recipe_file(corpus: Path, folder: Path, *, train: Any = None, dropout: float = 0.0, **training: Any) -> Path:
    """The recipe of a small model of the reversal corpus, in a file."""
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


def start(command: Sequence[str], **variables: str) -> subprocess.Popen[str]:
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
    """The process ids of the ranks that a command has started, by the number of the rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    processes = {}
    for child in map(int, children):
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        processes.update({int(entry[5:]): child for entry in variables if entry.startswith(b"RANK=")})
    return processes
