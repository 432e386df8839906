"""Several processes that train one model: ranks, and what they tell one another. Only this module knows of torch.distributed.

Every rank holds the whole model and computes the gradient of its share of each batch. `DistributedDataParallel` takes the mean of the
gradients while the last backward pass of an update still runs, so all ranks make the same update.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

import torch
from torch import Tensor, distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from nmt.errors import NmtError, UsageError
from nmt.recipe import AllReduce
from nmt.runtime.wording import counted

TIMEOUT = timedelta(hours=2)
"""How long a rank waits for the others, for example while the first one encodes a corpus. A rank that has ended is noticed at once."""
PAUSE = 0.1
"""Seconds in which gloo's threads drop the tensors of the last operation. If Python ended meanwhile, they would abort the process."""
GRACE = 1.0
"""Seconds in which the first rank can say what has failed. torchrun ends it soon after another has ended."""
T = TypeVar("T")


def rank_of_process() -> int:
    """The number of this rank, from 0; 0 for a process that trains alone."""
    return int(os.environ.get("RANK", "0"))


def count_of_ranks() -> int:
    """The number of ranks that torchrun has started; 1 for a process that trains alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def ranks_on_this_machine() -> int:
    """The number of ranks that share this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", count_of_ranks()))


def goes_on_by_itself(folder: Path) -> bool:
    """Whether torchrun may have restarted this rank (`--max-restarts`), and there is a run to go on from.

    Raises:
        UsageError: torchrun shares one store over all restarts, from which ranks would read addresses of ranks that have ended
            (pytorch/pytorch#135712).
    """
    if int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) == 0:
        return False
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        raise UsageError("Set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 before torchrun --max-restarts: else restarts hang.")
    return folder.is_dir()


class LostRank(NmtError):  # noqa: N818 -- not an error of this process
    """Another rank has ended."""


@dataclass(frozen=True)
class Ranks:
    """This process among those that train one model. All of them must call every method but `share`, in the same order."""

    rank: int = 0
    """Number of this process, from 0."""
    count: int = 1
    """Number of processes."""

    @property
    def is_first(self) -> bool:
        """Whether this process writes the run folder and the log."""
        return self.rank == 0

    @property
    def rank_rows(self) -> slice:
        """The rows of a batch that this rank computes: every `count`-th one, so that the shares of all ranks are padded alike."""
        return slice(self.rank, None, self.count)

    def share(self, sequence: Sequence[T]) -> Sequence[T]:
        """The entries of a sequence that this rank computes."""
        return sequence[self.rank_rows]

    def sum(self, values: Iterable[float]) -> list[float]:
        """The sum of each value over all ranks."""
        if self.count == 1:
            return list(values)
        total = torch.tensor(list(values), dtype=torch.float64)
        with noticing_lost_ranks():
            distributed.all_reduce(total)
        return total.tolist()

    def sum_losses(self, losses: Tensor) -> None:
        """Replace the losses by their sums over all ranks."""
        if self.count > 1:
            with noticing_lost_ranks():
                distributed.all_reduce(losses)

    def must_stop(self, *, received: bool) -> bool:
        """Whether a rank has received a signal, so that all of them stop after the same update."""
        return self.sum([received])[0] > 0

    def gather(self, value: T) -> list[T]:
        """The values of all ranks, in their order. They are pickled."""
        if self.count == 1:
            return [value]
        values: list[T] = [value] * self.count
        with noticing_lost_ranks():
            distributed.all_gather_object(values, value)
        return values

    def from_first(self, compute: Callable[[], T]) -> T:
        """What the first rank computes, and only it. The value is pickled."""
        if self.count == 1:
            return compute()
        values = [compute() if self.is_first else None]
        with noticing_lost_ranks():
            distributed.broadcast_object_list(values)
        return cast(T, values[0])

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """A context that the first rank runs first, so that the others find what it has put into the cache."""
        if not self.is_first:
            self.sum([0.0])  # waits until the first rank has come to the end of the context
        yield
        if self.is_first:
            self.sum([0.0])

    def seed(self, seed: int, update: int) -> None:
        """Seed the generators for an update, so that ranks draw different dropout masks and a state needs none of the generators.

        A process alone goes on with its generators, which its state keeps.
        """
        if self.count > 1:
            torch.manual_seed((seed * 1_000_003 + update) * 1_009 + self.rank)


ALONE = Ranks()
"""A process that trains by itself."""


@contextmanager
def open_ranks(device: torch.device) -> Iterator[Ranks]:
    """A context in which the ranks that torchrun has started are connected.

    Raises:
        LostRank: the others cannot be reached.
    """
    ranks = Ranks(rank_of_process(), count_of_ranks())
    if ranks.count == 1:
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)  # for what takes no device: memory that is pinned, and NCCL
    with noticing_lost_ranks():
        distributed.init_process_group(backend, rank=ranks.rank, world_size=ranks.count, timeout=TIMEOUT)
    try:
        yield ranks
    except BaseException:
        time.sleep(0 if ranks.is_first else GRACE)
        raise
    finally:
        distributed.destroy_process_group()
        time.sleep(PAUSE)


def parallel(model: nn.Module, all_reduce: AllReduce) -> nn.Module:
    """The model, whose backward pass gives the mean of the gradients of all ranks. They are sent in the type `all_reduce`."""
    # Some settings have parameters that no loss reaches. Looking for them also keeps the buckets, and so the rounding, as they are.
    parallel_model = DistributedDataParallel(model, find_unused_parameters=True, gradient_as_bucket_view=True)
    if all_reduce == "bf16":
        hook = lambda *bucket: bf16_compress_hook(*bucket)  # noqa: E731, PLW0108 -- DDP refuses that name on a CPU
        parallel_model.register_comm_hook(None, hook)
    return parallel_model


def accumulating(model: nn.Module) -> AbstractContextManager[None]:
    """A context for the forward and backward pass of a batch that another follows in the same update: ranks send nothing yet."""
    return model.no_sync() if isinstance(model, DistributedDataParallel) else nullcontext()


def device_of_rank(device: torch.device) -> torch.device:
    """The device of this rank. Of several that compute on GPUs, each has the GPU of its number on this machine.

    Raises:
        UsageError: several ranks would share a GPU.
    """
    if device.type != "cuda" or count_of_ranks() == 1:
        return device
    if device.index is not None:
        raise UsageError(f"Several processes cannot share {device}: with --device cuda each takes a GPU of its own.")
    number, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= gpus:
        raise UsageError(
            f"Each process takes a GPU of its own, but this machine has {counted(gpus, 'GPU')}: start as many."
        )
    return torch.device("cuda", number)


@contextmanager
def noticing_lost_ranks() -> Iterator[None]:
    """A context that turns an error of a collective operation into LostRank."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or count_of_ranks() == 1:
            raise
        raise LostRank("Another process of this training has ended.") from error
