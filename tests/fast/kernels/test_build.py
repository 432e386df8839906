"""Compiling the kernels: the cache, its permissions, and search without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from nmt.decoding.translator import Translator
from nmt.fast.kernels import build
from nmt.fast.kernels import decoding as kernels
from nmt.fast.kernels import training as training_kernels
from nmt.recipe import DecodingConfig
from tests.decoding.test_translator import LINES, bundle
from tests.machine import needs_compiler, needs_fast


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every test with nothing prepared and kernels allowed; restore both after it."""
    monkeypatch.delenv("NMT_NATIVE", raising=False)
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "prepared", build.Prepared())


def has_kernels() -> bool:
    """Whether there are kernels once they have been prepared."""
    build.prepare_kernels()
    return build.library() is not None


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path))
    return tmp_path / "native"


QUICKLY = ("-O0", "-std=gnu11", "-fPIC")


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not matter how fast the kernels are, they need not be library for this processor."""
    monkeypatch.setattr(build, "FLAGS", QUICKLY)


def built(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@needs_compiler
@pytest.mark.usefixtures("quickly")
def test_kernels_are_compiled_once(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_kernels()
    (library,) = built(own_cache)
    before = library.stat()
    forget(monkeypatch)
    assert has_kernels()
    assert library.stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o077 == 0


@needs_compiler
@pytest.mark.usefixtures("quickly")
def test_library_that_others_can_write_is_compiled_again(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_kernels()
    (library,) = built(own_cache)
    library.unlink()
    library.write_bytes(b"not a library")
    library.chmod(0o666)
    forget(monkeypatch)
    assert has_kernels()
    assert library.read_bytes()[:4] != b"not "
    assert library.stat().st_mode & 0o022 == 0


@needs_compiler
def test_folder_that_others_can_write_is_not_used(own_cache: Path) -> None:
    own_cache.mkdir()
    own_cache.chmod(0o777)
    assert not has_kernels()
    assert built(own_cache) == []


@pytest.mark.usefixtures("quickly")
def test_clang_compiles_the_kernels(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without threads, where PyTorch has those of GNU: the code of clang cannot use them."""
    if shutil.which("clang") is None:
        pytest.skip("there is no clang here")
    monkeypatch.setenv("CC", "clang")
    assert has_kernels()
    with torch.inference_mode():
        assert kernels.most_probable(torch.tensor([[0.0, 2.0, 1.0]]), 2)[1].tolist() == [[1, 2]]


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler"])
def test_without_a_compiler_there_are_no_kernels(
    compiler: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert not has_kernels()
    assert not own_cache.exists() or built(own_cache) == []
    with torch.inference_mode():
        assert not kernels.can_use(torch.randn(2, 2))


def test_unwritable_cache_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "file"))
    assert not has_kernels()


def test_nmt_native_0_switches_kernels_off(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_NATIVE", "0")
    assert not has_kernels()
    assert not own_cache.exists()


def test_hanging_compiler_times_out(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    monkeypatch.setattr(build, "_TIMEOUT", 0.2)
    assert not has_kernels()
    assert built(own_cache) == []


@needs_compiler
def test_can_use_compiles_nothing(own_cache: Path) -> None:
    with torch.inference_mode():
        assert not kernels.can_use(torch.randn(2, 2))
    assert not training_kernels.can_use(torch.randn(2, 2))
    assert not kernels.multiplies_int8()
    assert not own_cache.exists()


@pytest.mark.parametrize(("patience", "lines"), [(0.0, 1), (60.0, 0)])
def test_slow_compilation_is_logged(
    patience: float, lines: int, own_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", "false")
    monkeypatch.setattr(build, "PATIENCE", patience)
    compile_ = build._built

    def wait_a_little() -> Path:
        time.sleep(0.2)
        return compile_()

    monkeypatch.setattr(build, "_built", wait_a_little)
    assert not has_kernels()
    assert not has_kernels()  # nor tried again
    assert len(caplog.messages) == lines
    assert all("Compiling the C kernels" in line for line in caplog.messages)


@pytest.mark.slow
@needs_compiler
def test_processes_can_compile_at_once(own_cache: Path) -> None:
    code = (
        f"from nmt.fast.kernels import build; build.FLAGS = {QUICKLY}; build.prepare_kernels(); assert build.library()"
    )
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, env=os.environ | {"NMT_CACHE": str(own_cache.parent)}) for _ in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert len(built(own_cache)) == 1


@needs_compiler
@needs_fast
@pytest.mark.parametrize(("name", "beam"), [("bahdanau", 1), ("bahdanau", 4), ("luong-local-p", 4)])
def test_search_is_the_same_with_and_without_kernels(name: str, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def hypotheses() -> list[tuple[object, ...]]:
        forget(monkeypatch)
        translator = Translator([bundle(name)], decoding=DecodingConfig(beam_size=beam), n_best=beam)
        ranked = [one for each in translator.translate(LINES) for one in each.hypotheses]
        return [(one.ids, pytest.approx(one.score, abs=1e-4), one.alignment.shape) for one in ranked]

    with_kernels = hypotheses()
    monkeypatch.setenv("NMT_NATIVE", "0")
    assert hypotheses() == with_kernels
