"""Loading the kernels: those of a wheel, the cache and its permissions, and search without a compiler."""

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
from nmt.errors import UsageError
from nmt.fast.kernels import build, compiling
from nmt.fast.kernels import decoding as kernels
from nmt.fast.kernels import training as training_kernels
from nmt.recipe import DecodingConfig
from nmt.runtime.device import cpu_info
from tests.decoding.test_translator import LINES, bundle
from tests.fast.kernels.running import run_tests_of_kernels
from tests.machine import needs, needs_compiler, needs_fast


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
    """Where it does not matter how fast the kernels are, they need not be optimized."""
    monkeypatch.setattr(compiling, "FLAGS", QUICKLY)


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
    monkeypatch.setattr(compiling, "TIMEOUT", 0.2)
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

    def wait_a_little(instruction_set: str) -> Path:
        time.sleep(0.2)
        return compile_(instruction_set)

    monkeypatch.setattr(build, "_built", wait_a_little)
    assert not has_kernels()
    assert not has_kernels()  # nor tried again
    assert len(caplog.messages) == lines
    assert all("Compiling the C kernels" in line for line in caplog.messages)


# --- instruction sets, and the library of a wheel ---------------------------------------------------------------


def first_instruction_sets(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the processor has only the first few."""
    names = tuple(compiling.INSTRUCTION_SETS)[:count]
    monkeypatch.setattr(build, "_instruction_sets_of_processor", lambda _: names)


@pytest.fixture(scope="module")
def of_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library of a wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "FLAGS", QUICKLY)
        path = folder / compiling.library_name(compiling.INSTRUCTION_SETS)
        try:
            compiling.compile_library(path, compiling.find_compiler(), compiling.INSTRUCTION_SETS)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"needs GCC 12 or newer: {error}")
    return folder


@pytest.fixture
def wheel(of_wheel: Path, own_cache: Path, quickly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has a library, and the machine no compiler."""
    monkeypatch.setattr(build, "WHEEL_FOLDER", of_wheel)
    monkeypatch.setenv("CC", "no-such-compiler")


def instruction_set() -> str | None:
    build.prepare_kernels()
    loaded = build.library()
    return None if loaded is None else loaded.instruction_set


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize("name", compiling.INSTRUCTION_SETS)
def test_each_instruction_set_of_a_wheel_computes_without_a_compiler(
    name: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMT_NATIVE", name)
    try:
        assert instruction_set() == name
    except UsageError as error:
        pytest.skip(str(error))
    with torch.inference_mode():
        assert kernels.most_probable(torch.tensor([[0.0, 2.0, 1.0]]), 2)[1].tolist() == [[1, 2]]
    assert kernels.multiplies_int8() == (name == "avx512_vnni")
    assert not own_cache.exists()


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize("count", range(1, 1 + len(compiling.INSTRUCTION_SETS)))
def test_a_wheel_gives_the_best_that_the_processor_has(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    first_instruction_sets(count, monkeypatch)
    assert instruction_set() == tuple(compiling.INSTRUCTION_SETS)[count - 1]


@pytest.mark.usefixtures("wheel")
def test_a_wheel_for_newer_processors_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    first_instruction_sets(0, monkeypatch)
    assert instruction_set() is None
    monkeypatch.delenv("CC")
    forget(monkeypatch)
    assert instruction_set() == compiling.NATIVE


@pytest.mark.usefixtures("wheel")
def test_a_wheel_with_changed_sources_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "changed.h"
    changed.write_bytes(compiling.HEADER.read_bytes() + b"\n")
    monkeypatch.setattr(compiling, "HEADER", changed)
    assert instruction_set() is None


@pytest.mark.usefixtures("wheel")
def test_a_wheel_compiles_for_this_processor_on_request(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC")
    monkeypatch.setenv("NMT_NATIVE", "native")
    assert instruction_set() == compiling.NATIVE
    assert len(built(own_cache)) == 1


@pytest.mark.usefixtures("wheel")
def test_the_processor_names_its_instruction_sets_as_linux_does() -> None:
    build.prepare_kernels()
    loaded = build.library()
    assert loaded is not None
    flags = (cpu_info("flags") or "").split()
    by_linux = {"x86_64_v2": "sse4_2", "x86_64_v3": "avx2", "x86_64_v4": "avx512vl", "avx512_vnni": "avx512_vnni"}
    expected = [name for name in compiling.INSTRUCTION_SETS if by_linux.get(name) in {*flags, None}]
    assert list(build._instruction_sets_of_processor(loaded.library)) == expected


def test_unknown_instruction_set_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_NATIVE", "fastest")
    with pytest.raises(UsageError, match=r"^NMT_NATIVE must be one of 0, 1, native.*, but is fastest\.$"):
        build.prepare_kernels()


@pytest.mark.usefixtures("wheel")
def test_instruction_set_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(compiling.INSTRUCTION_SETS)
    first_instruction_sets(len(names) - 1, monkeypatch)
    monkeypatch.setenv("NMT_NATIVE", names[-1])
    with pytest.raises(UsageError, match=f"^NMT_NATIVE is {names[-1]}, but this processor has only {names[0]}"):
        build.prepare_kernels()


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", compiling.INSTRUCTION_SETS)
def test_kernels_for_each_instruction_set_pass_their_tests(name: str) -> None:
    """All tests of the kernels, compiled for an older processor than this one."""
    ended = run_tests_of_kernels({"NMT_NATIVE": name})
    if f"NMT_NATIVE is {name}, but this processor has only" in ended.stdout:
        pytest.skip("the processor does not have it")
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]


# --- threads ----------------------------------------------------------------------------------------------------

COUNT_THREADS = """
import os, time, torch
from nmt.fast.kernels import build, decoding

threads = lambda: len(os.listdir("/proc/self/task"))
files = lambda: {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line}
logits, files_before, find = torch.rand(300, 1000), files(), build.openmp_libraries
for build.openmp_libraries in (lambda: (), find):
    build.prepared = build.Prepared()
    build.prepare_kernels()
    assert build.library()
    time.sleep(0.3)  # a timer's thread ends
    before = threads()
    decoding.most_probable(logits, 2)
    print(threads() - before)
logits.sin()
print(threads() - before, files() - files_before)
"""


@pytest.mark.usefixtures("of_wheel")  # which skips this unless GCC compiles
@needs(bool(build.openmp_libraries()), "PyTorch does not use GNU OpenMP")
def test_kernels_share_the_threads_of_pytorch() -> None:
    """One thread where PyTorch's OpenMP library is not found; else two, which PyTorch uses too, and no other library."""
    command = [sys.executable, "-c", COUNT_THREADS]
    ended = subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "2"}, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split("\n") == ["0", "1", "1 set()", ""]


@pytest.mark.slow
@needs_compiler
def test_processes_can_compile_at_once(own_cache: Path) -> None:
    code = f"""
from nmt.fast.kernels import build, compiling
compiling.FLAGS = {QUICKLY}
build.prepare_kernels()
assert build.library()
"""
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, env=os.environ | {"NMT_CACHE": str(own_cache.parent)}) for _ in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert len(built(own_cache)) == 1


@needs_compiler
@needs_fast
@pytest.mark.parametrize(("name", "beam"), [("bahdanau", 1), ("luong-local-p", 4)])
def test_search_is_the_same_with_and_without_kernels(name: str, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def hypotheses() -> list[tuple[object, ...]]:
        forget(monkeypatch)
        translator = Translator([bundle(name)], decoding=DecodingConfig(beam_size=beam), n_best=beam)
        ranked = [one for each in translator.translate(LINES) for one in each.hypotheses]
        return [(one.ids, pytest.approx(one.score, abs=1e-4), one.alignment.shape) for one in ranked]

    with_kernels = hypotheses()
    monkeypatch.setenv("NMT_NATIVE", "0")
    assert hypotheses() == with_kernels
