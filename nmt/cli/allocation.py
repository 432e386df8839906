"""Settings of glibc and oneDNN that keep freed memory and compiled kernels for reuse."""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
"""Options of `mallopt` in glibc's malloc.h."""
_KERNELS = 4096
"""How many kernels of matrix products oneDNN caches; its default is 1,024, and real text has several thousand sizes."""


def keep_freed_memory() -> None:
    """Make glibc keep freed memory instead of returning large blocks to the kernel.

    Training and search allocate the same large blocks again and again, and the kernel clears each of them anew, which costs a
    fifth of the speed of training. Does nothing without glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for option, value in ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_ARENA_MAX, 1)):
            mallopt(option, value)


def keep_kernels() -> None:
    """Enlarge oneDNN's cache of kernels, unless the environment sets its size."""
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_KERNELS))
