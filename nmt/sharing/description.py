"""Describe a model in words, as `nmt info` and model cards do."""

from __future__ import annotations

from typing import assert_never

from nmt.bundle.folder import Bundle
from nmt.recipe import DecoderConfig, EncoderConfig, ModelConfig, RecurrentModelConfig, TransformerModelConfig
from nmt.runtime.wording import counted
from nmt.training.data_file import DataDescription


def describe_model(bundle: Bundle, data: DataDescription | None) -> dict[str, str]:
    """What a model is and what it was trained on."""
    recipe, texts, training = bundle.recipe, bundle.recipe.data, bundle.recipe.training
    mixed = "" if texts.temperature is None else f", temperature {texts.temperature:g}"
    rows = {
        "name": recipe.name,
        "languages": ", ".join(f"{source} -> {target}" for source, target in texts.directions),
        "trained on": " + ".join(map(str, texts.corpora)) + mixed,
    }
    if (start := training.pretrained) is not None:
        rows["started from"] = f"{start.model} ({start.subwords} subwords)"
    if data is not None:
        rows["training text"] = f"{data.train.report(texts.filters)}; hash {data.train.fingerprint}"
        rows["validation text"] = f"{counted(data.valid.lines, 'pair')}; hash {data.valid.fingerprint}"
    if (guide := training.guided_alignment) is not None:
        decay = "" if guide.decay == 1 else f", times {guide.decay:g} every epoch"
        rows["guided by links"] = f"{guide.links}, weight {guide.weight:g}{decay}"
    model = recipe.model
    scaled = "" if model.embedding_scale == 1 else f", times {model.embedding_scale:g}"
    subwords = f"{len(bundle.source):,}" + (" joint" if recipe.subwords.joint else f" + {len(bundle.target):,}")
    return {
        **rows,
        "subwords": f"{subwords} ({recipe.subwords.kind})",
        **_architecture(model),
        "embedding": f"{model.embedding}{scaled}, tied: {model.tie}",
        "parameters": f"{bundle.parameters:,}",
        "decoding": recipe.decoding.way,
    }


def _architecture(model: ModelConfig) -> dict[str, str]:
    """Encoder, attention and decoder in words."""
    match model:
        case RecurrentModelConfig():
            words = model.attention_in_words
            direction = {"both": "bidirectional", "forward": "left-to-right", "reversed": "right-to-left"}
            return {
                "encoder": f"{direction[model.encoder.direction]} {_stack(model.encoder)}",
                "attention": f"{words['score']}, {words['window']}",
                "decoder": f"{_stack(model.decoder)}, {words['order']}",
                "readout": f"{model.decoder.readout.kind} of {model.decoder.readout.size}",
            }
        case TransformerModelConfig():
            return {
                "encoder": f"Transformer, {counted(model.encoder.layers, 'layer')}, {model.norm}-norm",
                "attention": f"{counted(model.heads, 'head')}; alignment of {model.aligned_by}",
                "decoder": f"Transformer, {counted(model.decoder.layers, 'layer')}, {model.norm}-norm",
                "feed-forward": f"{model.feed_forward}",
            }
        case _:
            assert_never(model)


def _stack(config: EncoderConfig | DecoderConfig) -> str:
    """Cell, layers and width of an encoder or decoder, and its options."""
    twice = "2 x " if getattr(config, "direction", None) == "both" else ""
    description = f"{config.cell.upper()}, {counted(config.layers, 'layer')} of {twice}{config.hidden}"
    if config.residual and config.layers > 1:
        description += ", residual"
    if config.layer_norm:
        description += ", layer-normed"
    return description
