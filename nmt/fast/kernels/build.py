"""Compiles the C kernels with the system's compiler on first use, caches the library, and loads it."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmt.cache import cache_folder, is_private
from nmt.device import cpu_info
from nmt.errors import DataError
from nmt.files import replacing

logger = logging.getLogger("nmt")

SOURCES = tuple(Path(__file__).with_name(name) for name in ("search.c", "training.c"))
SHARED = Path(__file__).with_name("numbers.h")
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fPIC")
"""With all vector instructions of this processor."""
RELAXED = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math")
"""Sums may be reordered to vectorise them; infinities and NaN keep their meaning."""
PATIENCE = 2.0
"""Seconds after which a message says that the kernels are being compiled."""
_TIMEOUT = 60
"""Seconds that a run of the compiler may take."""


@dataclass
class Prepared:
    """The kernels of this process, and whether they were looked for."""

    library: ctypes.CDLL | None = None
    is_done: bool = False


prepared = Prepared()
_preparing = threading.Lock()


def library() -> ctypes.CDLL | None:
    """The kernels, if `prepare_kernels` has loaded them. Takes no time."""
    return prepared.library


def prepare_kernels() -> None:
    """Compile the kernels or load them from the cache, on the first call in a process.

    There are none if `NMT_NATIVE` is 0 or no C compiler can compile them.
    """
    with _preparing:
        if not prepared.is_done and os.environ.get("NMT_NATIVE") != "0":
            prepared.library = _loaded()
        prepared.is_done = True


def _loaded() -> ctypes.CDLL | None:
    try:
        with _message_if_slow("Compiling the C kernels for this processor, once: this may take a minute."):
            return ctypes.CDLL(str(_built()))
    except (DataError, OSError, subprocess.SubprocessError) as error:
        logger.debug("Continuing without compiled kernels, a little slower: %s", error)
        return None


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


def _built() -> Path:
    """The library's file, compiled if it is not there yet. Raises OSError and SubprocessError."""
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if compiler is None or sys.platform == "win32":
        raise FileNotFoundError("there is no C compiler; `cc` or $CC would be one.")
    threads = openmp_libraries()
    flags = (*FLAGS, *RELAXED, *(("-fopenmp",) if threads else ()))
    abilities = cpu_info("flags", "Features") or platform.processor()  # machines may share a cache
    sources = (path.read_bytes() for path in (*SOURCES, SHARED))
    key = (*sources, *(part.encode() for part in (compiler, *flags, *threads, abilities)))
    name = hashlib.sha256(b"\0".join(key)).hexdigest()[:16]
    folder = cache_folder() / "native"
    path = folder / f"{name}.so"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not is_private(folder):  # its code will run
        raise PermissionError(f"others can write to {folder}.")
    if not path.exists() or not is_private(path):
        _compile(path, compiler, flags, threads)
    return path


def _compile(path: Path, compiler: str, flags: tuple[str, ...], threads: tuple[str, ...]) -> None:
    """With threads if they can be those of PyTorch's OpenMP library: clang's code needs another one."""
    with replacing(path) as beside:
        try:
            _compile_and_link(beside, compiler, flags, (*threads, "-Wl,--no-undefined") if threads else ())
        except subprocess.CalledProcessError:
            if not threads:
                raise
            _compile_and_link(beside, compiler, tuple(flag for flag in flags if flag != "-fopenmp"), ())
        beside.chmod(0o700)


def _compile_and_link(path: Path, compiler: str, flags: tuple[str, ...], libraries: tuple[str, ...]) -> None:
    """In two steps: linking with -fopenmp would add a second pool of threads."""
    compiled = [path.with_suffix(f".{source.stem}.o") for source in SOURCES]
    try:
        with ThreadPoolExecutor() as pool:
            commands = zip(SOURCES, compiled, strict=True)
            list(pool.map(lambda each: _run(compiler, "-c", *flags, str(each[0]), "-o", str(each[1])), commands))
        _run(compiler, "-shared", *map(str, compiled), "-o", str(path), *libraries, "-lm")
    finally:
        for each in compiled:
            each.unlink(missing_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT)  # noqa: S603 -- our own file


def openmp_libraries() -> tuple[str, ...]:
    """The GNU OpenMP library that PyTorch uses, if it does: a second pool of threads would compete with the first."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []
    loaded = {line.split(maxsplit=5)[-1] for line in lines if "/libgomp" in line}
    return tuple(sorted(loaded, key=lambda path: "/torch" not in path)[:1])
