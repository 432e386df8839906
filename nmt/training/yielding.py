"""Make OpenMP threads sleep instead of spin while other processes use the same cores.

OpenMP threads spin at the end of a parallel region, which is faster than sleeping on an otherwise idle machine. If another
process takes a core, the spinning threads occupy the cores that the last thread of the region needs: training on two cores falls
to a quarter of its speed.

GNU OpenMP (libgomp) spins up to 300,000 times, but only 100 times while it manages more threads than there are cores. An idle team
of threads is therefore opened while this process has to wait for cores, and closed afterwards. Results do not change.
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

from nmt.fast.kernels.build import openmp_libraries
from nmt.runtime.cores import usable_cores

INTERVAL = 1.0
"""Seconds between two measurements of how long threads waited for a core."""
CONTENDED = 0.2
"""Waiting time per second above which threads sleep: 0.03 on an idle machine, 0.5 to 0.8 next to one busy process."""


class Yielding:
    """A context in which idle OpenMP threads sleep while other processes compete for the cores.

    It does nothing without GNU OpenMP, outside Linux, or with a single thread.
    """

    def __init__(self, delays: Callable[[], Mapping[str, float]] | None = None, interval: float = INTERVAL) -> None:
        self._delays = delays or delays_of_threads
        self._interval = interval
        self._exiting = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="nmt-yielding", daemon=True)
        self._threads = torch.get_num_threads()
        self.team: IdleTeam | None = None

    def __enter__(self) -> Self:
        if self._threads > 1 and IdleTeam.is_possible():
            self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._exiting.set()
        if self._watcher.is_alive():
            self._watcher.join()

    def _watch(self) -> None:
        delays, now = self._delays(), time.monotonic()
        while not self._exiting.wait(self._interval):
            previous_delays, previous = delays, now
            delays, now = self._delays(), time.monotonic()
            waited = sum(
                delay - previous_delays[thread] for thread, delay in delays.items() if thread in previous_delays
            )
            self._open_or_close_team(waited > CONTENDED * (now - previous))
        self._open_or_close_team(False)

    def _open_or_close_team(self, contended: bool) -> None:
        if contended and self.team is None:
            self.team = IdleTeam(beside=self._threads)
        elif not contended and self.team is not None:
            self.team.close()
            self.team = None


class IdleTeam:
    """A sleeping team of OpenMP threads, just large enough for libgomp to manage more threads than there are cores."""

    def __init__(self, *, beside: int) -> None:
        self._size = max(2, usable_cores() - beside + 2)
        self._closed = threading.Event()
        opened = threading.Event()
        self._owner = threading.Thread(target=self._open, args=(opened,), name="nmt-idle-team", daemon=True)
        self._owner.start()
        opened.wait()

    @staticmethod
    def is_possible() -> bool:
        """Whether PyTorch uses libgomp and the system reports how long threads wait."""
        return sys.platform == "linux" and bool(openmp_libraries()) and Path("/proc/self/schedstat").exists()

    def close(self) -> None:
        """End the team. libgomp stops counting its threads when the thread that opened it ends."""
        self._closed.set()
        self._owner.join()

    def _open(self, opened: threading.Event) -> None:
        parallel = ctypes.CDLL(openmp_libraries()[0]).GOMP_parallel
        parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        no_operation = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)  # free(NULL) does nothing
        parallel(no_operation, None, self._size, 0)
        opened.set()
        self._closed.wait()


def delays_of_threads() -> dict[str, float]:
    """Seconds that each thread of this process was ready to run but waited for a core, by thread id."""
    delays = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread has just ended
            delays[task.name] = int((task / "schedstat").read_bytes().split()[1]) / 1e9
    return delays
