"""Loads the C kernels: those of the wheel, or else those that the system's compiler makes on first use, which are cached."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import DataError, UsageError
from nmt.fast.kernels.compiling import INSTRUCTION_SETS, NATIVE, compile_library, find_compiler, library_name
from nmt.runtime.cache import cache_folder, is_private
from nmt.runtime.device import cpu_info
from nmt.runtime.files import replacing

logger = logging.getLogger("nmt")

WHEEL_FOLDER = Path(__file__).parent
"""Where a wheel has its library."""
PATIENCE = 2.0
"""Seconds after which a message says that the kernels are being compiled."""


@dataclass(frozen=True, eq=False)
class Kernels:
    """The kernels of a library for one instruction set."""

    library: ctypes.CDLL
    instruction_set: str

    def function(self, name: str) -> Any:
        """The C function of a kernel. ctypes has no public name for its type."""
        return self.library[f"{name}_{self.instruction_set}"]


@dataclass
class Prepared:
    """The kernels of this process, and whether they were looked for."""

    kernels: Kernels | None = None
    is_done: bool = False


prepared = Prepared()
_preparing = threading.Lock()


def library() -> Kernels | None:
    """The kernels, if `prepare_kernels` has loaded them. Takes no time."""
    return prepared.kernels


def prepare_kernels() -> None:
    """Load the kernels of the wheel, or else compile them or load them from the cache, on the first call in a process.

    `NMT_NATIVE` may name an instruction set, or be `native` to compile them even where there are those of a wheel. There are none
    if it is 0, or if no C compiler can compile them.

    Raises:
        UsageError: `NMT_NATIVE` is something else, or the processor has no such instruction set.
    """
    with _preparing:
        if not prepared.is_done and os.environ.get("NMT_NATIVE") != "0":
            prepared.kernels = _loaded(_instruction_set())
        prepared.is_done = True


def _instruction_set() -> str | None:
    """The one that the environment names; None stands for the best."""
    name = os.environ.get("NMT_NATIVE", "")
    choices = "0", "1", NATIVE, *INSTRUCTION_SETS
    if name and name not in choices:
        raise UsageError(f"NMT_NATIVE must be one of {', '.join(choices)}, but is {name}.")
    return None if name in ("", "1") else name


def _loaded(instruction_set: str | None) -> Kernels | None:
    try:
        return _of_wheel(instruction_set) or _compiled(instruction_set or NATIVE)
    except (DataError, OSError, subprocess.SubprocessError) as error:
        logger.debug("Continuing without compiled kernels, a little slower: %s", error)
        return None


def _of_wheel(instruction_set: str | None) -> Kernels | None:
    """None if the package has no library made of these very sources, or the processor has none of its instruction sets."""
    path = WHEEL_FOLDER / library_name(INSTRUCTION_SETS)
    if instruction_set == NATIVE or not path.exists():
        return None
    kernels = ctypes.CDLL(str(path))
    present = _instruction_sets_of_processor(kernels)
    return _ready(kernels, instruction_set or present[-1]) if present else None


def _compiled(instruction_set: str) -> Kernels:
    with _message_if_slow("Compiling the C kernels for this processor, once: this may take a minute."):
        return _ready(ctypes.CDLL(str(_built(instruction_set))), instruction_set)


def _ready(kernels: ctypes.CDLL, instruction_set: str) -> Kernels:
    """Kernels that share PyTorch's threads. Raises UsageError if the processor cannot run them."""
    if instruction_set != NATIVE:
        present = _instruction_sets_of_processor(kernels)
        if instruction_set not in present:
            raise UsageError(f"NMT_NATIVE is {instruction_set}, but this processor has only {', '.join(present)}.")
    for path in openmp_libraries():
        openmp = ctypes.CDLL(path)
        kernels.share_threads(openmp.GOMP_parallel, openmp.omp_get_thread_num, openmp.omp_get_num_threads)
    logger.debug("Kernels for %s: %s", instruction_set, kernels._name)
    return Kernels(kernels, instruction_set)


def _instruction_sets_of_processor(kernels: ctypes.CDLL) -> tuple[str, ...]:
    return tuple(INSTRUCTION_SETS)[: kernels.instruction_sets()]


@contextmanager
def _message_if_slow(message: str) -> Iterator[None]:
    """Log a message if the block takes more than `PATIENCE` seconds."""
    timer = threading.Timer(PATIENCE, logger.warning, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _built(instruction_set: str) -> Path:
    """The library's file, compiled if it is not there yet. Raises OSError and SubprocessError."""
    compiler = find_compiler()
    abilities = cpu_info("flags", "Features") or platform.processor()  # machines may share a cache
    folder = cache_folder() / "native"
    path = folder / library_name([instruction_set], compiler, abilities)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not is_private(folder):  # its code will run
        raise PermissionError(f"others can write to {folder}.")
    if not path.exists() or not is_private(path):
        with replacing(path) as beside:
            try:
                compile_library(beside, compiler, [instruction_set])
            except subprocess.CalledProcessError:  # the threads of clang are not PyTorch's
                compile_library(beside, compiler, [instruction_set], with_threads=False)
            beside.chmod(0o700)
    return path


def openmp_libraries() -> tuple[str, ...]:
    """The GNU OpenMP library that PyTorch uses, if it does: a second pool of threads would compete with the first."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []
    loaded = {line.split(maxsplit=5)[-1] for line in lines if "/libgomp" in line}
    return tuple(sorted(loaded, key=lambda path: "/torch" not in path)[:1])
