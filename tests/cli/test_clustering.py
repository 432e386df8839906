"""`nmt translate --engine ray` and `nmt.ray.Translate`, on a cluster of nodes on this machine."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.commands import NMT, ROOT, good, nmt
from tests.training.toy import train_briefly

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

SECONDS = 280
LINES = [f"{'abc'[n % 3]} {'defg'[n % 4]} {'h' * (n % 2)}".strip() for n in range(1_200)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model."""
    folder = tmp_path_factory.mktemp("cluster")
    train_briefly(folder)
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes of one core."""
    utilities = pytest.importorskip("ray.cluster_utils", reason="needs Ray: pip install 'attentional-nmt[ray]'")
    cluster = utilities.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


def on_cluster(cluster: Cluster, *arguments: object) -> list[str]:
    """The command that translates on a cluster."""
    os.environ["RAY_ADDRESS"] = cluster.address
    return [*NMT, "translate", *map(str, arguments), "--engine", "ray"]


def run(command: list[str], cwd: Path, status: int = 0) -> str:
    """Run a command to its end; returns what it wrote on stderr, without lines of Ray."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=cwd, env=environment, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    errors = ended.stderr.decode()
    assert ended.returncode == status, errors
    return "".join(line for line in errors.splitlines(keepends=True) if not line.startswith("["))


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--format", "tsv"), ("--format", "jsonl", "--n-best", "2"), ("--sample",)])
def test_files_are_translated_as_each_by_itself(
    folder: Path, tmp_path: Path, cluster: Cluster, options: tuple[str, ...]
) -> None:
    """Also lines with other line ends than \\n, blank ones, and a file without any."""
    texts = {"a.txt": "\n".join(LINES), "b.txt": "a b\r\n\n c \x85 d\x0c\n\u2028e\n", "empty.txt": ""}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "z.txt.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in reversed(LINES)).encode()))
    model = folder / "model"
    assert run(on_cluster(cluster, model, "-i", "*.txt*", "-o", tmp_path / "out", "-q", *options), tmp_path) == ""
    for name in [*texts, "z.txt.gz"]:
        expected = good(nmt("translate", model, "-i", tmp_path / name, "-q", *options))
        written = (tmp_path / "out" / name).read_bytes()
        assert (gzip.decompress(written) if name.endswith(".gz") else written).decode() == expected
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*texts, "z.txt.gz"])


@pytest.mark.slow
def test_lines_cut_at_the_length_limit_are_counted(untrained: Path, tmp_path: Path, cluster: Cluster) -> None:
    (tmp_path / "a.txt").write_text("a dog sees the cat\n" * 600)
    options = ["--beam-size", "1", "--set", "decoding.max_ratio=0.1"]
    told = run(on_cluster(cluster, untrained / "en-de", "-i", "a.txt", "-o", tmp_path / "out", *options), tmp_path)
    assert "The translations of 600 lines reached the length limit" in told


@pytest.mark.slow
def test_a_node_that_is_lost_costs_no_line(folder: Path, tmp_path: Path, cluster: Cluster) -> None:
    third = cluster.add_node(num_cpus=1)
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in LINES) * 20)
    command = on_cluster(cluster, folder / "model", "-i", "?.txt", "-o", tmp_path / "out")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    part = tmp_path / "out/a.txt.part"
    until = time.monotonic() + SECONDS
    while not part.exists():
        assert running.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    cluster.remove_node(third, allow_graceful=False)
    assert not (tmp_path / "out/b.txt").exists()
    _, errors = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, errors.decode()
    expected = good(nmt("translate", folder / "model", "-i", tmp_path / "a.txt", "-q"))
    for name in "ab":
        assert (tmp_path / f"out/{name}.txt").read_text() == expected


@pytest.mark.slow
def test_a_damaged_file_is_one_sentence(folder: Path, tmp_path: Path, cluster: Cluster) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a b\n" * 1000)[:-20])
    errors = run(on_cluster(cluster, folder / "model", "-i", "a.gz", "-o", "out", "-q"), tmp_path, status=1)
    assert errors.startswith(f"nmt: {tmp_path}/a.gz is damaged and cannot be read to its end")
    assert errors.count("\n") == 1
    assert not list((tmp_path / "out").glob("a.gz"))


@pytest.mark.slow
def test_batches_of_a_dataset_are_translated(folder: Path, tmp_path: Path, cluster: Cluster) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import nmt.ray, ray
from pathlib import Path
ray.init({cluster.address!r}, log_to_driver=False)
ray.data.DataContext.get_current().execution_options.preserve_order = True
lines = ray.data.from_items([{{"text": line, "id": n}} for n, line in enumerate({LINES!r})], override_num_blocks=4)
options = dict(fn_constructor_args=[{str(folder / "model")!r}], fn_constructor_kwargs={{"beam_size": 2}}, batch_size=100)
lines = lines.map_batches(nmt.ray.Translate, concurrency=2, num_cpus=1, **options)
rows = lines.take_all()
assert [row["id"] for row in rows] == list(range({len(LINES)}))
assert [row["text"] for row in rows] == {LINES!r}
Path({str(tmp_path)!r}, "out").write_text("".join(row["translation"] + "\\n" for row in rows))
"""
    )
    run([sys.executable, str(program)], folder)
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    expected = good(nmt("translate", folder / "model", "-i", tmp_path / "text", "-q", "--beam-size", "2"))
    assert (tmp_path / "out").read_text() == expected
