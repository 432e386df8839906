"""Whether time grows linearly with the size of the input, on a fast machine or a busy one."""

import gc
from collections.abc import Callable
from time import process_time


def assert_linear(run: Callable[[int], object], size: int) -> None:
    """Ten times the size takes ten times the processor time; one hundred times it would be quadratic.

    Each time is the least of three, and at least a millisecond, below which clocks are coarse.
    """
    tenth, whole = (min(_seconds(run, each) for _ in range(3)) for each in (size // 10, size))
    assert whole < 40 * max(tenth, 1e-3)


def _seconds(run: Callable[[int], object], size: int) -> float:
    """Without the garbage collector, whose time grows with all that the process holds."""
    gc.disable()
    try:
        started = process_time()
        run(size)
        return process_time() - started
    finally:
        gc.enable()
