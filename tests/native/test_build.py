"""The kernels' compiler: what is kept, what is never run, and that search does without."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.decoding.translator import Translator
from nmt.native import build, kernels
from nmt.recipe import Decoding
from tests.decoding.test_translator import LINES, bundle
from tests.machine import needs_compiler


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """The kernels are looked for in every test, and again after it."""
    build.library.cache_clear()
    yield
    build.library.cache_clear()


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path))
    return tmp_path / "native"


QUICKLY = ("-O0", "-std=gnu11", "-fPIC")


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not matter how fast the kernels are, they need not be made for this processor."""
    monkeypatch.setattr(build, "FLAGS", QUICKLY)


def built(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@needs_compiler
def test_they_are_compiled_once_without_a_warning(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-Wall", "-Wextra", "-Werror"))
    assert build.library() is not None
    (made,) = built(own_cache)
    before = made.stat()
    build.library.cache_clear()
    assert build.library() is not None
    assert made.stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o077 == 0


@needs_compiler
@pytest.mark.usefixtures("quickly")
def test_what_somebody_else_can_write_is_made_anew(own_cache: Path) -> None:
    assert build.library() is not None
    (made,) = built(own_cache)
    made.unlink()
    made.write_bytes(b"not a library")
    made.chmod(0o666)
    build.library.cache_clear()
    assert build.library() is not None
    assert made.read_bytes()[:4] != b"not "
    assert made.stat().st_mode & 0o022 == 0


@needs_compiler
def test_a_folder_that_others_can_write_is_not_used(own_cache: Path) -> None:
    own_cache.mkdir()
    own_cache.chmod(0o777)
    assert build.library() is None
    assert built(own_cache) == []


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler"])
def test_without_a_compiler_there_are_none(compiler: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    assert build.library() is None
    assert not own_cache.exists() or built(own_cache) == []
    with torch.inference_mode():
        assert not kernels.can_use(torch.randn(2, 2))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "file"))
    assert build.library() is None


def test_they_can_be_turned_off(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_NATIVE", "0")
    assert build.library() is None
    assert not own_cache.exists()


def test_a_compiler_that_hangs_is_given_up(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    monkeypatch.setattr(build, "_SECONDS", 0.2)
    assert build.library() is None
    assert built(own_cache) == []


@needs_compiler
def test_several_processes_may_compile_at_once(own_cache: Path) -> None:
    code = f"from nmt.native import build; build.FLAGS = {QUICKLY}; assert build.library() is not None"
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, env=os.environ | {"NMT_CACHE": str(own_cache.parent)}) for _ in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert len(built(own_cache)) == 1


@needs_compiler
@pytest.mark.parametrize(("name", "beam"), [("bahdanau", 1), ("bahdanau", 4), ("luong-local-p", 4)])
def test_search_finds_the_same_with_and_without(name: str, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[tuple[object, ...]]:
        build.library.cache_clear()
        translator = Translator([bundle(name)], decoding=Decoding(beam_size=beam), n_best=beam)
        ranked = [one for each in translator.translate(LINES) for one in each.hypotheses]
        return [(one.ids, pytest.approx(one.score, abs=1e-4), one.alignment.shape) for one in ranked]

    with_kernels = found()
    monkeypatch.setenv("NMT_NATIVE", "0")
    assert found() == with_kernels
