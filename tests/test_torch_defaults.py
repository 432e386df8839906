"""What a program has set for PyTorch as a whole changes no result, and stands again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

import nmt
from nmt.alignment.translation import Translation
from nmt.recipe import Recipe
from tests.robustness import tiny
from tests.training import toy

LINES = ["the dog sees a cat .", "", "a cat sleeps . " * 8]


@contextmanager
def every_setting() -> Iterator[None]:
    """Another type, device and precision than PyTorch's, and no gradients."""
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with torch.inference_mode(), torch.device("meta"), torch.autocast("cpu", torch.bfloat16):
            before = globals_of_torch()
            yield
            assert globals_of_torch() == before
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def globals_of_torch() -> tuple[object, ...]:
    modes = (torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled())
    return torch.get_default_dtype(), torch.get_default_device(), *modes


def results(folder: Path) -> list[Translation]:
    translator = nmt.load(folder, device="cpu", max_source=40)
    pairs = [(line, "ein hund .") for line in LINES]
    return [*translator.translate(LINES), *translator.stream(LINES), *translator.align(pairs), *translator.score(pairs)]


def train(recipe: Recipe, folder: Path) -> bytes:
    nmt.train(recipe, folder, device="cpu", quiet=True)
    return (folder / "weights.safetensors").read_bytes()


def test_translating_and_training_are_as_without_the_settings(tmp_path: Path) -> None:
    folder = tiny.folder_in(tmp_path)
    toy.write_reversal(tmp_path, pairs=60, held_out=8)
    recipe = toy.recipe(tmp_path, training={"updates": 2, "validation": {"every": 2}})
    expected, weights = results(folder), train(recipe, tmp_path / "plain")
    with every_setting():
        actual = results(folder)
        assert train(recipe, tmp_path / "run") == weights
    assert actual == expected
    assert [translation.links for translation in actual] == [translation.links for translation in expected]
