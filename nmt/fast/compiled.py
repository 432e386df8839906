"""The steps of training compiled by PyTorch for a GPU, where starting the many small kernels of a step takes longer than running them.

`torch.compile` fuses what lies between the matrix products of a step. The sizes of batch and source are symbols, so that one compilation
serves batches of all shapes.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from nmt.model.decoder import AttendThenUpdate, UpdateThenAttend
from nmt.model.output import OutputLayer
from nmt.model.transformer import TransformerDecoderLayer, TransformerEncoderLayer

torch._dynamo.config.suppress_errors = True  # what PyTorch cannot compile here it runs as it is, with a warning
compiled = partial(torch.compile, dynamic=True)


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
