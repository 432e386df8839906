"""`accelerate(model)` for training: the table of plain types and their fast twins."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import Literal, TypeVar

import torch
from torch import nn

from nmt.fast.attention import DeferredAttendThenUpdate, DeferredAttention, DeferredUpdateThenAttend
from nmt.fast.deferred import DeferredLinear
from nmt.fast.dropout import FastDropout
from nmt.fast.gru import FastGru, FastGruCell, FastRecurrence
from nmt.fast.kernels.build import prepare_kernels
from nmt.fast.loss import ChunkedOutputLayer
from nmt.fast.twins import is_on, twin
from nmt.model.attention import Attention
from nmt.model.cells import GruCell
from nmt.model.decoder import AttendThenUpdate, Recurrence, UpdateThenAttend
from nmt.model.dropout import Dropout
from nmt.model.interface import device_of
from nmt.model.output import OutputLayer

ModelT = TypeVar("ModelT", bound=nn.Module)

TRAINING_TWINS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: DeferredLinear,
    nn.GRU: FastGru,
    GruCell: FastGruCell,
    Recurrence: FastRecurrence,
    Attention: DeferredAttention,
    AttendThenUpdate: DeferredAttendThenUpdate,
    UpdateThenAttend: DeferredUpdateThenAttend,
    Dropout: FastDropout,
    OutputLayer: ChunkedOutputLayer,
}


def accelerate(model: ModelT, *, compiles: bool = False) -> ModelT:
    """A twin of a model with the same parameters that computes the same gradients faster.

    Modules without a fast twin stay as they are. With `NMT_FAST=0` returns the model itself.

    Args:
        model: any model.
        compiles: let PyTorch compile the steps, at the first batches. Otherwise, the twins of a model on a CPU use the toolkit's own
            kernels, which are compiled on first use, and a model on a GPU stays as it is.
    """
    if not is_on():
        return model
    if compiles:
        from nmt.fast.compiled import COMPILED_TWINS

        return twin(model, COMPILED_TWINS)
    if device_of(model).type != "cpu":
        return model
    prepare_kernels()
    return twin(model, TRAINING_TWINS)


def is_compiled(setting: Literal["auto"] | bool, device: torch.device) -> bool:
    """Whether PyTorch compiles the steps of training: `auto` on a GPU from Volta on, with Triton and the C compiler that it needs."""
    if setting != "auto" or not is_on():
        return setting is True and is_on()
    if device.type != "cuda" or find_spec("triton") is None or not (shutil.which("cc") or os.environ.get("CC")):
        return False
    return torch.cuda.get_device_capability(device) >= (7, 0)
