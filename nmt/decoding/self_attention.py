"""The self-attention of a Transformer's encoder: which words of a sentence each of its words reads."""

from __future__ import annotations

from itertools import islice

import torch

from nmt.alignment.weights import Alignment, between_words
from nmt.bundle.folder import Bundle, check_layer_and_head
from nmt.decoding.packed import language_tag
from nmt.errors import DataError, UsageError
from nmt.model.interface import device_of
from nmt.model.transformer import TransformerModel
from nmt.recipe import TransformerModelConfig
from nmt.text.subwords import EOS
from nmt.text.words import words_of


@torch.inference_mode()
def read_self_attention(
    bundle: Bundle,
    line: str,
    *,
    layer: int | None = None,
    head: int | None = None,
    to: str | None = None,
    subwords: bool = False,
) -> Alignment:
    """The weights between the words of a sentence: row i is what word i reads (Vaswani et al. 2017, 3.2.3).

    Args:
        bundle: a Transformer.
        line: the sentence.
        layer: a layer of the encoder, from 1. Default: the last one.
        head: a head of it, from 1. Default: the mean of its heads.
        to: the language to translate to, of a model with several, whose encoder reads it too.
        subwords: whether rows and columns are tokens rather than words.

    Raises:
        UsageError: the model is no Transformer, or has no such layer or head.
        DataError: the sentence is empty.
    """
    config, model = bundle.recipe.model, bundle.model.eval()
    if not isinstance(config, TransformerModelConfig) or not isinstance(model, TransformerModel):
        raise UsageError("Only the encoder of a Transformer attends to itself; a recurrent one reads word after word.")
    layer = config.encoder.layers if layer is None else layer
    check_layer_and_head(layer, head, config, "encoder")
    ids, tag = bundle.source.encode(bundle.normalizer(line)), language_tag(bundle, to)
    if not ids:
        raise DataError("The sentence to plot is empty.")
    source = torch.tensor([[*tag, *ids, EOS]], device=device_of(model))
    layers = model.read(source, torch.ones_like(source, dtype=torch.bool))
    [heads] = next(islice(layers, layer - 1, None))[1]
    weights = heads.mean(0) if head is None else heads[head - 1]
    between = weights[len(tag) :, len(tag) :].cpu().numpy()
    if subwords:
        tokens = tuple(bundle.source.tokens(ids))
        return Alignment(between[: len(ids), : len(ids)], tokens, tokens)
    words = words_of(bundle.source, ids, line)
    return between_words(between, words, words)
