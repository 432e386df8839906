"""Who trains too much on too little is told what to set, and nobody else is."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.training.advice import Extent, advise
from nmt.training.trainer import train
from tests.training.toy import recipe, write_reversal

BPE = {"kind": "bpe", "size": 8000}


def extent(pairs: int = 3000, tokens: int = 27_000, pieces: int = 8000, parameters: int = 800_000) -> Extent:
    return Extent(pairs, (tokens, tokens), (pieces, pieces), parameters)


def advice(extent: Extent, **subwords: Any) -> str | None:
    return advise(recipe(Path("x"), subwords={**BPE, **subwords}), extent)


def test_pieces_that_occur_too_seldom_are_counted_and_a_size_is_named() -> None:
    assert advice(extent()) == (
        "8,000 pieces are many for 3,000 pairs, where each occurs 7 times on average: try subwords.size=1000, or the recipe `small`."
    )
    assert "16,000 pieces are many for 50,000 pairs" in (advice(extent(50_000, 300_000, 16_000)) or "")
    assert "try subwords.size=8000, or the recipe `medium`." in (advice(extent(50_000, 300_000, 16_000)) or "")
    assert "try subwords.size=500, or" in (advice(extent(10, 100)) or "")


def test_the_side_that_is_worse_off_decides_where_each_has_its_own_pieces() -> None:
    sides = Extent(30_000, (400_000, 300_000), (8000, 8000), 800_000)
    assert advice(sides) is None
    assert "each occurs 38 times on average: try subwords.size=4000" in (advice(sides, joint=False) or "")


def test_words_characters_and_given_models_are_nobody_elses_business() -> None:
    for kind in ("word", "char"):
        assert advice(extent(), kind=kind) is None
    assert advice(extent(), source_model="a.model", target_model="a.model") is None


def test_parameters_are_weighed_against_the_target_text() -> None:
    assert advice(extent(pieces=500, parameters=2_700_000)) == (
        "2.7 M parameters are many for 3,000 pairs, 100 for each target token: try smaller widths, as in the recipe `small`."
    )
    assert advice(extent(pieces=500)) is None


def test_it_is_said_once_where_a_run_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_reversal(tmp_path, pairs=100, held_out=5)
    cpu = torch.device("cpu")
    train(recipe(tmp_path, training={"epochs": 1}), tmp_path / "run", device=cpu)
    assert capsys.readouterr().err.count("parameters are many for 100 pairs") == 1
    longer = recipe(tmp_path, training={"epochs": 2})
    train(longer, tmp_path / "run", device=cpu, resume=True, force=True)
    assert "are many for" not in capsys.readouterr().err
    train(longer, tmp_path / "quiet", device=cpu, quiet=True)
    assert capsys.readouterr().err == ""
