"""Models: batches -> loss and alignment, in plain PyTorch.

`build_model` makes the model of a recipe. A model of your own is a `TranslationModel`; one that reads something else than tokens is a
`RecurrentModel` whose `encode` hands the `EncoderOutput` of its source to `build_memory`. For models of any other kind there are the
parts: embedding, encoder, scores and attention, which are configured by the sections of `nmt.recipe`.
"""

from nmt.model.attention import (
    Attention,
    AttentionMemory,
    AttentionOutput,
    MultiHeadAttention,
    build_attention,
)
from nmt.model.build import build_model
from nmt.model.embedding import TokenEmbedding
from nmt.model.encoder import Encoder, EncoderOutput
from nmt.model.interface import ModelOutput, SentencePairs, Step, TranslationModel
from nmt.model.normalizers import masked_entmax15, masked_softmax, masked_sparsemax
from nmt.model.recurrent import RecurrentMemory, RecurrentModel
from nmt.model.scores import AdditiveScore, ConcatScore, DotScore, GeneralScore, LocationScore, Score, build_score
from nmt.model.transformer import TransformerModel

__all__ = [
    "AdditiveScore",
    "Attention",
    "AttentionMemory",
    "AttentionOutput",
    "ConcatScore",
    "DotScore",
    "Encoder",
    "EncoderOutput",
    "GeneralScore",
    "LocationScore",
    "ModelOutput",
    "MultiHeadAttention",
    "RecurrentMemory",
    "RecurrentModel",
    "Score",
    "SentencePairs",
    "Step",
    "TokenEmbedding",
    "TransformerModel",
    "TranslationModel",
    "build_attention",
    "build_model",
    "build_score",
    "masked_entmax15",
    "masked_softmax",
    "masked_sparsemax",
]
