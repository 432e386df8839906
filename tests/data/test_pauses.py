"""Lines come as they arrive, with a mark before each wait."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from nmt.data.pauses import PAUSE, arriving_lines

CONTENTS = (b"", b"\n", b"a", b"a\n", b"a\n\nb\r\n", b"one\ntwo\nthree", b"x" * 300_000 + b"\ny\n")


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb", buffering=0) as writer:
        yield reader, writer


def test_complete_lines_come_before_a_wait_for_more(pipe: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = pipe
    lines = arriving_lines(reader)
    writer.write(b"one\ntwo\nthr")
    assert [next(lines) for _ in range(3)] == [b"one", b"two", PAUSE]
    writer.write(b"ee\n")
    assert [next(lines) for _ in range(2)] == [b"three", PAUSE]
    writer.write(b"last")
    writer.close()
    assert list(lines) == [b"last"]


@pytest.mark.parametrize("content", CONTENTS)
def test_files_and_memory_have_the_lines_that_python_reads_and_no_pause(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(content)
    expected = [line.removesuffix(b"\n") for line in io.BytesIO(content)]
    with (tmp_path / "text").open("rb") as stream:
        assert list(arriving_lines(stream)) == expected
    assert list(arriving_lines(io.BytesIO(content))) == expected
