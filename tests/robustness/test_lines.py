"""One line in, one line out, in order, whatever the bytes and whatever the model writes."""

from __future__ import annotations

import codecs
import io
import json
import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nmt import recipe
from nmt.alignment.link_files import parse_pharaoh
from nmt.cli.aligning import align
from nmt.cli.linking import links
from nmt.cli.scoring import score
from nmt.cli.translating import translate
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.text.scripts import split_spaces
from nmt.text.words import clean
from tests.robustness import tiny

ROOT = Path(__file__).resolve().parents[2]
pairs_of_lines = st.lists(st.tuples(tiny.sentences, tiny.sentences), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder_in(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def few_words(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Warnings of bad lines are not what is tested here."""
    with caplog.at_level(logging.ERROR):
        yield


def lines_of(content: bytes) -> list[bytes]:
    """What `wc -l` and every editor call lines; the last one may lack its end."""
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    return lines if lines[-1] else lines[:-1]


def output_lines(written: bytes) -> list[str]:
    """The lines of an output, which must be the same ones to whoever reads them."""
    assert written == b"" or written.endswith(b"\n")
    text = written.decode()
    assert text.splitlines() == text.split("\n")[:-1]
    return text.splitlines()


@contextmanager
def printed() -> Iterator[io.StringIO]:
    with redirect_stdout(io.StringIO(newline="")) as stream:
        yield stream


# --- translate --------------------------------------------------------------------------------------------------


@tiny.tries(15)
@given(content=tiny.raw, n_best=st.none() | st.integers(1, 2), beam=st.integers(2, 3))
@example(content=b"", n_best=None, beam=2)
@example(content=b"<unk>sleeps here", n_best=None, beam=2)  # the model spells control characters
@example(content=b"\n", n_best=2, beam=2)
@example(content=b"a\x01b\rc\xe2\x80\xa8d\n\xed\xa0\x80\n\xff", n_best=None, beam=2)
def test_any_bytes_are_translated_line_by_line(
    model: Path, tmp_path: Path, content: bytes, n_best: int | None, beam: int
) -> None:
    (tmp_path / "in").write_bytes(content)
    options: Any = {"output": tmp_path / "out", "alignments": tmp_path / "links", "n_best": n_best}
    translate([model], tmp_path / "in", **options, beam_size=beam, quiet=True)
    lines = lines_of(content)
    out, found_links = (output_lines((tmp_path / name).read_bytes()) for name in ("out", "links"))
    assert len(out) == len(found_links) == len(lines) * (n_best or 1)
    columns = 1 if n_best is None else 3
    for number, (line, linked) in enumerate(zip(out, found_links, strict=True)):
        fields = line.split("\t")
        assert len(fields) == columns
        assert n_best is None or int(fields[0]) == number // n_best + 1
        words = len(fields[-1].split())
        assert all(target < words for _, target in parse_pharaoh(linked, "links").sure)


def test_the_model_under_test_writes_line_breaks() -> None:
    """Else the tests of this file would prove little."""
    target = tiny.bundle().target
    found = list(Translator([tiny.bundle()], n_best=2).translate([*tiny.TEXT, "xyz 世界", "dog ." * 9]))
    spelled = "".join(target.decode(item.ids) for line in found for item in line.hypotheses)
    assert len(set(tiny.BREAKS) & set(spelled)) > 3
    assert "\n" in spelled


@pytest.mark.parametrize(
    ("unit", "size"),
    [
        *((unit, 20_000) for unit in ("the dog sees a cat . ", "x", "世")),
        *(
            pytest.param(unit, 2**20, marks=pytest.mark.slow)
            for unit in ("the dog . ", "x", "\u0301", "\x01", "a\u2028")
        ),
    ],
)
def test_a_line_far_too_long_is_one_line(model: Path, tmp_path: Path, unit: str, size: int) -> None:
    (tmp_path / "in").write_text(f"a cat\n{unit * (size // len(unit.encode()))}\na dog\n", newline="")
    options: Any = {"output": tmp_path / "out", "alignments": tmp_path / "links", "beam_size": 1, "quiet": True}
    translate([model], tmp_path / "in", **options, settings=["decoding.max_ratio=0.05"])
    first, _, last = output_lines((tmp_path / "out").read_bytes())
    assert len(output_lines((tmp_path / "links").read_bytes())) == 3
    translator = Translator([tiny.bundle()], decoding=recipe.DecodingConfig(beam_size=1, max_ratio=0.05))
    assert [first, last] == [found.text for found in translator.translate(["a cat", "a dog"])]


# --- score, align, links ----------------------------------------------------------------------------------------


def write_pair(folder: Path, pairs: list[tuple[str, str]], *, ended: bool) -> tuple[Path, Path]:
    """Two files of lines; the last line is only left without its end where it is not empty."""
    ended = ended or not all(side.removeprefix("\ufeff") for side in pairs[-1])
    for name, side in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        (folder / name).write_text("\n".join(side) + "\n" * ended, newline="")
    return folder / "source", folder / "target"


@tiny.tries(12)
@given(pairs=pairs_of_lines, ended=st.booleans(), normalize=st.booleans())
def test_every_pair_is_scored_on_a_line(
    model: Path, tmp_path: Path, pairs: list[tuple[str, str]], ended: bool, normalize: bool
) -> None:
    with printed() as stream:
        score(model, *write_pair(tmp_path, pairs, ended=ended), normalize=normalize, quiet=True)
    scores = [float(line) for line in output_lines(stream.getvalue().encode())]
    assert len(scores) == len(pairs)
    assert max(scores) <= 0


@tiny.tries(8)
@given(pairs=pairs_of_lines, ended=st.booleans(), form=st.sampled_from(["pharaoh", "json"]))
def test_every_pair_is_aligned_on_a_line(
    model: Path, tmp_path: Path, pairs: list[tuple[str, str]], ended: bool, form: Literal["pharaoh", "json"]
) -> None:
    align(model, *write_pair(tmp_path, pairs, ended=ended), output=tmp_path / "out", form=form, quiet=True)
    out = output_lines((tmp_path / "out").read_bytes())
    assert len(out) == len(pairs)
    for line, (source, target) in zip(out, pairs, strict=True):
        if form == "json":
            row = json.loads(line)
            assert len(row["weights"]) == len(row["target"])
        elif not (clean(source) and clean(target)):
            assert line == ""
        else:
            parse_pharaoh(line, "out")


@tiny.tries(40)
@given(pairs=pairs_of_lines, ended=st.booleans())
@example(pairs=[("\ufeff", "a"), ("a", "b")], ended=True)
@example(pairs=[("\x85", "\x85"), ("\x01", "\ufeff")], ended=False)
def test_every_pair_is_linked_on_a_line(tmp_path: Path, pairs: list[tuple[str, str]], ended: bool) -> None:
    first, *others = pairs  # a byte order mark that a file begins with is no word
    read = [
        [split_spaces(side.removeprefix("\ufeff").rstrip("\r")) for side in first],
        *([split_spaces(side.rstrip("\r")) for side in pair] for pair in others),
    ]
    assume(any(all(sides) for sides in read))  # something to learn from
    links(None, *write_pair(tmp_path, pairs, ended=ended), output=tmp_path / "out", quiet=True)
    out = output_lines((tmp_path / "out").read_bytes())
    assert len(out) == len(pairs)
    for line, sides in zip(out, read, strict=True):
        words = [max(len(side), len("".join(side))) for side in sides]  # text without spaces is linked by characters
        assert all(one < words[0] and other < words[1] for one, other in parse_pharaoh(line, "out").sure)


def test_parallel_text_that_is_no_text_is_refused(model: Path, tmp_path: Path) -> None:
    """A bad byte would be scored as another character."""
    (tmp_path / "text").write_bytes(b"a cat\na\xff\n")
    with printed(), pytest.raises(DataError, match="line 2: not valid UTF-8"):
        score(model, tmp_path / "text", tmp_path / "text", quiet=True)


# --- a million --------------------------------------------------------------------------------------------------

_MEASURED = """
import re, sys
from nmt.cli import main
try:
    main()
finally:
    print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024, file=sys.stderr)
"""
"""The command, with the megabytes of memory it needed as its last word. (ru_maxrss would begin with the memory of these tests.)"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_million_lines_come_out_as_a_million_lines(model: Path, tmp_path: Path) -> None:
    """Through the command itself, with flat memory; prints its figures (`-s` shows them)."""
    count = int(os.environ.get("NMT_TEST_LINES", "1000000"))
    draw = random.Random(1)
    words = ["a", "cat", "dog .", "\x01", "\r", "\u2028", "\x85", "世", "🐶", "\t", "\ufeff"]
    blank = [b""] * 12 + [b" ", b"\x01", b"\r"]
    kinds = [*blank, b"\xff\xfe", b"\xed\xa0\x80", *("".join(draw.choices(words, k=2)).encode() for _ in range(6))]
    with (tmp_path / "in").open("wb") as file:
        for _ in range(count):
            file.write(draw.choice(kinds) + b"\n")
    files = f"-i {tmp_path}/in -o {tmp_path}/out --alignments {tmp_path}/links".split()
    options = "--beam-size 1 --set decoding.max_ratio=0.1 --threads 1 -q".split()
    command = [sys.executable, "-c", _MEASURED, "translate", str(model), *files, *options]
    start = time.monotonic()
    ended = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    megabytes = int(ended.stderr.split()[-1])
    print(f"{count:,} lines in {time.monotonic() - start:.0f} s with {megabytes} MB")  # noqa: T201
    assert megabytes < 1000
    assert (tmp_path / "links").read_bytes().count(b"\n") == count
    translator = Translator([tiny.bundle()], decoding=recipe.DecodingConfig(beam_size=1, max_ratio=0.1))
    expected = {kind: translator.translate(kind.decode(errors="replace")).text for kind in set(kinds)}
    with (tmp_path / "in").open("rb") as lines, (tmp_path / "out").open("rb") as found:
        for number, (line, out) in enumerate(zip(lines, found, strict=True)):
            if number:  # the first may have lost a byte order mark
                assert out.decode().removesuffix("\n") == expected[line.removesuffix(b"\n")]
