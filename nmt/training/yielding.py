"""How threads wait for one another while other processes need the cores too.

OpenMP threads spin at the end of a parallel region, which on a quiet machine is faster than sleeping. When another process takes a
core, they spin away the very time that the thread they wait for needs: training on two cores falls to a quarter of its speed.

GNU OpenMP (libgomp) spins up to 300,000 times, but only 100 times while it manages more threads than there are cores. So an idle
team of threads is opened while this process has to wait for cores, and closed once it no longer has to. Results do not change.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import torch

from nmt.device import usable_cores
from nmt.fast.kernels.build import openmp_libraries

INTERVAL = 1.0
"""Seconds between two looks at how long threads had to wait."""
CONTENDED = 0.2
"""Seconds of waiting for a core, per second, above which threads yield: 0.03 on a quiet machine, 0.5 to 0.8 beside one busy process."""


class Yielding:
    """Within it, waiting threads sleep instead of spinning whenever other processes compete for the cores.

    It does nothing where there is no GNU OpenMP, no Linux, or only one thread.
    """

    def __init__(self, delays: Callable[[], Mapping[str, float]] | None = None, interval: float = INTERVAL) -> None:
        self._delays = delays or delays_of_threads
        self._interval = interval
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="nmt-yielding", daemon=True)
        self._threads = torch.get_num_threads()
        self.team: IdleTeam | None = None

    def __enter__(self) -> Self:
        if self._threads > 1 and IdleTeam.is_possible():
            self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._watcher.is_alive():
            self._watcher.join()

    def _watch(self) -> None:
        delays, at = self._delays(), time.monotonic()
        while not self._ended.wait(self._interval):
            before, since = delays, at
            delays, at = self._delays(), time.monotonic()
            waited = sum(delay - before[thread] for thread, delay in delays.items() if thread in before)
            self._yield(waited > CONTENDED * (at - since))
        self._yield(False)

    def _yield(self, contended: bool) -> None:
        if contended and self.team is None:
            self.team = IdleTeam(beside=self._threads)
        elif not contended and self.team is not None:
            self.team.close()
            self.team = None


class IdleTeam:
    """A sleeping team of OpenMP threads, just large enough that libgomp manages more threads than there are cores."""

    def __init__(self, *, beside: int) -> None:
        self._size = max(2, usable_cores() - beside + 2)
        self._closed = threading.Event()
        opened = threading.Event()
        self._owner = threading.Thread(target=self._open, args=(opened,), name="nmt-idle-team", daemon=True)
        self._owner.start()
        opened.wait()

    @staticmethod
    def is_possible() -> bool:
        """Whether PyTorch computes with libgomp, on a system that says how long threads wait."""
        return sys.platform == "linux" and bool(openmp_libraries()) and Path("/proc/self/schedstat").exists()

    def close(self) -> None:
        """End the team: libgomp counts its threads no longer once the thread that opened it ends."""
        self._closed.set()
        self._owner.join()

    def _open(self, opened: threading.Event) -> None:
        parallel = ctypes.CDLL(openmp_libraries()[0]).GOMP_parallel
        parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)  # free(NULL) does nothing
        parallel(nothing, None, self._size, 0)
        opened.set()
        self._closed.wait()


def delays_of_threads() -> dict[str, float]:
    """Seconds that each thread of this process was ready to run but had to wait for a core, by its number."""
    delays = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has just ended
            delays[task.name] = int((task / "schedstat").read_bytes().split()[1]) / 1e9
    return delays
