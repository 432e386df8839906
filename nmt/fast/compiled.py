"""The steps of training compiled by PyTorch for a GPU, where starting the many small kernels of a step takes longer than running them.

`torch.compile` fuses what lies between the matrix products of a step. The sizes of batch and source are symbols, so that one compilation
serves batches of all shapes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import nn
from torch._dynamo.exc import TorchDynamoException

from nmt.model.decoder import AttendThenUpdate, UpdateThenAttend
from nmt.model.output import OutputLayer
from nmt.model.transformer import TransformerDecoderLayer, TransformerEncoderLayer

_log = logging.getLogger(__name__)
ArgumentsT = ParamSpec("ArgumentsT")
ResultT = TypeVar("ResultT")


def compiled(function: Callable[ArgumentsT, ResultT]) -> Callable[ArgumentsT, ResultT]:
    """The function, compiled when it is first called. If that fails, a warning says why, and the function itself is called from then on."""
    chosen = torch.compile(function, dynamic=True)

    @wraps(function)
    def call(*args: ArgumentsT.args, **kwargs: ArgumentsT.kwargs) -> ResultT:
        nonlocal chosen
        try:
            return chosen(*args, **kwargs)
        except TorchDynamoException as reason:
            first_line = str(reason).strip().partition("\n")[0]
            _log.warning("PyTorch cannot compile %s here, so it is not compiled: %s", function.__qualname__, first_line)
            chosen = function
            return function(*args, **kwargs)

    return call


class CompiledAttendThenUpdate(AttendThenUpdate):
    """Bahdanau's order."""

    step = compiled(AttendThenUpdate.step)


class CompiledUpdateThenAttend(UpdateThenAttend):
    """Luong's order, step by step even without input feeding."""

    step = compiled(UpdateThenAttend.step)
    forward = UpdateThenAttend.step_by_step


class CompiledOutputLayer(OutputLayer):
    """The loss."""

    loss = compiled(OutputLayer.loss)


class CompiledTransformerEncoderLayer(TransformerEncoderLayer):
    """A layer of a Transformer."""

    forward = compiled(TransformerEncoderLayer.forward)


class CompiledTransformerDecoderLayer(TransformerDecoderLayer):
    """A layer of a Transformer, all steps at once."""

    forward = compiled(TransformerDecoderLayer.forward)


COMPILED_TWINS: dict[type[nn.Module], type[nn.Module]] = {
    AttendThenUpdate: CompiledAttendThenUpdate,
    UpdateThenAttend: CompiledUpdateThenAttend,
    OutputLayer: CompiledOutputLayer,
    TransformerEncoderLayer: CompiledTransformerEncoderLayer,
    TransformerDecoderLayer: CompiledTransformerDecoderLayer,
}
