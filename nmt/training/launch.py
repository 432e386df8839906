"""Start the ranks of one command on this machine with torchrun's engine, and read what torchrun tells a rank."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence

from nmt.errors import DataError
from nmt.training.stopping import ending_signals

LAUNCHED = "NMT_LAUNCHED"
"""Environment variable: set for ranks that `launch` has started, and not torchrun."""


def rank_of_process() -> int:
    """The number of this rank, from 0; 0 for a process that trains alone."""
    return int(os.environ.get("RANK", "0"))


def count_of_ranks() -> int:
    """The number of ranks that torchrun or `launch` has started; 1 for a process that trains alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def launch(arguments: Sequence[str], count: int) -> int:
    """Run `nmt` with these arguments in so many processes that work together, and return the exit status.

    Signals are passed on to all of them. If one fails, the others end too.

    Raises:
        DataError: the first process, which reports errors, was killed.
    """
    os.environ[LAUNCHED] = "1"
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # a rank that is lost is told in a sentence
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    node = LaunchConfig(1, 1, count, max_restarts=0, run_id="nmt", rdzv_backend="c10d", rdzv_endpoint="localhost:0")
    node.local_addr = "localhost"
    signals = [signal.Signals(number).name for number in ending_signals()]
    node.signals_to_handle = ",".join(signals)  # without SIGHUP under nohup
    logging.disable()  # ranks report their errors themselves
    try:
        elastic_launch(node, sys.executable)("-m", "nmt", *arguments)
    except SignalException as ending:
        return 128 + int(ending.sigval)
    except ChildFailedError as failed:
        number = -failed.failures[0].exitcode if 0 in failed.failures else 0
        if number > 0 and number != signal.SIGTERM:  # which the others get when one has failed
            advice = (
                " If a state was saved, the same command with --resume goes on." if "train" in arguments[:1] else ""
            )
            raise DataError(
                f"The first of {count} processes was ended by {signal.Signals(number).name}.{advice}"
            ) from None
        return max(failed.get_first_failure()[1].exitcode, 1)
    finally:
        logging.disable(logging.NOTSET)
    return 0
