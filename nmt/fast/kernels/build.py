"""Compiles the C kernels for this processor on first use, and loads them. Without a C compiler PyTorch computes the same."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
from functools import cache
from multiprocessing import current_process
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.errors import DataError
from nmt.runtime.cache import cache_folder
from nmt.runtime.device import cpu_info

logger = logging.getLogger("nmt")

FOLDER = Path(__file__).parent
SOURCES = ("search.c", "training.c")
HEADER = "numbers.h"
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-march=native")
RELAXED = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math")
"""Sums may be reordered to vectorize them; infinities and NaN keep their meaning."""


_libraries: list[ctypes.CDLL] = []
"""The kernels of this process, at most one library."""


def library() -> ctypes.CDLL | None:
    """The kernels, if `prepare_kernels` has loaded them. Takes no time."""
    return _libraries[0] if _libraries else None


@cache
def prepare_kernels() -> None:
    """Load the kernels, on the first call in a process; compile them if they are not in the cache (2 s).

    Does nothing with `NMT_NATIVE=0`. If they cannot be compiled, one line of the log says what that costs.
    """
    if os.environ.get("NMT_NATIVE") == "0":
        return
    try:
        _libraries.append(ctypes.CDLL(str(_built())))
    except (DataError, OSError) as error:
        if current_process().name == "MainProcess":  # its workers need not repeat it
            logger.warning(
                "Without compiled kernels training takes 1.1 and search up to 2.8 times as long (%s). "
                "Install a C compiler, or name one in CC; NMT_NATIVE=0 hides this message.",
                error,
            )


def _built() -> Path:
    """The library for this processor, compiled unless it is in the cache. Raises DataError and OSError."""
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if compiler is None:
        raise FileNotFoundError("there is no C compiler")
    openmp = openmp_libraries()
    processor = cpu_info("flags", "Features") or platform.processor()  # machines may share a cache
    texts = [*FLAGS, *RELAXED, compiler, processor, *openmp]
    sources = [(FOLDER / name).read_bytes() for name in (*SOURCES, HEADER)]
    digest = hashlib.sha256(b"\0".join([*sources, *map(str.encode, texts)])).hexdigest()
    path = cache_folder() / "native" / f"{digest[:16]}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _compile(compiler, openmp, path)
    return path


def _compile(compiler: str, openmp: tuple[str, ...], path: Path) -> None:
    """Compile the sources beside `path` and move the library there; another process may do the same at the same time.

    Linking with `-fopenmp` would bring a second OpenMP library, whose threads compete with PyTorch's: it is linked with PyTorch's.
    """
    with TemporaryDirectory(dir=path.parent) as folder:
        threads = ["-fopenmp"] if openmp else []
        _run(folder, compiler, "-c", *FLAGS, *RELAXED, *threads, *(str(FOLDER / name) for name in SOURCES))
        objects = [f"{Path(name).stem}.o" for name in SOURCES]
        _run(folder, compiler, "-shared", *objects, *openmp, "-lm", "-o", "kernels.so")
        os.replace(Path(folder, "kernels.so"), path)


def _run(folder: str, *command: str) -> None:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 -- our own files
    if ended.returncode:
        reason = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
        raise OSError(f"{command[0]} failed: {reason[0]}")


def openmp_libraries() -> tuple[str, ...]:
    """The GNU OpenMP library that PyTorch uses, if it uses one."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []
    loaded = {line.split(maxsplit=5)[-1] for line in lines if "/libgomp" in line}
    return tuple(sorted(loaded, key=lambda path: "/torch" not in path)[:1])
