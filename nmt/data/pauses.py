"""Lines of a stream as they arrive, and where it pauses: a program may write a line and wait for the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from select import select
from typing import BinaryIO, Final, Literal, TypeVar

ItemT = TypeVar("ItemT")


class _Mark(Enum):
    PAUSE = "pause"


Pause = Literal[_Mark.PAUSE]
PAUSE: Final = _Mark.PAUSE
"""Stands between items where no more have come yet: those before it are not to wait for those after it."""

_GRACE = 0.05
"""Seconds without input that make a pause: long enough for a program that writes without one to be scheduled."""
_BLOCK = 2**20


def without_pauses(items: Iterable[ItemT | Pause]) -> Iterator[ItemT]:
    """The items alone."""
    return (item for item in items if item is not PAUSE)


def arriving_blocks(stream: BinaryIO) -> Iterator[bytes | Pause]:
    """What can be read of a stream without waiting, block by block, and PAUSE before each wait. A file never pauses."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while True:
        if not _has_input(stream):
            yield PAUSE
        block = read(_BLOCK)
        if not block:
            return
        yield block


def arriving_lines(stream: BinaryIO) -> Iterator[bytes | Pause]:
    """The lines of a stream without their line feeds, and PAUSE before each wait for more."""
    rest: list[bytes] = []
    for block in arriving_blocks(stream):
        if block is PAUSE:
            yield block
            continue
        first, *others = block.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest)
            *whole, last = others
            yield from whole
            rest = [last]
    if last := b"".join(rest):
        yield last


def _has_input(stream: BinaryIO) -> bool:
    """Whether a read would not wait; True for streams of which the system does not tell, such as those in memory."""
    try:
        return bool(select([stream], [], [], _GRACE)[0])
    except (OSError, ValueError):
        return True
