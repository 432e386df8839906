"""Recurrent cells with PyTorch's order of gates, the encoder, the stacked decoder, and the bridge between them."""

import math

import numpy as np

from tests.reference.algebra import Array, Weights, layer_norm, logistic, product, under
from tests.reference.settings import Tree


def gru_cell(x: Array, s: Array, w: Array, b_w: Array, u: Array, b_u: Array, norms: Weights | None = None) -> Array:
    """s' = (1 - z) n + z s; the rows of W and U are those of r, z and n, in this order (Cho et al. 2014, eq. 5 to 8).

    As in PyTorch and cuDNN the reset gate acts on U s + b and z keeps the old state. Normalized, LN(W x + b) and LN(U s + b)
    stand for W x + b and U s + b, each over all gates together (Ba et al. 2016, eq. 20).
    """
    size = len(s)
    a = normalized(product(w, x) + b_w, norms, "norm_input")
    m = normalized(product(u, s) + b_u, norms, "norm_recurrent")
    result = np.zeros(size)
    for k in range(size):
        r = logistic(a[k] + m[k])
        z = logistic(a[size + k] + m[size + k])
        n = math.tanh(a[2 * size + k] + r * m[2 * size + k])
        result[k] = (1 - z) * n + z * s[k]
    return result


def gru_reset_before_cell(
    x: Array, s: Array, w: Array, b_w: Array, u: Array, b_u: Array, norms: Weights | None = None
) -> Array:
    """s' = (1 - z) n + z s, where n reads U (r s): the reset gate acts before U (Cho et al. 2014, eq. 5 to 8; Bahdanau et al. 2015, A.1.1).

    Rows and z as in `gru_cell`. Normalized, the U s + b of r and z are normalized together, and U (r s) + b by itself.
    """
    size = len(s)
    a = normalized(product(w, x) + b_w, norms, "norm_input")
    m = normalized(product(u[: 2 * size], s) + b_u[: 2 * size], norms, "norm_recurrent")
    r = np.array([logistic(a[k] + m[k]) for k in range(size)])
    z = np.array([logistic(a[size + k] + m[size + k]) for k in range(size)])
    read = normalized(product(u[2 * size :], r * s) + b_u[2 * size :], norms, "norm_new")
    n = np.array([math.tanh(a[2 * size + k] + read[k]) for k in range(size)])
    result: Array = (1 - z) * n + z * s
    return result


def recurrent_weights(cell: Weights) -> tuple[Array, Array]:
    """U and its bias with the rows of all gates; nmt keeps those of n by themselves where the reset gate acts before U."""
    names = [name for name in ("recurrent", "recurrent_new") if f"{name}.weight" in cell]
    weight, bias = (np.concatenate([cell[f"{name}.{part}"] for name in names]) for part in ("weight", "bias"))
    return weight, bias


def lstm_cell(
    x: Array, s: Array, c: Array, w: Array, b_w: Array, u: Array, b_u: Array, norms: Weights | None = None
) -> tuple[Array, Array]:
    """c' = f c + i g, s' = o tanh(c'), rows in the order i, f, g, o (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    Normalized, LN(W x + b) and LN(U s + b) stand for W x + b and U s + b, and s' = o tanh(LN(c')) (Ba et al. 2016, eq. 20 to 22).
    """
    size = len(s)
    a = normalized(product(w, x) + b_w, norms, "norm_input")
    m = normalized(product(u, s) + b_u, norms, "norm_recurrent")
    state, memory = np.zeros(size), np.zeros(size)
    for k in range(size):
        i, f, g, _ = (a[row] + m[row] for row in range(k, 4 * size, size))
        memory[k] = logistic(f) * c[k] + logistic(i) * math.tanh(g)
    shown = normalized(memory, norms, "norm_cell")
    for k in range(size):
        state[k] = logistic(a[3 * size + k] + m[3 * size + k]) * math.tanh(shown[k])
    return state, memory


def normalized(a: Array, norms: Weights | None, name: str) -> Array:
    return a if norms is None else layer_norm(a, norms[f"{name}.weight"], norms[f"{name}.bias"])


def cell_step(
    x: Array, s: Array, c: Array, w: Array, b_w: Array, u: Array, b_u: Array, settings: Tree, norms: Weights
) -> tuple[Array, Array]:
    """s' and c' of any kind of cell. A GRU returns c unchanged."""
    cell_norms = norms if settings["layer_norm"] else None
    if settings["cell"] == "gru":
        return gru_cell(x, s, w, b_w, u, b_u, cell_norms), c
    if settings["cell"] == "gru-reset-before":
        return gru_reset_before_cell(x, s, w, b_w, u, b_u, cell_norms), c
    return lstm_cell(x, s, c, w, b_w, u, b_u, cell_norms)


