"""What the process keeps for the next time: freed memory, and compiled kernels."""

from __future__ import annotations

import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
"""Of `mallopt` in glibc's malloc.h."""
_KERNELS = 16384
"""Kernels of matrix products that oneDNN keeps; 1,024 if it is not told."""


def keep_freed_memory() -> None:
    """Have glibc keep what is freed for the next request, instead of handing large blocks back to the kernel each time.

    Every block that comes back from the kernel is cleared page by page as it is touched. Training and search free and ask for
    the same large blocks all the time: it costs a fifth of the speed of training. Does nothing where there is no glibc.
    """
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    for option, value in ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_ARENA_MAX, 1)):
        mallopt(option, value)


def keep_kernels() -> None:
    """Have oneDNN keep the kernel of every size of product that it meets, unless the environment says otherwise.

    It compiles one for each size. Training on batches of real text meets several thousand sizes, over and over again.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_KERNELS))
