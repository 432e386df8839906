"""Save a word aligner to a file, and load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.alignment.statistical.aligner import HMMAligner
from nmt.alignment.statistical.hmm import LearnedHMM, SmoothTable
from nmt.alignment.statistical.word_forms import STEM, Words
from nmt.bundle.folder import load_tensors, save_tensors
from nmt.errors import DataError
from nmt.text.scripts import split_characters, split_spaces

_SPLITS = (split_spaces, split_characters)


def save_aligner(aligner: HMMAligner, path: Path) -> None:
    """Write a safetensors file. Raises DataError."""
    tensors = {
        "splits": torch.tensor([_SPLITS.index(split) for split in aligner.splits]),
        "lines": torch.tensor(aligner.lines),
        "stem": torch.tensor(STEM),
        "keys": torch.from_numpy(aligner.keys),
        "stem_keys": torch.from_numpy(aligner.stem_keys),
    }
    for side, words in (("source", aligner.source), ("target", aligner.target)):
        forms = np.frombuffer("\n".join(words.forms).encode(), dtype=np.uint8)
        tensors |= {
            f"{side}.forms": torch.from_numpy(forms.copy()),
            f"{side}.frequency": torch.from_numpy(words.frequency),
        }
    for direction, model in (("forward", aligner.forward), ("backward", aligner.backward)):
        table = model.table
        arrays = {"translation": table.translation, "empty": table.empty, "stems": table.stems, "whole": table.whole}
        arrays |= {"jumps": model.jumps}
        tensors |= {f"{direction}.{name}": torch.from_numpy(array).float() for name, array in arrays.items()}
    save_tensors(tensors, path)


def load_aligner(path: Path) -> HMMAligner:
    """Read a file written by `save_aligner`. Raises DataError if it is damaged or no aligner."""
    try:
        tensors = load_tensors(path)
    except DataError as error:
        raise DataError(f"{error} A word aligner is what `nmt links --save FILE` writes.") from None
    try:
        if tensors["stem"] != STEM:  # its stems are numbered otherwise
            raise KeyError("stem")
        source, target = (_words(tensors, side) for side in ("source", "target"))
        forward, backward = (_model(tensors, direction) for direction in ("forward", "backward"))
        first, second = (_SPLITS[number] for number in tensors["splits"].tolist())
        keys, stem_keys = tensors["keys"].numpy(), tensors["stem_keys"].numpy()
        return HMMAligner(source, target, (first, second), keys, stem_keys, forward, backward, int(tensors["lines"]))
    except KeyError:
        raise DataError(
            f"{path} is not a word aligner of this version: make one with `nmt links --save FILE`."
        ) from None


def _words(tensors: dict[str, Tensor], side: str) -> Words:
    forms = bytes(tensors[f"{side}.forms"].numpy()).decode().split("\n")
    return Words(dict(zip(forms, tensors[f"{side}.frequency"].tolist(), strict=True)))


def _model(tensors: dict[str, Tensor], direction: str) -> LearnedHMM:
    def array(name: str) -> npt.NDArray[Any]:
        return tensors[f"{direction}.{name}"].double().numpy()

    table = SmoothTable(array("translation"), array("empty"), array("stems"), array("whole"))
    return LearnedHMM(table, array("jumps"))
