"""Training on windows of a data set that is read as it is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from nmt.corpora.locators import load_training_corpus, load_window
from nmt.errors import DataError, UsageError
from nmt.recipe import Recipe, parse_recipe
from nmt.runtime.cache import cache_folder
from nmt.training.trainer import train
from tests.training.ranks import command, difference, finish, recipe_file, start
from tests.training.runs import outcome, timeless
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

CPU = torch.device("cpu")
PAIRS = 500


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reversal corpus as files, and its training text as a data set of three shards."""
    folder = tmp_path_factory.mktemp("corpus")
    write_reversal(folder, pairs=PAIRS, held_out=15)
    sides = [(folder / f"train.{side}").read_text().splitlines() for side in ("src", "tgt")]
    (folder / "set").mkdir()
    for number, rows in enumerate((slice(0, 200), slice(200, 210), slice(210, PAIRS))):
        table = pa.table({"src": sides[0][rows], "tgt": sides[1][rows]})
        parquet.write_table(table, folder / f"set/train-{number:05}-of-00003.parquet", row_group_size=70)
    return folder


def streamed(corpus: Path, *, size: int = 120, **training: Any) -> Recipe:
    settings = {"updates": 12, "batch_sentences": 16, "validation": {"metrics": "perplexity", "every": 6}, **training}
    tree = toy_recipe(corpus, training=settings).model_dump(by_alias=True)
    return parse_recipe(tree | {"data": tree["data"] | {"train": f"hf:{corpus}/set:train", "stream": size}}, "the test")


@pytest.mark.parametrize("size", [1, 7, 120, 250, 499, 500, 501, 9999])
def test_windows_are_consecutive_and_begin_again(corpus: Path, size: int) -> None:
    data = streamed(corpus, size=size).data
    expected = list(zip(*((corpus / f"train.{side}").read_text().splitlines() for side in ("src", "tgt")), strict=True))
    assert list(load_training_corpus(data)) == expected[:size]
    pairs: list[tuple[str, str]] = []
    position = None
    while len(pairs) < min(2 * PAIRS, 40 * size):
        window, position = load_window(data, json.loads(json.dumps(position)))
        assert 0 < len(window) <= size
        pairs += list(window)
    assert pairs == (expected * 3)[: len(pairs)]


def test_a_window_needs_no_later_file(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for shard in (corpus / "set").iterdir():
        content = shard.read_bytes() if "00000" in shard.name else b"damaged"
        (tmp_path / "set" / shard.name).write_bytes(content)
    data = streamed(corpus).data.model_copy(update={"train": f"hf:{tmp_path}/set:train"})
    window, position = load_window(data, None)
    assert len(window) == 120
    with pytest.raises(DataError, match=r"Cannot load hf:.*/set:train: "):
        load_window(data, position)


def test_a_run_resumes_in_the_middle_of_a_window(corpus: Path, tmp_path: Path) -> None:
    before = set(cache_folder().glob("encoded/*"))
    train(streamed(corpus, updates=38), tmp_path / "whole", device=CPU, quiet=True)
    for updates in (11, 29, 38):
        train(streamed(corpus, updates=updates), tmp_path / "parts", device=CPU, quiet=True, resume=updates > 11)
    whole, parts = (outcome(tmp_path / name) for name in ("whole", "parts"))
    assert parts["weights.safetensors"] == whole["weights.safetensors"]
    epochs = [record["epoch"] for record in timeless(tmp_path / "whole")]
    assert max(epochs) == 6  # windows of 120, 120, 120, 120, 20, and then the first again
    assert len(set(cache_folder().glob("encoded/*")) - before) <= 1  # that of the validation text


def test_a_window_as_large_as_the_corpus_is_an_epoch(corpus: Path, tmp_path: Path) -> None:
    train(streamed(corpus, size=PAIRS, updates=40), tmp_path / "stream", device=CPU, quiet=True)
    plain = {"updates": 40, "batch_sentences": 16, "validation": {"metrics": "perplexity", "every": 6}}
    train(toy_recipe(corpus, training=plain), tmp_path / "plain", device=CPU, quiet=True)
    assert difference(tmp_path / "stream", tmp_path / "plain") == 0


@pytest.mark.slow
def test_several_processes_train_on_the_same_windows(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_file(corpus, tmp_path, train=f"hf:{corpus}/set:train")
    options = ["-q", "--set", "data.stream=100"]
    assert finish(start(command(recipe, tmp_path / "one", 1, *options))) == (0, "")
    assert finish(start(command(recipe, tmp_path / "two", 2, *options))) == (0, "")
    assert difference(tmp_path / "one", tmp_path / "two") < 1e-6


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data": {"train": "train"}}, "only hf:owner/name:split can be streamed"),
        ({"data": {"train": "hf:a/b:train[:10]"}}, "only hf:owner/name:split can be streamed"),
        ({"data": {"train": ["hf:a/b:train", "hf:a/c:train"]}}, "only hf:owner/name:split can be streamed"),
        ({"data": {"copying": 0.5}}, "copying reads all of the text first"),
        ({"data": {"similarity": 1}}, "similarity reads all of the text first"),
        ({"training": {"updates": None}}, "set training.updates"),
        ({"training": {"guided_alignment": {"links": "hmm"}}}, "has links of all pairs"),
    ],
)
def test_what_cannot_be_streamed_is_a_sentence(corpus: Path, changes: dict[str, Any], sentence: str) -> None:
    tree = streamed(corpus).model_dump(by_alias=True)
    for section, settings in changes.items():
        tree[section] = tree[section] | settings
    with pytest.raises(UsageError, match=sentence):
        parse_recipe(tree, "the test")
