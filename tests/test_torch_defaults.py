"""What a program has set for PyTorch as a whole changes no result, and stands again afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import torch

import nmt
from nmt.alignment.translation import Translation
from nmt.recipe import Recipe
from tests.robustness import tiny
from tests.training import toy

LINES = ["the dog sees a cat .", "", "a cat sleeps . " * 8]


@contextmanager
def double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def another_device() -> Iterator[None]:
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


SETTINGS: list[Callable[[], AbstractContextManager[object]]] = [
    double_precision,
    another_device,
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.device("meta"),
    lambda: torch.autocast("cpu", torch.bfloat16),
]
NAMES = ["float64", "set_default_device", "no_grad", "inference_mode", "device", "autocast"]
of_a_program = pytest.mark.parametrize("setting", SETTINGS, ids=NAMES)


def globals_of_torch() -> tuple[object, ...]:
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
    )


def results(folder: Path) -> list[Translation]:
    translator = nmt.load(folder, device="cpu", max_source=40)
    pairs = [(line, "ein hund .") for line in LINES]
    return [*translator.translate(LINES), *translator.stream(LINES), *translator.align(pairs), *translator.score(pairs)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder_in(tmp_path_factory.mktemp("defaults"))


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Translation]:
    return results(folder)


@of_a_program
def test_translations_are_those_without_the_setting(
    folder: Path, expected: list[Translation], setting: Callable[[], AbstractContextManager[object]]
) -> None:
    with setting():
        before = globals_of_torch()
        actual = results(folder)
        assert globals_of_torch() == before
    assert actual == expected
    assert [item.links for item in actual] == [item.links for item in expected]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, bytes]:
    """A recipe, and the weights that it trains."""
    folder = tmp_path_factory.mktemp("plain")
    toy.write_reversal(folder, pairs=60, held_out=8)
    recipe = toy.recipe(folder, training={"updates": 2, "validation": {"every": 2}})
    return recipe, train(recipe, folder / "run")


def train(recipe: Recipe, folder: Path) -> bytes:
    nmt.train(recipe, folder, device="cpu", quiet=True)
    return (folder / "weights.safetensors").read_bytes()


@of_a_program
def test_training_is_that_without_the_setting(
    plain: tuple[Recipe, bytes], tmp_path: Path, setting: Callable[[], AbstractContextManager[object]]
) -> None:
    recipe, weights = plain
    with setting():
        before = globals_of_torch()
        assert train(recipe, tmp_path / "run") == weights
        assert globals_of_torch() == before
