"""Readouts and the two orders of a decoder step, unrolled over a whole target of one sentence."""

import numpy as np

from tests.reference.algebra import Array, Weights, product, under
from tests.reference.attention import attend
from tests.reference.recurrent import bridge, encoder, stacked_step
from tests.reference.settings import Tree


def maxout_readout(s: Array, word: Array, context: Array, weights: Weights) -> Array:
    """t_i,k = max(t~_i,2k-1, t~_i,2k), t~_i = U_o s_i + V_o E y_{i-1} + C_o c_i (Bahdanau et al. 2015, A.2.2)."""
    deep = deep_output(s, word, context, weights)
    return np.array([max(deep[2 * k], deep[2 * k + 1]) for k in range(len(deep) // 2)])


def tanh_readout(s: Array, word: Array, context: Array, weights: Weights) -> Array:
    """tanh(U_o s_i + V_o E y_{i-1} + C_o c_i) (deep output of Pascanu et al. 2014, eq. 13)."""
    readout: Array = np.tanh(deep_output(s, word, context, weights))
    return readout


def deep_output(s: Array, word: Array, context: Array, weights: Weights) -> Array:
    """U_o s_i + V_o E y_{i-1} + C_o c_i, with a bias (Bahdanau et al. 2015, A.2.2)."""
    from_state = product(weights["state.weight"], s) + weights["state.bias"]
    return from_state + product(weights["word.weight"], word) + product(weights["context.weight"], context)


def attentional_readout(s: Array, word: Array, context: Array, weights: Weights) -> Array:
    """h~_t = tanh(W_c [c_t; h_t]) (Luong et al. 2015, eq. 5)."""
    readout: Array = np.tanh(product(weights["combine.weight"], np.concatenate([context, s])))
    return readout


def state_readout(s: Array, word: Array, context: Array, weights: Weights) -> Array:
    """h_t (Sutskever et al. 2014; base system of Luong et al. 2015)."""
    return s


def lexical(tokens: Array, weights: Weights) -> Array:
    """W_l tanh(l_i) for the attended source tokens l_i = sum_j alpha_ij x_j (after Nguyen and Chiang 2018)."""
    return product(weights["lexical.weight"], np.tanh(tokens))


def readout_of(settings: Tree, s: Array, word: Array, context: Array, weights: Weights) -> Array:
    """The readout, to which attended tokens, the end of c_i, are added in a lexical model."""
    kind = READOUTS[settings["decoder"]["readout"]["kind"]]
    if not settings["lexical"]:
        return kind(s, word, context, weights)
    return kind(s, word, context, under(weights, "inner")) + lexical(context[-settings["embedding"] :], weights)


READOUTS = {"maxout": maxout_readout, "tanh": tanh_readout, "attentional": attentional_readout, "state": state_readout}

Unrolled = tuple[Array, Array]
"""Readouts [T R] and alignment [T S]."""


def attend_then_update(
    words: list[Array],
    states: list[Array],
    memories: list[Array],
    annotations: Array,
    summary: Array,
    settings: Tree,
    weights: Weights,
    only: dict[int, int],
) -> Unrolled:
    """c_i = attend(s_{i-1}), s_i = f(s_{i-1}, E y_{i-1}, c_i), t_i = g(s_i, E y_{i-1}, c_i) (Bahdanau et al. 2015, 3.1, A.2.2)."""
    decoder, attention, recurrence = settings["decoder"], under(weights, "attention"), under(weights, "recurrence")
    w = np.concatenate([recurrence["inputs.word.weight"], recurrence["inputs.context.weight"]], axis=1)
    coverage = np.zeros(len(annotations))
    readouts, alignment = [], []
    for i, word in enumerate(words):
        context, alpha = attend(
            states[-1], i, annotations, summary, coverage, settings["attention"], attention, only.get(i)
        )
        coverage = coverage + alpha
        x = np.concatenate([word, context])
        top, states, memories = stacked_step(
            x, w, recurrence["inputs.word.bias"], states, memories, decoder, recurrence
        )
        readouts.append(readout_of(settings, top, word, context, under(weights, "readout")))
        alignment.append(alpha)
    return np.stack(readouts), np.stack(alignment)


def conditional_attend_then_update(
    words: list[Array],
    states: list[Array],
    memories: list[Array],
    annotations: Array,
    summary: Array,
    settings: Tree,
    weights: Weights,
    only: dict[int, int],
) -> Unrolled:
    """s'_i = f(s_{i-1}, E y_{i-1}), c_i = attend(s'_i), s_i = g(s'_i, c_i): f and g are two stacks (Sennrich et al. 2017)."""
    decoder, attention = settings["decoder"], under(weights, "attention")
    first, second = under(weights, "query_recurrence"), under(weights, "recurrence")
    w_f, b_f, w_g = first["inputs.word.weight"], first["inputs.word.bias"], second["inputs.context.weight"]
    coverage = np.zeros(len(annotations))
    readouts, alignment = [], []
    for i, word in enumerate(words):
        top, states, memories = stacked_step(word, w_f, b_f, states, memories, decoder, first)
        context, alpha = attend(top, i, annotations, summary, coverage, settings["attention"], attention, only.get(i))
        coverage = coverage + alpha
        top, states, memories = stacked_step(context, w_g, np.zeros(len(w_g)), states, memories, decoder, second)
        readouts.append(readout_of(settings, top, word, context, under(weights, "readout")))
        alignment.append(alpha)
    return np.stack(readouts), np.stack(alignment)


def update_then_attend(
    words: list[Array],
    states: list[Array],
    memories: list[Array],
    annotations: Array,
    summary: Array,
    settings: Tree,
    weights: Weights,
    only: dict[int, int],
) -> Unrolled:
    """h_t = f(h_{t-1}, [E y_{t-1}; h~_{t-1}]), c_t = attend(h_t), h~_t (Luong et al. 2015, 3; input feeding: 3.3, figure 4).

    Unless `feed_scale` is set, the fed h~ is multiplied by `embedding_scale` and divided by the square root of its size.
    """
    decoder, attention, recurrence = settings["decoder"], under(weights, "attention"), under(weights, "recurrence")
    feeding = decoder["order"]["input_feeding"]
    w = recurrence["inputs.word.weight"]
    if feeding:
        w = np.concatenate([w, recurrence["inputs.feed.weight"]], axis=1)
    coverage = np.zeros(len(annotations))
    h_tilde = np.zeros(decoder["readout"]["size"])
    feed_scale = decoder["order"].get("feed_scale") or settings["embedding_scale"] / np.sqrt(len(h_tilde))
    readouts, alignment = [], []
    for t, word in enumerate(words):
        x = np.concatenate([word, feed_scale * h_tilde]) if feeding else word
        top, states, memories = stacked_step(
            x, w, recurrence["inputs.word.bias"], states, memories, decoder, recurrence
        )
        context, alpha = attend(top, t, annotations, summary, coverage, settings["attention"], attention, only.get(t))
        coverage = coverage + alpha
        h_tilde = readout_of(settings, top, word, context, under(weights, "readout"))
        readouts.append(h_tilde)
        alignment.append(alpha)
    return np.stack(readouts), np.stack(alignment)


def seq2seq(
    source: list[int], target_in: list[int], settings: Tree, weights: Weights, only: dict[int, int] | None = None
) -> tuple[Array, Array, Array]:
    """Readouts [T R], alignment [T S] and logits [T V] of one sentence with teacher forcing.

    `only` maps the steps that attend to a single source position to that position.
    """
    source_words = [settings["embedding_scale"] * weights["source_embedding.weight"][j] for j in source]
    target_words = [settings["embedding_scale"] * weights["target_embedding.weight"][i] for i in target_in]
    annotations, finals, cells = encoder(source_words, settings["encoder"], under(weights, "encoder"))
    if settings["lexical"]:
        annotations = np.concatenate([annotations, source_words], axis=1)
    s_0, c_0 = bridge(annotations, finals, cells, settings, under(weights, "bridge"))
    order = settings["decoder"]["order"]
    if order["kind"] == "update-then-attend":
        unroll = update_then_attend
    else:
        unroll = conditional_attend_then_update if order["conditional"] else attend_then_update
    readouts, alignment = unroll(
        target_words, s_0, c_0, annotations, finals[-1], settings, under(weights, "decoder"), only or {}
    )
    return readouts, alignment, np.stack([output_layer(readout, under(weights, "output")) for readout in readouts])


def output_layer(readout: Array, weights: Weights) -> Array:
    """W_o t_i + b, whose softmax is p(y_i) (Bahdanau et al. 2015, A.2.2; Luong et al. 2015, eq. 6)."""
    return product(weights["weight"], readout) + weights["bias"]
