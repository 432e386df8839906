"""Describe a model in words, as `nmt info` and model cards do."""

from __future__ import annotations

from typing import assert_never

from nmt.bundle.folder import Bundle
from nmt.recipe import (
    AttentionConfig,
    DataConfig,
    DecoderConfig,
    EncoderConfig,
    FiltersConfig,
    GuidedAlignmentConfig,
    ModelConfig,
    PretrainedConfig,
    RecurrentModelConfig,
    TransformerModelConfig,
)
from nmt.runtime.wording import counted
from nmt.training.data_file import DataDescription


def describe_model(bundle: Bundle, data: DataDescription | None) -> dict[str, str]:
    """What a model is and what it was trained on."""
    recipe = bundle.recipe
    return {
        "name": recipe.name,
        "languages": f"{recipe.data.source} -> {recipe.data.target}",
        "trained on": _training_corpora(recipe.data),
        **_start(recipe.training.pretrained),
        **({} if data is None else _texts(data, recipe.data.filters)),
        **_guidance(recipe.training.guided_alignment),
        **describe_network(bundle),
    }


def describe_network(bundle: Bundle) -> dict[str, str]:
    """Subwords, layers, parameters and search of a model."""
    recipe, model = bundle.recipe, bundle.recipe.model
    scaled = "" if model.embedding_scale == 1 else f", times {model.embedding_scale:g}"
    subwords = f"{len(bundle.source):,}" + (" joint" if recipe.subwords.joint else f" + {len(bundle.target):,}")
    return {
        "subwords": f"{subwords} ({recipe.subwords.kind})",
        **_architecture(model),
        "embedding": f"{model.embedding}{scaled}, tied: {model.tie}",
        "parameters": f"{bundle.parameters:,}",
        "decoding": f"beam {recipe.decoding.beam_size}, length penalty {recipe.decoding.length_penalty:g}",
    }


def _start(config: PretrainedConfig | None) -> dict[str, str]:
    """The model that training started from, if any."""
    return {} if config is None else {"started from": f"{config.model} ({config.subwords} subwords)"}


def _training_corpora(data: DataConfig) -> str:
    """The locators, with tags and weights."""
    mixed = "" if data.temperature is None else f", temperature {data.temperature:g}"
    return " + ".join(map(str, data.corpora)) + mixed


def _texts(data: DataDescription, filters: FiltersConfig) -> dict[str, str]:
    """Size and hash of the texts, and what the filters removed."""
    return {
        "training text": f"{data.train.report(filters)}; hash {data.train.fingerprint}",
        "validation text": f"{counted(data.valid.lines, 'pair')}; hash {data.valid.fingerprint}",
    }


def _architecture(model: ModelConfig) -> dict[str, str]:
    """Encoder, attention and decoder in words."""
    match model:
        case RecurrentModelConfig():
            return _recurrent(model)
        case TransformerModelConfig():
            return {
                "encoder": f"Transformer, {counted(model.encoder.layers, 'layer')}, {model.norm}-norm",
                "attention": f"{counted(model.heads, 'head')}; alignment of {model.aligned_by}",
                "decoder": f"Transformer, {counted(model.decoder.layers, 'layer')}, {model.norm}-norm",
                "feed-forward": f"{model.feed_forward}",
            }
        case _:
            assert_never(model)


def _recurrent(model: RecurrentModelConfig) -> dict[str, str]:
    encoder, decoder = model.encoder, model.decoder
    order = ("conditional " if getattr(decoder.order, "conditional", False) else "") + decoder.order.kind
    feeding = " with input feeding" if getattr(decoder.order, "input_feeding", False) else ""
    return {
        "encoder": f"{_WAYS[encoder.direction]} {_stack(encoder)}",
        "attention": _attention(model.attention),
        "decoder": f"{_stack(decoder)}, {order}{feeding}",
        "readout": f"{decoder.readout.kind} of {decoder.readout.size}",
    }


_WAYS = {"both": "bidirectional", "forward": "left-to-right", "reversed": "right-to-left"}


def _stack(config: EncoderConfig | DecoderConfig) -> str:
    """Cell, layers and width of an encoder or decoder, and its options."""
    twice = "2 x " if getattr(config, "direction", None) == "both" else ""
    layers = counted(config.layers, "layer")
    residual = ", residual" * (config.residual and config.layers > 1)
    return f"{config.cell.upper()}, {layers} of {twice}{config.hidden}{residual}{', layer-normed' * config.layer_norm}"


def _attention(config: AttentionConfig) -> str:
    heads = f", {config.heads} heads" if config.heads > 1 else ""
    return f"{config.score.kind}, {config.window.kind}{heads}{', coverage' * getattr(config.score, 'coverage', False)}"


def _guidance(config: GuidedAlignmentConfig | None) -> dict[str, str]:
    """The links that the attention was trained on, if any."""
    if config is None:
        return {}
    decay = "" if config.decay == 1 else f", times {config.decay:g} every epoch"
    return {"guided by links": f"{config.links}, weight {config.weight:g}{decay}"}
