"""The CPU cores that this process may use."""

from __future__ import annotations

import logging
import os

from nmt.runtime.wording import counted

logger = logging.getLogger(__name__)


def usable_cores() -> int:
    """The number of CPU cores this process may use; all cores where the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def at_most_cores(threads: int) -> int:
    """Limit the number of threads to the usable cores, with a warning if that lowers it."""
    cores = usable_cores()
    if threads > cores:
        logger.warning("This process may use %s: %d threads become %d.", counted(cores, "core"), threads, cores)
    return min(threads, cores)
