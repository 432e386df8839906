"""`accelerate(model)` for training: the table of plain types and their fast twins."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from nmt.fast.attention import (
    DeferredAdditiveScore,
    DeferredAttendThenUpdate,
    DeferredAttention,
    DeferredConcatScore,
    DeferredDotScore,
    DeferredGeneralScore,
    DeferredUpdateThenAttend,
)
from nmt.fast.deferred import DeferredLinear
from nmt.fast.dropout import FastDropout
from nmt.fast.gru import FastGru, FastGruCell, FastRecurrence
from nmt.fast.kernels.build import prepare_kernels
from nmt.fast.loss import ChunkedOutputLayer
from nmt.fast.switch import is_on
from nmt.fast.twins import twin
from nmt.model.attention import Attention
from nmt.model.cells import GruCell
from nmt.model.decoder import AttendThenUpdate, Recurrence, UpdateThenAttend
from nmt.model.dropout import Dropout
from nmt.model.interface import device_of
from nmt.model.output import OutputLayer
from nmt.model.scores import AdditiveScore, ConcatScore, DotScore, GeneralScore

ModelT = TypeVar("ModelT", bound=nn.Module)

TRAINING_TWINS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: DeferredLinear,
    nn.GRU: FastGru,
    GruCell: FastGruCell,
    Recurrence: FastRecurrence,
    AdditiveScore: DeferredAdditiveScore,
    ConcatScore: DeferredConcatScore,
    DotScore: DeferredDotScore,
    GeneralScore: DeferredGeneralScore,
    Attention: DeferredAttention,
    AttendThenUpdate: DeferredAttendThenUpdate,
    UpdateThenAttend: DeferredUpdateThenAttend,
    Dropout: FastDropout,
    OutputLayer: ChunkedOutputLayer,
}


def accelerate(model: ModelT) -> ModelT:
    """A twin of a model with the same parameters that computes the same gradients faster.

    Modules without a fast twin stay as they are. Compiles the kernels on first use. With `NMT_FAST=0` returns the model itself, and
    on a GPU too: the twins are made for processors.
    """
    if not is_on() or device_of(model).type != "cpu":
        return model
    prepare_kernels()
    return twin(model, TRAINING_TWINS)
