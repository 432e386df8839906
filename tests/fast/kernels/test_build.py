"""The C kernels are compiled once, without warnings, and share PyTorch's threads; search and training do without them."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.fast.kernels import build, calls
from nmt.fast.kernels import decoding as kernels
from tests.commands import ROOT
from tests.machine import needs, needs_compiler

SANITIZERS = "address,undefined,float-cast-overflow"


@pytest.fixture(autouse=True)
def unprepared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start every test with nothing prepared and kernels allowed; restore both after it."""
    monkeypatch.delenv("NMT_NATIVE", raising=False)
    forget(monkeypatch)
    yield
    build.prepare_kernels.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_libraries", [])
    build.prepare_kernels.cache_clear()


def has_kernels() -> bool:
    """Whether there are kernels once they have been prepared."""
    build.prepare_kernels()
    return build.library() is not None


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the compiled kernels in a cache that has none; they are compiled without optimization, which is quick."""
    monkeypatch.setenv("NMT_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "FLAGS", ("-O0", "-std=gnu11", "-fPIC"))
    return tmp_path / "native"


@needs_compiler
def test_kernels_are_compiled_once(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_kernels()
    (library,) = empty_cache.glob("*.so")
    forget(monkeypatch)
    monkeypatch.setattr(build, "_compile", None)
    assert has_kernels()
    assert empty_cache.stat().st_mode & 0o077 == 0
    assert list(empty_cache.iterdir()) == [library]


@pytest.mark.parametrize(
    ("compiler", "reason"), [("false", "false failed: exit status 1"), ("no-such-compiler", "there is no C compiler")]
)
def test_without_a_compiler_one_line_says_what_is_lost(
    compiler: str, reason: str, empty_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert not has_kernels()
    assert not has_kernels()
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert reason in record.getMessage()
    assert not list(empty_cache.glob("*.so"))
    with torch.inference_mode():
        assert not kernels.can_use(torch.randn(2, 2))


def test_nmt_native_0_switches_kernels_off(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NMT_NATIVE", "0")
    assert not has_kernels()
    assert not empty_cache.exists()
    assert not caplog.records


def test_can_use_compiles_nothing(empty_cache: Path) -> None:
    with torch.inference_mode():
        assert not kernels.can_use(torch.randn(2, 2))
    assert not calls.can_use(torch.randn(2, 2))
    assert not kernels.multiplies_int8()
    assert not empty_cache.exists()


# --- compilers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", build.SOURCES)
@pytest.mark.parametrize(("compiler", "threads"), [("gcc", ["-fopenmp"]), ("clang", [])])
def test_sources_compile_without_warnings(compiler: str, threads: list[str], source: str) -> None:
    path = shutil.which(compiler)
    if path is None:
        pytest.skip(f"there is no {compiler} here")
    settings = [*build.FLAGS, *build.RELAXED, "-Wall", "-Wextra", "-Werror", "-O1", *threads]
    command = [path, "-c", *settings, str(build.FOLDER / source), "-o", os.devnull]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.slow
def test_sanitizers_report_nothing(tmp_path: Path) -> None:
    """All tests of the kernels, with kernels that abort at the first access out of bounds and at undefined behavior."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc here")
    compiler = tmp_path / "sanitizing"
    compiler.write_text(f'#!/bin/sh\nexec {gcc} "$@" -g -fsanitize={SANITIZERS} -fno-sanitize-recover=all\n')
    compiler.chmod(0o700)
    libraries = [
        subprocess.run([gcc, f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True).stdout
        for name in ("asan", "ubsan")
    ]
    if not all(map(os.path.isabs, libraries)):
        pytest.skip("gcc has no sanitizers here")
    changes = {"CC": str(compiler), "LD_PRELOAD": " ".join(map(str.strip, libraries)), "ASAN_OPTIONS": "detect_leaks=0"}
    tests = [str(Path(__file__).with_name(f"test_{name}.py")) for name in ("decoding", "training", "calls")]
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", *tests]
    ended = subprocess.run(
        command, env=os.environ | changes, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]


# --- threads ------------------------------------------------------------------------------------------------------

COUNT_THREADS = """
import os, torch
from nmt.fast.kernels import build, decoding

threads = lambda: len(os.listdir("/proc/self/task"))
files = lambda: {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line}
logits, files_before = torch.rand(300, 1000), files()
build.prepare_kernels()
assert build.library()
before = threads()
decoding.most_probable(logits, 2)
print(threads() - before)
logits.sin()
print(threads() - before, files() - files_before)
"""


@pytest.mark.slow
@needs_compiler
@needs(bool(build.openmp_libraries()), "PyTorch does not use GNU OpenMP")
def test_kernels_share_the_threads_of_pytorch() -> None:
    """They start one more thread, which PyTorch uses too, and load no other OpenMP library."""
    command = [sys.executable, "-c", COUNT_THREADS]
    variables = os.environ | {"OMP_NUM_THREADS": "2"}
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert ended.stdout.split("\n") == ["1", "1 set()", ""]
