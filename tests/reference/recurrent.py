"""Recurrent cells, with PyTorch's order of gates, and the bidirectional encoder."""

import math

import numpy as np

from tests.reference.algebra import Array, Weights, inner, logistic, product, under


def gru_cell(x: Array, s: Array, w: Array, b_w: Array, u: Array, b_u: Array) -> Array:
    """s' = (1 - z) n + z s with gates r, z and proposal n in the rows of W and U, in this order (Cho et al. 2014, eq. 5 to 8).

    As in PyTorch and cuDNN the reset gate acts on U s + b and z keeps the old state.
    """
    size = len(s)
    result = np.zeros(size)
    for k in range(size):
        r = logistic(inner(w[k], x) + b_w[k] + inner(u[k], s) + b_u[k])
        z = logistic(inner(w[size + k], x) + b_w[size + k] + inner(u[size + k], s) + b_u[size + k])
        proposed = inner(w[2 * size + k], x) + b_w[2 * size + k]
        n = math.tanh(proposed + r * (inner(u[2 * size + k], s) + b_u[2 * size + k]))
        result[k] = (1 - z) * n + z * s[k]
    return result


def lstm_cell(x: Array, s: Array, c: Array, w: Array, b_w: Array, u: Array, b_u: Array) -> tuple[Array, Array]:
    """c' = f c + i g, s' = o tanh(c'), rows in the order i, f, g, o (Hochreiter and Schmidhuber 1997; Gers et al. 2000)."""
    size = len(s)
    state, memory = np.zeros(size), np.zeros(size)
    for k in range(size):
        i, f, g, o = (inner(w[row], x) + b_w[row] + inner(u[row], s) + b_u[row] for row in range(k, 4 * size, size))
        memory[k] = logistic(f) * c[k] + logistic(i) * math.tanh(g)
        state[k] = logistic(o) * math.tanh(memory[k])
    return state, memory


def run(kind: str, inputs: list[Array], weights: Weights) -> list[Array]:
    """The states of one direction after each input, from the zero state."""
    w, b_w, u, b_u = (weights[f"{name}_l0"] for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh"))
    s = c = np.zeros(u.shape[1])
    states = []
    for x in inputs:
        if kind == "gru":
            s = gru_cell(x, s, w, b_w, u, b_u)
        else:
            s, c = lstm_cell(x, s, c, w, b_w, u, b_u)
        states.append(s)
    return states


def encoder(words: list[Array], settings: dict, weights: Weights) -> tuple[Array, Array, Array]:
    """h_j = [h_j->; h_j<-] for embedded words, layer upon layer; also h_S-> and h_1<- (Bahdanau et al. 2015, 3.2 and A.2.1)."""
    layer_input = words
    for layer in range(settings["layers"]):
        rightward = run(settings["cell"], layer_input, under(weights, f"rightward.{layer}"))
        leftward = run(settings["cell"], layer_input[::-1], under(weights, f"leftward.{layer}"))[::-1]
        layer_input = [np.concatenate([rightward[j], leftward[j]]) for j in range(len(words))]
    return np.stack(layer_input), rightward[-1], leftward[0]


def stacked_step(
    x: Array, w: Array, b_w: Array, states: list[Array], memories: list[Array], kind: str, weights: Weights
) -> tuple[list[Array], list[Array]]:
    """One step of the decoder's stack: W acts on the lowest layer's input, each other layer reads the state below."""
    new_states, new_memories = [], []
    for layer in range(len(states)):
        if layer:
            x, below = new_states[-1], under(weights, f"below.{layer - 1}")
            w, b_w = below["weight"], below["bias"]
        u, b_u = weights[f"cells.{layer}.recurrent.weight"], weights[f"cells.{layer}.recurrent.bias"]
        if kind == "gru":
            s, c = gru_cell(x, states[layer], w, b_w, u, b_u), memories[layer]
        else:
            s, c = lstm_cell(x, states[layer], memories[layer], w, b_w, u, b_u)
        new_states.append(s)
        new_memories.append(c)
    return new_states, new_memories


def bridge(annotations: Array, last_right: Array, first_left: Array, decoder: dict, weights: Weights) -> list[Array]:
    """s_0 of every layer.

    backward: tanh(W_s h_1<-) (Bahdanau et al. 2015, A.2.2); final: the same of [h_S->; h_1<-]; mean: of (1/S) sum_j h_j;
    zero: nothing crosses.
    """
    layers, hidden = decoder["layers"], decoder["hidden"]
    if decoder["bridge"] == "zero":
        return [np.zeros(hidden) for _ in range(layers)]
    if decoder["bridge"] == "backward":
        x = first_left
    elif decoder["bridge"] == "final":
        x = np.concatenate([last_right, first_left])
    else:
        x = np.zeros(annotations.shape[1])
        for h_j in annotations:
            x = x + h_j / len(annotations)
    s_0 = np.tanh(product(weights["linear.weight"], x) + weights["linear.bias"])
    return [s_0[layer * hidden : (layer + 1) * hidden] for layer in range(layers)]
