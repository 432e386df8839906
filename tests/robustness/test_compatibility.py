"""A model of an earlier version still loads and still writes what it wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from nmt.bundle.folder import FORMAT, Bundle
from nmt.decoding.translator import Translator
from nmt.errors import DataError

STORED = Path(__file__).parent / "data" / "model-2"


def test_a_stored_model_writes_what_it_wrote() -> None:
    """`data/model-2` was made by version 0.1.0, on one thread of a CPU:

    1. of the pairs of `sample:train`, the 1,500 with the shortest English side, every 25th in valid.{en,de}, the others in
       train.{en,de}:

           pairs = sorted(set(load_corpus("sample:train", source="en", target="de").pairs()), key=lambda p: (len(p[0]), p))[:1500]

    2. `nmt train recipe.yaml --out run --threads 1` with the recipe that lies in the folder; its four model files are kept;
    3. source.txt: lines of valid.en and some odd ones, of which the best two translations differ by more than 0.01;
       target.txt: `nmt translate model-2 -i source.txt --scores` as that version wrote it.

    It learned for seconds, so it speaks badly; what counts is that it goes on saying just that. A new format gets a folder of
    its own beside this one.
    """
    lines = (STORED / "source.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.split("\t") for line in (STORED / "target.txt").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == len(wanted) > 15
    found = Translator([Bundle.load(STORED)], split_sentences=False).translate(lines)
    assert [item.text for item in found] == [text for _, text in wanted]
    assert [item.score for item in found] == pytest.approx([float(score) for score, _ in wanted], abs=1e-3)


def test_the_stored_model_is_small_and_of_the_format_it_says() -> None:
    assert sum(path.stat().st_size for path in STORED.iterdir()) < 70_000
    assert b'"nmt_format":"2' in (STORED / "weights.safetensors").read_bytes()[:100]
    assert FORMAT == 2, "store a model of the new format beside model-2, and test all"


@pytest.mark.parametrize(
    ("version", "advice"),
    [("1", "train the model anew"), *((version, "install a newer nmt") for version in ("3", "10", "-1", "²"))],
)
def test_another_format_is_refused_whatever_else_the_file_holds(tmp_path: Path, version: str, advice: str) -> None:
    folder = shutil.copytree(STORED, tmp_path / "model")
    weights = load_file(STORED / "weights.safetensors")
    save_file({**weights, "new": torch.zeros(1)}, folder / "weights.safetensors", {"nmt_format": version})
    with pytest.raises(DataError, match=rf"weights\.safetensors has format .*, but this nmt reads 2: {advice}"):
        Bundle.load(folder)
