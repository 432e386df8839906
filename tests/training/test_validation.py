"""Validation takes time in proportion to its text, however long a line is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from nmt.bundle.folder import Bundle
from nmt.errors import DataError
from nmt.model.interface import ModelOutput
from nmt.training import validation
from nmt.training.text import TrainingText
from nmt.training.validation import MAX_LENGTH, Validator
from tests.training import toy


def validator(folder: Path, *, long_lines: int, short_lines: int = 5) -> Validator:
    """A validator of short lines and of some with 4,000 letters."""
    toy.write_reversal(folder, pairs=60, held_out=short_lines)
    for side in ("src", "tgt"):
        with (folder / f"valid.{side}").open("a") as file:
            file.write(("a b " * 2000 + "\n") * long_lines)
    recipe = toy.recipe(folder)
    text = TrainingText.load(recipe)
    bundle = Bundle.fresh(recipe, *text.subwords(recipe))
    return Validator(bundle, text.valid, "none", precision="fp32", device=torch.device("cpu"))


def attention_weights(validator: Validator) -> int:
    """How many attention weights the loss computes."""
    count = 0

    def add(_: nn.Module, arguments: object, output: object) -> None:
        nonlocal count
        if isinstance(output, ModelOutput):
            count += output.alignment.numel()

    with nn.modules.module.register_module_forward_hook(add):
        validator._loss(validator.texts[0])
    return count


def test_long_lines_take_no_quadratic_time(tmp_path: Path) -> None:
    short, long = (validator(tmp_path, long_lines=count) for count in (0, 2))
    weights = attention_weights(short)
    assert 0 < weights < 5 * MAX_LENGTH
    assert attention_weights(long) == weights
    assert long._loss(long.texts[0]) != 0


def test_the_log_says_which_lines_the_perplexity_leaves_out(tmp_path: Path) -> None:
    warning = "Warning: the perplexity leaves out 2 validation pairs of more than 500 tokens on a side."
    assert warning in list(validator(tmp_path, long_lines=2).introduction())
    assert not any("perplexity leaves" in line for line in validator(tmp_path, long_lines=0).introduction())


def test_a_text_of_long_lines_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No pair of .* has at most 500 tokens per side"):
        validator(tmp_path, long_lines=2, short_lines=0)


def test_the_search_is_chosen_on_every_nth_line_of_a_long_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = validator(tmp_path, long_lines=0, short_lines=11)
    monkeypatch.setattr(validation, "MAX_SEARCH_LINES", 4)
    part = whole.search_outcome({"beam_size": 2})  # lines 1, 4, 7 and 10
    for side in ("src", "tgt"):
        lines = (tmp_path / f"valid.{side}").read_text().splitlines(keepends=True)
        (tmp_path / f"valid.{side}").write_text("".join(lines[::3]))
    text = TrainingText.load(whole.bundle.recipe).valid
    alone = Validator(whole.bundle, text, "none", precision="fp32", device=torch.device("cpu"))
    assert len(text) == 4
    assert alone.search_outcome({"beam_size": 2}) == part
