"""The C sources under the compilers that there are: without warnings, and with sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nmt.fast.kernels.compiling import FLAGS, NATIVE, PROCESSOR, RELAXED, SOURCES, THREADS, flags_of
from tests.fast.kernels.running import run_tests_of_kernels

WARNINGS = ("-Wall", "-Wextra", "-Werror")
SANITIZERS = "address,undefined,float-cast-overflow"


def path_of(compiler: str) -> str:
    path = shutil.which(compiler)
    if path is None:
        pytest.skip(f"there is no {compiler} here")
    return path


def compiled(compiler: str, source: Path, *flags: str) -> str:
    """What the compiler says."""
    command = [
        path_of(compiler),
        "-c",
        *FLAGS,
        *RELAXED,
        *flags_of(NATIVE),
        *WARNINGS,
        *flags,
        str(source),
        "-o",
        os.devnull,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr


@pytest.mark.parametrize("source", [*SOURCES, THREADS, PROCESSOR], ids=lambda source: source.name)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sources_compile_without_warnings(compiler: str, source: Path) -> None:
    assert compiled(compiler, source, "-fopenmp") == ""


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_baseline_build_has_no_warnings(compiler: str, source: Path) -> None:
    baseline = () if os.uname().machine != "x86_64" else ("-march=x86-64",)
    assert compiled(compiler, source, *baseline, "-O1") == ""


@pytest.mark.parametrize(
    ("code", "warning"), [("int f(void) { int unused; return 0; }", "unused"), ("int f(", "error")]
)
def test_warnings_are_detected(code: str, warning: str, tmp_path: Path) -> None:
    source = tmp_path / "bad.c"
    source.write_text(code)
    assert warning in compiled("gcc", source)


@pytest.mark.slow
def test_sanitizers_report_nothing(tmp_path: Path) -> None:
    """All tests of the kernels, with kernels that abort at the first access out of bounds and at undefined behavior."""
    gcc = path_of("gcc")
    compiler = tmp_path / "sanitizing"
    compiler.write_text(f'#!/bin/sh\nexec {gcc} "$@" -g -fsanitize={SANITIZERS} -fno-sanitize-recover=all\n')
    compiler.chmod(0o700)
    libraries = [run(gcc, f"-print-file-name=lib{name}.so") for name in ("asan", "ubsan")]
    if not all(map(os.path.isabs, libraries)):
        pytest.skip("gcc has no sanitizers here")
    environment = {
        "CC": str(compiler),
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "OMP_NUM_THREADS": "1",
    }
    ended = run_tests_of_kernels(environment)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
