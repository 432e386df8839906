"""Under torchrun with restarts, a training goes on by itself after a rank or a node has ended, or one has joined.

A node is a torchrun of its own on this machine. All write to the same run folder, as on a shared file system.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from nmt.bundle.folder import Bundle
from nmt.recipe import Recipe
from nmt.training.checkpoint import load_state
from nmt.training.trainer import train
from tests.training.ranks import SECONDS, difference, finish, ranks_of, small_recipe, torchrun, wait_for_updates
from tests.training.runs import outcome, timeless
from tests.training.toy import write_reversal

KILLS = int(os.environ.get("NMT_TEST_KILLS", "1"))
"""How many runs lose a rank at a random moment."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="process ids are read from /proc"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_reversal(folder, pairs=600, held_out=15)
    return folder


def kill(node: subprocess.Popen[str]) -> None:
    """End a node as a power failure does."""
    ranks = ranks_of(node)
    node.kill()
    for process in ranks.values():
        os.kill(process, signal.SIGKILL)
    node.communicate(timeout=SECONDS)


def has_ranks(node: subprocess.Popen[str], count: int) -> bool:
    return len(ranks_of(node)) == count


def wait_until(condition: Callable[[], bool], *nodes: subprocess.Popen[str]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert [node.poll() for node in nodes] == [None] * len(nodes), [node.communicate() for node in nodes]
        assert time.monotonic() < until
        time.sleep(0.001)


# --- a rank -------------------------------------------------------------------------------------------------------


RESTARTS = ("--max-restarts", "9")
ONE_NODE = (*RESTARTS, "--standalone", "--nproc-per-node", "3")


@dataclass(frozen=True)
class Undisturbed:
    recipe: Recipe
    outcome: dict[str, Any]
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    recipe = small_recipe(corpus, dropout=0.3, optimizer="adam", updates=150, epochs=100, ema=0.9)
    began = time.monotonic()
    status, errors = finish(torchrun(recipe, folder / "run", *ONE_NODE))
    assert status == 0, errors
    return Undisturbed(recipe, outcome(folder / "run"), time.monotonic() - began)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_training_that_loses_a_rank_ends_with_the_same_bytes(
    undisturbed: Undisturbed, tmp_path: Path, number: int
) -> None:
    draw = random.Random(number)
    node = torchrun(undisturbed.recipe, tmp_path / "run", *ONE_NODE)
    time.sleep(draw.uniform(0.1, 0.8) * undisturbed.seconds)
    wait_until(lambda: has_ranks(node, 3), node)
    os.kill(ranks_of(node)[draw.randrange(3)], signal.SIGKILL)
    status, errors = finish(node)
    assert status == 0, errors
    assert "(exitcode: -9)" in errors
    assert outcome(tmp_path / "run") == undisturbed.outcome


# --- a node -------------------------------------------------------------------------------------------------------


@pytest.fixture
def meeting() -> Iterator[tuple[str, ...]]:
    """torchrun's options for one to three nodes that meet at a store in this process, which outlives them."""
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    conf = "is_host=0,last_call_timeout=2,keep_alive_interval=1"
    yield (
        *(*RESTARTS, "--nnodes", "1:3", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "test"),
        *("--rdzv-endpoint", f"localhost:{store.port}", "--rdzv-conf", conf, "--local-addr", "localhost"),
    )
    del store


@pytest.fixture
def recipe(corpus: Path) -> Recipe:
    """A recipe that gives the same weights with any number of ranks."""
    return small_recipe(
        corpus,
        updates=1500,
        epochs=1000,
        validation={"metrics": "bleu", "every": 50},
        optimizer={"kind": "sgd", "rate": 0.02},
    )


def check_model(recipe: Recipe, run: Path) -> None:
    """Compare a run with that of one process."""
    train(recipe, run.parent / "one", device=torch.device("cpu"), quiet=True)
    assert difference(run.parent / "one", run) < 1e-5
    assert [record["update"] for record in timeless(run)] == [
        record["update"] for record in timeless(run.parent / "one")
    ]
    Bundle.load(run)


def test_nodes_join_and_are_lost(recipe: Recipe, tmp_path: Path, meeting: tuple[str, ...]) -> None:
    run = tmp_path / "run"
    first, second = (torchrun(recipe, run, *meeting) for _ in range(2))
    wait_for_updates(run, first)
    assert load_state(run).progress["update"] < 500
    third = torchrun(recipe, run, *meeting)
    wait_until(lambda: has_ranks(third, 1), first, second, third)
    seen = load_state(run).progress["update"]
    wait_until(lambda: load_state(run).progress["update"] > seen, first, second, third)
    kill(second)
    for node in (first, third):
        status, errors = finish(node)
        assert status == 0, errors
    check_model(recipe, run)
