"""Average the best checkpoints of a run into a model folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nmt.bundle.folder import WEIGHTS, Bundle, save_tensors
from nmt.errors import DataError, UsageError
from nmt.runtime.files import sync
from nmt.training.best import best_checkpoint_files, mean_of_files
from nmt.training.data_file import load_data_description


def average_run(run: Path, output: Path, *, best: int | None = None) -> int:
    """Write a model folder whose weights are the mean of a run's best checkpoints, atomically.

    Args:
        run: a run trained with `training.validation.keep_best` above 1.
        output: the new model folder.
        best: number of checkpoints to average; all if None.

    Returns:
        The number of checkpoints averaged.

    Raises:
        DataError: the run has no such checkpoints, or the folder cannot be written.
        UsageError: `output` exists, or `best` is out of range.
    """
    if output.exists():
        raise UsageError(f"{output} exists already: choose another folder.")
    bundle = Bundle.load(run, weights=False)
    files = best_checkpoint_files(run)
    count = len(files) if best is None else best
    if not 1 <= count <= len(files):
        raise UsageError(f"--best must be between 1 and {len(files)}, the checkpoints that {run} kept, but is {count}.")
    mean = mean_of_files(files[:count])
    data = load_data_description(run)
    unfinished = output.with_name(f".{output.name}.{os.getpid()}.new")
    try:
        bundle.save_description(unfinished)
        if data is not None:
            data.save(unfinished)
        save_tensors(mean, unfinished / WEIGHTS)
        unfinished.rename(output)
        sync(output.parent)
    except OSError as error:
        raise DataError(f"Cannot write {output}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return count
