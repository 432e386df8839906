"""`nmt translate` in parts: shards of one call each, and processes of torchrun."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli.sharding import Shard
from nmt.errors import UsageError
from tests.commands import NMT, ROOT, bad, good, nmt
from tests.training.toy import train_briefly

LINES = [f"{'abc'[n % 3]} {'defg'[n % 4]} {'h' * (n % 2)}".strip() for n in range(11)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and a text."""
    folder = tmp_path_factory.mktemp("shards")
    train_briefly(folder)
    (folder / "text").write_text("".join(f"{line}\n" for line in LINES))
    (folder / "text.tsv").write_text("src\ttgt\n" + "".join(f"{line}\t\n" for line in LINES))
    return folder


@pytest.mark.parametrize("count", [1, 2, 5, 11, 13])
def test_shards_are_contiguous_and_complete(count: int) -> None:
    parts = [Shard(number, count).lines(11) for number in range(1, count + 1)]
    assert [line for part in parts for line in part] == list(range(11))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3", ""])
def test_a_wrong_shard_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="I/N"):
        Shard.parse(text)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("text", []),
        ("text.tsv", ["--n-best", "2"]),
        ("text", ["--format", "tsv"]),
        ("text", ["--format", "jsonl"]),
        ("text", ["--sample", "--seed", "3"]),
    ],
)
def test_concatenated_shards_are_the_whole(folder: Path, source: str, options: list[str]) -> None:
    command = ["translate", "model", "-i", source, "-q", *options]
    whole = good(nmt(*command, cwd=folder))
    assert whole.count("\n") >= len(LINES)
    assert "".join(good(nmt(*command, "--shard", f"{number}/3", cwd=folder)) for number in (1, 2, 3)) == whole


def test_only_the_first_of_more_parts_than_lines_has_the_header(folder: Path) -> None:
    (folder / "line").write_text("a d\n")
    command = ["translate", "model", "-i", "line", "-q", "--format", "tsv"]
    parts = [good(nmt(*command, "--shard", f"{number}/2", cwd=folder)) for number in (1, 2)]
    assert "".join(parts) == good(nmt(*command, cwd=folder))


@pytest.mark.slow
def test_torchrun_translates_in_parts_and_merges_them_in_order(folder: Path, tmp_path: Path) -> None:
    command = ["translate", "model", "-i", "text", "-q", "--format", "jsonl"]
    whole = good(nmt(*command, "--alignments", tmp_path / "whole", cwd=folder))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", "-m", "nmt"]
    outputs = ["-o", str(tmp_path / "out.jsonl.gz"), "--alignments", str(tmp_path / "links")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*torchrun, *command, *outputs], cwd=folder, check=True, env=environment, timeout=300)
    assert gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).decode() == whole
    assert (tmp_path / "links").read_text() == (tmp_path / "whole").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links", "out.jsonl.gz", "whole"]


def test_devices_translate_a_part_each_and_the_parts_are_merged(folder: Path, tmp_path: Path) -> None:
    command = ["translate", "model", "-i", "text.tsv", "-q"]
    whole = good(nmt(*command, cwd=folder))
    outputs = ["-o", str(tmp_path / "out"), "--devices", "cpu,cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*NMT, *command, *outputs], cwd=folder, check=True, timeout=300, env=environment)
    assert (tmp_path / "out").read_text() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("options", "rank", "sentence"),
    [
        ("--shard 1/2", "", "name a file with -i"),
        ("-i text", "1/2", "name it with -o"),
        ("-i text -o out --devices cpu,cpu", "2/3", "--devices names 2 devices for 3 processes"),
        ("-i text --devices 0,1", "", "Cannot compute on cuda:0: "),
        ("-i text --devices cpu,abacus", "", "There is no device 'abacus'"),
        ("-i text --devices=", "", "There is no device ''"),
        ("-i text --devices cpu,cpu", "", "name it with -o"),
        ("-i text --devices cpu,cpu --device cpu", "", "--devices says what --device would"),
        ("-i text --devices cpu,cpu --shard 1/2", "", "--devices says what --shard would"),
    ],
)
def test_parts_that_cannot_be_are_a_sentence(folder: Path, options: str, rank: str, sentence: str) -> None:
    """`rank` is the number of the process and how many torchrun has started."""
    number, _, count = rank.partition("/")
    processes = {"RANK": number, "WORLD_SIZE": count} if rank else {}
    assert sentence in bad(nmt("translate", "model", *options.split(), stdin=b"a\n", cwd=folder, **processes), 2)
