"""Models: batches -> loss and alignment, in plain PyTorch.

`build_model` makes the model of a recipe. A model of your own is a `TranslationModel`; one that reads something else than tokens is a
`RecurrentModel` whose `encode` hands the `EncoderOutput` of its source to `remember`.
"""

from nmt.model.build import build_model
from nmt.model.encoder import EncoderOutput
from nmt.model.interface import ModelOutput, SentencePairs, Step, TranslationModel
from nmt.model.recurrent import RecurrentMemory, RecurrentModel
from nmt.model.transformer import TransformerModel

__all__ = [
    "EncoderOutput",
    "ModelOutput",
    "RecurrentMemory",
    "RecurrentModel",
    "SentencePairs",
    "Step",
    "TransformerModel",
    "TranslationModel",
    "build_model",
]
