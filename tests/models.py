"""What tests change in a model to make it say what they need."""

from torch import Tensor, nn

from nmt.model.recurrent import RecurrentModel


def output_bias(model: nn.Module) -> Tensor:
    """The bias of the output layer: one number per target token."""
    assert isinstance(model, RecurrentModel)
    return model.output.bias
