"""Files that commands write appear whole or not at all, and are compressed by their names."""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import os
import resource
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pytest

from nmt.cli.streams import open_output
from nmt.errors import DataError
from nmt.runtime.files import remove_unfinished, replacing, write_atomically
from tests.commands import Running, bad, good, nmt
from tests.robustness import tiny

DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda content: pyarrow.input_stream(pyarrow.py_buffer(content), compression="zstd").read(),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder_in(tmp_path_factory.mktemp("model"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file can grow beyond this size: the nearest thing to a full disk without one."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def write_half(path: Path, content: bytes = b"new, but not", *, keep_part: bool = False) -> None:
    with open_output(path, keep_part=keep_part) as stream:
        stream.write(content)
        raise KeyboardInterrupt


def write_whole(path: Path, content: bytes) -> None:
    with open_output(path) as stream:
        stream.write(content)


# --- one file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_writer_that_fails_leaves_the_old_file_or_none(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [before] * (before is not None)


def test_a_full_disk_leaves_no_picture_and_no_part_of_a_file(tmp_path: Path) -> None:
    from nmt.plotting.curves import plot_learning_curve

    records = '{"kind": "train", "epoch": 1, "update": 1, "loss": 1.0, "perplexity": 2.7, "rate": 0.1}\n'
    (tmp_path / "metrics").write_text(records)
    (tmp_path / "old.png").write_bytes(b"old")
    with small_disk(2_000):
        for name in ("old.png", "new.png"):
            with pytest.raises(DataError, match="Cannot write"):
                plot_learning_curve(tmp_path / "metrics", tmp_path / name)
        with pytest.raises(DataError, match="Cannot write"):
            write_atomically(tmp_path / "links", lambda path: path.write_text("1-2 3-4\n" * 1000))
    assert names(tmp_path) == ["metrics", "old.png"]
    assert (tmp_path / "old.png").read_bytes() == b"old"


def test_what_takes_long_stays_in_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    for content in (b"", b"new, but not"):
        with pytest.raises(KeyboardInterrupt):
            write_half(path, content, keep_part=True)
        assert path.read_bytes() == b"old"
        assert names(tmp_path) == ["file", *(["file.part"] if content else [])]
    assert (tmp_path / "file.part").read_bytes() == b"new, but not"
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.getMessage() == f"{path} is not complete: what there is of it is in {path}.part."


def test_what_is_in_part_already_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    (tmp_path / "file.part").write_bytes(b"mine")
    with pytest.raises(KeyboardInterrupt):
        write_half(path, keep_part=True)
    with open_output(path, keep_part=True) as stream:
        stream.write(b"whole")
    contents = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert contents == {"file": b"whole", "file.part": b"mine", "file.part2": b"new, but not"}


@pytest.mark.parametrize("suffix", DECOMPRESS)
def test_outputs_are_compressed_by_name(tmp_path: Path, suffix: str) -> None:
    path, content = tmp_path / f"text{suffix}", b"the same line\n" * 500
    sizes = []
    for flushes in (False, True):
        with open_output(path) as stream:
            for line in content.splitlines(keepends=True):
                stream.write(line)
                if flushes:
                    stream.flush()
        assert DECOMPRESS[suffix](path.read_bytes()) == content
        sizes.append(path.stat().st_size)
    assert max(sizes) < len(content) / 4 or not suffix, "a flush for each line does not spoil compression"
    assert names(tmp_path) == [path.name]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    private, link = tmp_path / "private", tmp_path / "link"
    private.write_text("old")
    private.chmod(0o640)
    link.symlink_to(private)
    write_atomically(link, lambda path: path.write_text("new"))
    with open_output(link) as stream:
        stream.write(b"newer")
    assert link.is_symlink()
    assert private.read_text() == "newer"
    assert stat.S_IMODE(private.stat().st_mode) == 0o640


def test_a_name_as_long_as_a_file_system_allows_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127)
    write_atomically(path, lambda beside: beside.write_text("x"))
    assert names(tmp_path) == [path.name]


def test_pipes_devices_and_open_descriptors_are_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    for write in (lambda: write_atomically(pipe, lambda path: path.write_bytes(b"x")), lambda: write_whole(pipe, b"x")):
        reading = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
        reading.start()
        write()
        reading.join(timeout=10)
    assert read == [b"x", b"x"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]
    write_atomically(Path("/dev/null"), lambda path: path.write_bytes(b"x"))
    with (tmp_path / "log").open("wb") as log:
        log.write(b"before\n")
        log.flush()
        with replacing(Path(f"/dev/fd/{log.fileno()}")) as place:
            assert place == Path(f"/dev/fd/{log.fileno()}")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    for name in (".weights.123.new", ".weights.123.0a1b2c3d.new", ".mine.new", "mine.123.new"):
        (tmp_path / name).write_text("x")
    remove_unfinished(tmp_path)
    assert names(tmp_path) == [".mine.new", "mine.123.new"]


# --- commands ---------------------------------------------------------------------------------------------------


def test_translations_go_to_compressed_files_and_to_stdout(model: Path, tmp_path: Path) -> None:
    text = "".join(f"{line}\n" for line in tiny.TEXT).encode()
    plain = nmt("translate", model, stdin=text).stdout
    good(nmt("translate", model, "-o", tmp_path / "out.gz", "--alignments", tmp_path / "links.xz", stdin=text))
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == plain
    assert lzma.decompress((tmp_path / "links.xz").read_bytes()).count(b"\n") == len(tiny.TEXT)
    for place in ("/dev/stdout", "-"):
        assert nmt("translate", model, "-o", place, stdin=text).stdout == plain


def test_a_table_is_translated_by_its_source_column(model: Path, tmp_path: Path) -> None:
    lines = tiny.TEXT[:3]
    expected = nmt("translate", model, stdin="".join(f"{line}\n" for line in lines).encode()).stdout
    tables = {
        "t.csv.gz": "id,de,en\n" + "".join(f'{at},x,"{line}"\n' for at, line in enumerate(lines)),
        "t.tsv": "en\n" + "".join(f"{line}\n" for line in lines),
        "t.jsonl.gz": "".join(f'{{"en": "{line}"}}\n' for line in lines),
    }
    for name, content in tables.items():
        is_packed = name.endswith(".gz")
        (tmp_path / name).write_bytes(gzip.compress(content.encode()) if is_packed else content.encode())
        assert good(nmt("translate", model, "-i", tmp_path / name)).encode() == expected
    (tmp_path / "o.csv").write_text("de,fr\na,b\n")
    assert "o.csv, line 1: needs the column en, but has de, fr." in bad(
        nmt("translate", model, "-i", "o.csv", cwd=tmp_path), 1
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "--hyp", "t.csv", "--ref", "t.en"],
        ["evaluate", "--hyp", "t.en", "--ref", "t.csv"],
        ["links", "-s", "t.en", "-t", "t.csv"],
        ["score", "MODEL", "-s", "t.csv", "-t", "t.en"],
        ["align", "MODEL", "-s", "t.csv", "-t", "t.en"],
        ["plot", "MODEL", "-i", "t.csv", "-o", "x.svg"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_a_table_is_refused_where_lines_are_read(model: Path, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "t.csv").write_text("en,de\na,b\n")
    (tmp_path / "t.en").write_text("a\nb\n")
    command = [model if word == "MODEL" else word for word in arguments]
    assert bad(nmt(*command, cwd=tmp_path), 2).startswith(
        "t.csv is a table, but a file with one sentence per line is needed"
    )


def test_a_translation_that_fails_keeps_its_lines_in_part(model: Path, tmp_path: Path) -> None:
    cut = gzip.compress(os.urandom(200_000).hex().encode().replace(b"0", b"\n"))[:60_000]
    (tmp_path / "in.gz").write_bytes(cut)
    options = ["--beam-size", "1", "--threads", "1", "--batch-tokens", "50000", "-o", "out.de"]
    ended = nmt("translate", model, "-i", "in.gz", *options, cwd=tmp_path)
    assert ended.returncode == 1
    *_, said, reason = ended.stderr.decode().splitlines()
    assert reason.startswith("nmt: in.gz is damaged and cannot be read to its end")
    assert said == "nmt: out.de is not complete: what there is of it is in out.de.part."
    assert names(tmp_path) == ["in.gz", "out.de.part"]
    assert (tmp_path / "out.de.part").read_bytes().endswith(b"\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_translation_that_is_ended_keeps_its_lines_in_part(model: Path, tmp_path: Path, number: int) -> None:
    read, write = os.pipe()
    running = Running("translate", model, "-o", "out", "--threads", "1", "--window", "500", stdin=read, cwd=tmp_path)
    os.close(read)
    os.write(write, b"a cat\n" * 1200)  # more than one window, and then nothing comes
    until = time.monotonic() + 60
    while (not (tmp_path / "out.part").exists() or not (tmp_path / "out.part").stat().st_size) and (
        time.monotonic() < until
    ):
        time.sleep(0.05)
    os.kill(running.pid, number)
    ended = running.finish()
    os.close(write)
    assert ended.returncode == 128 + number
    assert b"Traceback" not in ended.stderr
    assert "what there is of it is in out.part." in ended.stderr.decode()
    assert names(tmp_path) == ["out.part"]


def test_a_shift_that_is_none_is_refused() -> None:
    sentence = bad(nmt("align", "model", "-s", "a", "-t", "b", "--shift", "500"), 2)
    assert "'--shift'" in sentence
    assert sentence.endswith(("equal to 1. See `nmt align --help`.", "<=1. See `nmt align --help`."))  # typer 0.26


def test_an_unknown_published_language_is_refused(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("sacremoses")
    (tmp_path / "t").write_text("a\n")
    files = ["--hyp", tmp_path / "t", "--ref", tmp_path / "t"]
    assert "Moses has no rules for the language 'xx'" in bad(
        nmt("evaluate", *files, "--published", "--language", "xx"), 2
    )
    assert "--language is that of --hyp" in bad(nmt("evaluate", model, "--published", "--language", "de"), 2)