# --- encoder ------------------------------------------------------------------------------------------------------


def run(inputs: list[Array], settings: Tree, weights: Weights) -> tuple[list[Array], Array]:
    """The state of one direction after each input, starting from zero, and the last c."""
    if settings["layer_norm"] or settings["cell"] == "gru-reset-before":
        w, b_w = weights["input.weight"], weights["input.bias"]
        u, b_u = recurrent_weights(under(weights, "cell"))
    else:
        w, b_w, u, b_u = (weights[name] for name in ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0"))
    s = c = np.zeros(u.shape[1])
    states: list[Array] = []
    for x in inputs:
        s, c = cell_step(x, s, c, w, b_w, u, b_u, settings, under(weights, "cell"))
        states.append(s)
    return states, c


def encoder(words: list[Array], settings: Tree, weights: Weights) -> tuple[Array, list[Array], list[Array]]:
    """h_j = [h_j->; h_j<-] for embedded words (Bahdanau et al. 2015, 3.2 and A.2.1), or one direction alone; layers are stacked.

    Also the final states [h_S->; h_1<-] of each layer, and the final c of an LSTM. With residual connections the output of a layer
    above the first is x^i = m^i + x^{i-1} (Wu et al. 2016, eq. 6); the recurrence keeps the state m^i.
    """
    outputs, finals, memories = words, [], []
    for layer in range(settings["layers"]):
        sides: list[list[Array]] = []
        final_states: list[Array] = []
        cells: list[Array] = []
        if settings["direction"] != "reversed":
            states, c = run(outputs, settings, under(weights, f"rightward.{layer}"))
            sides, final_states, cells = [*sides, states], [*final_states, states[-1]], [*cells, c]
        if settings["direction"] != "forward":
            states, c = run(outputs[::-1], settings, under(weights, f"leftward.{layer}"))
            sides, final_states, cells = [*sides, states[::-1]], [*final_states, states[-1]], [*cells, c]
        joined = [np.concatenate([side[j] for side in sides]) for j in range(len(words))]
        if settings["residual"] and layer:
            joined = [joined[j] + outputs[j] for j in range(len(words))]
        outputs = joined
        finals.append(np.concatenate(final_states))
        memories.append(np.concatenate(cells))
    return np.stack(outputs), finals, memories


# --- decoder ------------------------------------------------------------------------------------------------------


def stacked_step(
    x: Array, w: Array, b_w: Array, states: list[Array], memories: list[Array], settings: Tree, weights: Weights
) -> tuple[Array, list[Array], list[Array]]:
    """One step of the stacked decoder: the output of the top layer, and s and c of all layers.

    W projects the input of the first layer; each further layer reads the output of the one below. With residual connections the
    output of a layer above the first is x^i = m^i + x^{i-1} (Wu et al. 2016, eq. 6).
    """
    new_states, new_memories = [], []
    for layer in range(len(states)):
        if layer:
            w, b_w = weights[f"below.{layer - 1}.weight"], weights[f"below.{layer - 1}.bias"]
        cell = under(weights, f"cells.{layer}")
        u, b_u = recurrent_weights(cell)
        s, c = cell_step(x, states[layer], memories[layer], w, b_w, u, b_u, settings, cell)
        x = s + x if settings["residual"] and layer else s
        new_states.append(s)
        new_memories.append(c)
    return x, new_states, new_memories


def bridge(
    annotations: Array, finals: list[Array], memories: list[Array], settings: Tree, weights: Weights
) -> tuple[list[Array], list[Array]]:
    """s_0 and c_0 of every layer; c_0 is zero unless copied.

    backward: tanh(W_s h_1<-) (Bahdanau et al. 2015, A.2.2); final: the same of [h_S->; h_1<-]; mean: of (1/S) sum_j h_j;
    copy: each layer's last state and c as they are (Sutskever et al. 2014, 2); zero: 0.
    """
    decoder, width = settings["decoder"], settings["encoder"]["hidden"]
    layers, hidden = decoder["layers"], decoder["hidden"]
    zeros = [np.zeros(hidden) for _ in range(layers)]
    if decoder["bridge"] == "zero":
        return zeros, zeros
    if decoder["bridge"] == "copy":
        return finals, memories
    if decoder["bridge"] == "backward":
        x = finals[-1][-width:]
    elif decoder["bridge"] == "final":
        x = finals[-1]
    else:
        x = np.zeros(annotations.shape[1])
        for h_j in annotations:
            x = x + h_j / len(annotations)
    s_0 = np.tanh(product(weights["linear.weight"], x) + weights["linear.bias"])
    return [s_0[layer * hidden : (layer + 1) * hidden] for layer in range(layers)], zeros
