"""The CPU cores that this process may use."""

import os


def usable_cores() -> int:
    """The number of CPU cores this process may use; all cores where the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
