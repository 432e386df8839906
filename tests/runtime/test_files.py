"""Files that commands write appear whole or not at all, and are compressed by their names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from nmt.cli.streams import open_output
from nmt.runtime.files import remove_unfinished, replacing, write_atomically
from tests.commands import Running
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


def write_half(path: Path, content: bytes = b"new, but not", *, keep_part: bool = False) -> None:
    with open_output(path, keep_part=keep_part) as stream:
        stream.write(content)
        raise KeyboardInterrupt


# --- one file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_writer_that_fails_leaves_the_old_file_or_none(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert [written.read_bytes() for written in tmp_path.iterdir()] == ([] if before is None else [before])


def test_what_takes_long_stays_in_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_half(path, b"one half", keep_part=True)
    contents = {written.name: written.read_bytes() for written in tmp_path.iterdir()}
    assert contents == {"file": b"old", "file.part": b"one half"}
    assert caplog.messages == [f"{path} is not complete: what there is of it is in {path}.part."]
    with open_output(path, keep_part=True) as stream:
        stream.write(b"whole")
    assert [written.read_bytes() for written in tmp_path.iterdir()] == [b"whole"]


def test_flushed_lines_are_in_the_file(tmp_path: Path) -> None:
    with open_output(tmp_path / "file", keep_part=True) as stream:
        stream.write(b"one line\n")
        stream.flush()
        assert (tmp_path / "file.part").read_bytes() == b"one line\n"


def test_gzip_has_neither_time_nor_name(tmp_path: Path) -> None:
    with open_output(tmp_path / "file.gz") as stream:
        stream.write(b"text")
    assert (tmp_path / "file.gz").read_bytes()[3:8] == bytes(5)


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


def test_pipes_devices_and_open_descriptors_are_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reading = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reading.start()
    write_atomically(pipe, lambda path: path.write_bytes(b"x"))
    reading.join(timeout=10)
    assert read == [b"x"]
    assert names(tmp_path) == ["pipe"]
    with (tmp_path / "log").open("wb") as log, replacing(Path(f"/dev/fd/{log.fileno()}")) as written:
        assert written == Path(f"/dev/fd/{log.fileno()}")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    for name in (".weights.123.0a1b2c3d.new", ".mine.new", "mine.123.new"):
        (tmp_path / name).write_text("x")
    remove_unfinished(tmp_path)
    assert names(tmp_path) == [".mine.new", "mine.123.new"]


# --- commands ---------------------------------------------------------------------------------------------------


def test_a_translation_that_is_ended_keeps_its_lines_in_part(model: Path, tmp_path: Path) -> None:
    read, write = os.pipe()
    running = Running("translate", model, "-o", "out", "--threads", "1", "--window", "500", stdin=read, cwd=tmp_path)
    os.close(read)
    os.write(write, b"a cat\n" * 1200)  # more than one window, and then nothing comes
    until = time.monotonic() + 60
    while (not (tmp_path / "out.part").exists() or not (tmp_path / "out.part").stat().st_size) and (
        time.monotonic() < until
    ):
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGTERM)
    ended = running.finish()
    os.close(write)
    assert ended.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in ended.stderr
    assert "what there is of it is in out.part." in ended.stderr.decode()
    assert names(tmp_path) == ["out.part"]
