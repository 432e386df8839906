"""Translate a large file in parts: one shard per call, or one per process of torchrun, merged in order."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmt.cli.streams import STANDARD
from nmt.errors import DataError, UsageError
from nmt.runtime.files import replacing
from nmt.training.launch import count_of_ranks, rank_of_process


@dataclass(frozen=True)
class Shard:
    """Part `number`, counted from 1, of `count` contiguous parts of a file."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `I/N`. Raises UsageError."""
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(f"--shard takes I/N, such as 1/4 for the first of four parts, but is '{text}'.")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def of_rank(cls) -> Shard:
        """The part of this process among those of torchrun."""
        return cls(rank_of_process() + 1, count_of_ranks())

    @property
    def is_whole(self) -> bool:
        """Whether this is the whole file."""
        return self.count == 1

    def lines(self, total: int) -> range:
        """The lines of this part, from 0."""
        return range((self.number - 1) * total // self.count, self.number * total // self.count)

    def place(self, output: Path) -> Path:
        """Where this part of an output is written until it is merged."""
        return output.with_name(f"{output.stem}.shard-{self.number}-of-{self.count}{output.suffix}")


def device_names(text: str) -> list[str]:
    """Read `0,1` as the names of these GPUs; other devices are named. Raises UsageError if one of them is not there."""
    from nmt.runtime.device import choose_device

    names = [f"cuda:{name}" if name.isdecimal() else name for name in map(str.strip, text.split(","))]
    for name in names:
        choose_device(name)
    return names


def device_of_process(name: str) -> str:
    """The device of this process among those of torchrun, which have a GPU each. Raises UsageError if there are too few."""
    if count_of_ranks() == 1:
        return name
    from nmt.runtime.device import choose_device
    from nmt.training.parallel import device_of_rank

    return str(device_of_rank(choose_device(name)))


@contextmanager
def merging(outputs: Sequence[Path]) -> Iterator[Callable[[Path], Path]]:
    """A context that tells where this process writes an output: there, or to a part of it if torchrun has started several.

    The parts are merged when all processes have left the context.

    Raises:
        UsageError: several processes write to stdout, where parts have no order.
        LostRank: another process has ended.
    """
    own = Shard.of_rank()
    if own.is_whole or not outputs:
        yield lambda output: output
        return
    if STANDARD in outputs:
        raise UsageError("Several processes write parts of one file: name it with -o.")
    import torch

    from nmt.training.parallel import open_ranks

    with open_ranks(torch.device("cpu")) as ranks:
        yield own.place
        ranks.wait()
        if ranks.is_first:
            shards = [Shard(number, own.count) for number in range(1, own.count + 1)]
            for output in outputs:
                _merge(output, [shard.place(output) for shard in shards])


def _merge(output: Path, parts: Sequence[Path]) -> None:
    """Write the parts of an output into one file, in order, and remove them. Compressed files may be concatenated too."""
    try:
        with replacing(output) as beside, beside.open("wb") as merged:
            for part in parts:
                with part.open("rb") as stream:
                    shutil.copyfileobj(stream, merged)
        for part in parts:
            part.unlink()
    except OSError as error:
        raise DataError(f"Cannot merge the parts of {output}: {error.strerror or error}.") from None
