"""Compiles the C kernels into one library: for this processor, or for several instruction sets of a wheel.

Imports the standard library alone, since `tools/kernels.py` runs it where nothing is installed.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from os import environ
from pathlib import Path
from tempfile import TemporaryDirectory

_FOLDER = Path(__file__).parent
SOURCES = tuple(_FOLDER / name for name in ("search.c", "training.c"))
"""Compiled once for each instruction set."""
THREADS, PROCESSOR = _FOLDER / "threads.c", _FOLDER / "processor.c"
"""Compiled once."""
HEADER = _FOLDER / "numbers.h"
FLAGS = ("-O3", "-std=gnu11", "-fPIC")
RELAXED = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math")
"""Sums may be reordered to vectorize them; infinities and NaN keep their meaning."""
NATIVE = "native"
_BY_MACHINE: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "x86_64_v2": ("-march=x86-64-v2",),  # SSE 4.2
        "x86_64_v3": ("-march=x86-64-v3",),  # AVX2 and FMA
        "x86_64_v4": ("-march=x86-64-v4",),  # AVX-512
        "avx512_vnni": ("-march=x86-64-v4", "-mavx512vnni"),  # and its products of bytes
    },
    "aarch64": {"armv8_a": ("-march=armv8-a",)},
}
INSTRUCTION_SETS = _BY_MACHINE.get(platform.machine(), {})
"""What a wheel is compiled for, each including those before it, and the flags of the compiler."""
TIMEOUT = 60
"""Seconds that a run of the compiler may take."""


def find_compiler() -> str:
    """The path of `$CC` or `cc`. Raises FileNotFoundError."""
    compiler = shutil.which(environ.get("CC") or "cc")
    if compiler is None or sys.platform == "win32":
        raise FileNotFoundError("there is no C compiler; `cc` or $CC would be one.")
    return compiler


def library_name(instruction_sets: Collection[str], *parts: str) -> str:
    """A file name that changes with the sources, the flags and the parts."""
    sources = [path.read_bytes() for path in (*SOURCES, THREADS, PROCESSOR, HEADER)]
    flags = [*FLAGS, *RELAXED, *(flag for name in instruction_sets for flag in (name, *flags_of(name)))]
    digest = hashlib.sha256(b"\0".join([*sources, *(part.encode() for part in (*flags, *parts))]))
    return f"{digest.hexdigest()[:16]}.so"


def flags_of(instruction_set: str) -> tuple[str, ...]:
    return ("-march=native",) if instruction_set == NATIVE else INSTRUCTION_SETS[instruction_set]


def compile_library(path: Path, compiler: str, instruction_sets: Collection[str], *, with_threads: bool = True) -> None:
    """Compile the sources once for each instruction set, and link them.

    With threads, the compiler must use GNU OpenMP: clang's needs more functions than `threads.c` defines. Raises OSError and
    SubprocessError.
    """
    openmp, linking = (["-fopenmp"], ["-Wl,--no-undefined"]) if with_threads else ([], [])
    with TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:

        def compile_one(source: Path, name: str, *flags: str) -> str:
            compiled = str(Path(folder, f"{source.stem}-{name}.o"))
            _run(compiler, "-c", *FLAGS, *flags, str(source), "-o", compiled)
            return compiled

        once = [THREADS] if NATIVE in instruction_sets else [THREADS, PROCESSOR]  # which takes GCC 12
        jobs = [pool.submit(compile_one, source, "once") for source in once]
        for name in instruction_sets:
            flags = (*RELAXED, *flags_of(name), f"-DINSTRUCTION_SET={name}", *openmp)
            jobs += [pool.submit(compile_one, source, name, *flags) for source in SOURCES]
        compiled = [job.result() for job in jobs]
        _run(
            compiler, "-shared", *compiled, "-o", str(path), *linking, "-lm"
        )  # linking with -fopenmp would add libgomp


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)  # noqa: S603 -- our own files
