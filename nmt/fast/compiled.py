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


def compiled_twin(kind: type[nn.Module], method: str, **attributes: object) -> type[nn.Module]:
    """A subclass one of whose methods is compiled."""
    return type(f"Compiled{kind.__name__}", (kind,), {method: compiled(getattr(kind, method)), **attributes})


COMPILED_TWINS = {
    AttendThenUpdate: compiled_twin(AttendThenUpdate, "step"),
    UpdateThenAttend: compiled_twin(UpdateThenAttend, "step", forward=UpdateThenAttend.step_by_step),
    OutputLayer: compiled_twin(OutputLayer, "loss"),
    TransformerEncoderLayer: compiled_twin(TransformerEncoderLayer, "forward"),
    TransformerDecoderLayer: compiled_twin(TransformerDecoderLayer, "forward"),
}
"""A decoder takes its steps one by one even without input feeding; a layer of a Transformer takes all at once."""
