"""Encoder and decoder of the Transformer (Vaswani et al. 2017), one position and one head after the other."""

import math
from typing import Any

import numpy as np

from tests.reference.algebra import Array, Weights, inner, layer_norm, product, under


def position_encoding(position: int, width: int) -> Array:
    """PE(p, 2i) = sin(p / 10000^(2i/E)), PE(p, 2i+1) = cos(p / 10000^(2i/E)) (3.5)."""
    result = np.zeros(width)
    for k in range(width):
        angle = position / 10000 ** ((k - k % 2) / width)
        result[k] = math.cos(angle) if k % 2 else math.sin(angle)
    return result


def linear(x: Array, weights: Weights) -> Array:
    return product(weights["weight"], x) + weights["bias"]


def feed_forward(x: Array, weights: Weights) -> Array:
    """max(0, x W_1 + b_1) W_2 + b_2 (eq. 2)."""
    hidden = [max(0.0, unit) for unit in linear(x, under(weights, "inner"))]
    return linear(np.array(hidden), under(weights, "outer"))


def multi_head(query: Array, source: list[Array], heads: int, weights: Weights) -> tuple[Array, Array]:
    """Concat(head_1, ..., head_h) W_O with head_k = softmax(q k^T / sqrt(d_k)) v (eq. 1, 3.2.2), and the weights [heads S]."""
    q = linear(query, under(weights, "query"))
    keys = [linear(x, under(weights, "key")) for x in source]
    values = [linear(x, under(weights, "value")) for x in source]
    width = len(q) // heads
    contexts, alphas = np.zeros(len(q)), np.zeros((heads, len(source)))
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = [math.exp(inner(q[part], key[part]) / math.sqrt(width)) for key in keys]
        for j, value in enumerate(values):
            alphas[head, j] = scores[j] / sum(scores)
            contexts[part] += alphas[head, j] * value[part]
    return linear(contexts, under(weights, "output")), alphas


def normed(x: Array, weights: Weights) -> Array:
    return layer_norm(x, weights["weight"], weights["bias"])


def encode(words: list[Array], settings: dict[str, Any], weights: Weights) -> list[Array]:
    """The annotations of one sentence (3.1)."""
    return read(words, settings, weights)[0]


def read(words: list[Array], settings: dict[str, Any], weights: Weights) -> tuple[list[Array], Array]:
    """The annotations, and the weights of the self-attention [layers S heads S]."""
    pre, alphas = settings["norm"] == "pre", []
    values = [word + position_encoding(p, len(word)) for p, word in enumerate(words)]
    for depth in range(settings["encoder"]["layers"]):
        layer = under(weights, f"encoder.{depth}")
        first, second = (under(layer, f"around_{name}.norm") for name in ("attention", "feed_forward"))
        attention = under(layer, "attention")
        inputs = [normed(x, first) for x in values] if pre else values
        outputs = [multi_head(y, inputs, settings["heads"], attention) for y in inputs]
        alphas.append([own for _, own in outputs])
        values = [x + context for x, (context, _) in zip(values, outputs, strict=True)]
        values = values if pre else [normed(x, first) for x in values]
        network = under(layer, "feed_forward")
        values = [x + feed_forward(normed(x, second) if pre else x, network) for x in values]
        values = values if pre else [normed(x, second) for x in values]
    annotations = [normed(x, under(weights, "encoder_norm")) for x in values] if pre else values
    return annotations, np.array(alphas)


def decode(
    words: list[Array], annotations: list[Array], settings: dict[str, Any], weights: Weights, only: dict[int, int]
) -> tuple[Array, Array]:
    """Readouts [T E] and the weights of the chosen layer [T S], the mean of its heads or one of them.

    At the steps of `only` every layer reads that annotation alone.
    """
    pre = settings["norm"] == "pre"
    layers = [under(weights, f"decoder.{depth}") for depth in range(settings["decoder"]["layers"])]
    past: list[list[Array]] = [[] for _ in layers]
    readouts, alignment = [], []
    for t, word in enumerate(words):
        x = word + position_encoding(t, len(word))
        shown = []
        source = annotations if t not in only else [annotations[only[t]]]
        for layer, before in zip(layers, past, strict=True):
            names = ("self_attention", "attention", "feed_forward")
            norms = [under(layer, f"around_{name}.norm") for name in names]
            before.append(normed(x, norms[0]) if pre else x)
            x = x + multi_head(before[-1], before, settings["heads"], under(layer, "self_attention"))[0]
            x = x if pre else normed(x, norms[0])
            read = normed(x, norms[1]) if pre else x
            context, alphas = multi_head(read, source, settings["heads"], under(layer, "attention"))
            x = x + context
            x = x if pre else normed(x, norms[1])
            x = x + feed_forward(normed(x, norms[2]) if pre else x, under(layer, "feed_forward"))
            x = x if pre else normed(x, norms[2])
            if t in only:
                alphas = np.array([[float(j == only[t]) for j in range(len(annotations))]] * len(alphas))
            shown.append(alphas)
        readouts.append(normed(x, under(weights, "decoder_norm")) if pre else x)
        heads = shown[settings["alignment_layer"] - 1]
        head = settings["alignment_head"]
        alignment.append(heads.sum(axis=0) / len(heads) if head is None else heads[head - 1])
    return np.stack(readouts), np.stack(alignment)


def seq2seq(
    source: list[int],
    target_in: list[int],
    settings: dict[str, Any],
    weights: Weights,
    only: dict[int, int] | None = None,
) -> tuple[Array, Array, Array]:
    """Readouts [T E], alignment [T S] and logits [T V] of one sentence for known target words."""
    factor = settings["embedding_scale"]
    source_words = [factor * weights["source_embedding.weight"][j] for j in source]
    target_words = [factor * weights["target_embedding.weight"][i] for i in target_in]
    annotations = encode(source_words, settings, weights)
    readouts, alignment = decode(target_words, annotations, settings, weights, only or {})
    return readouts, alignment, np.stack([linear(readout, under(weights, "output")) for readout in readouts])
