"""Scores, windows, weights and context of one decoder step over one sentence.

Positions are counted from 0. `query` is s_{i-1} (Bahdanau) or h_t (Luong). `coverage` is the total weight of each position in the
steps before, C_{i-1,j} = sum_{k<i} alpha_kj (Tu et al. 2016, eq. 7, with a fertility of 1); None if it is not read.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tests.reference.algebra import Array, Weights, inner, logistic, product, under
from tests.reference.settings import Tree

# --- scores: e_ij of the query and every annotation h_j -----------------------------------------------------------


def additive_scores(query: Array, annotations: Array, weights: Weights) -> Array:
    """e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j), with a bias beside W_a (Bahdanau et al. 2015, A.1.2)."""
    w_a, b_a, u_a, v_a = weights["query.weight"], weights["query.bias"], weights["key.weight"], weights["v.weight"][0]
    scores = np.zeros(len(annotations))
    for j in range(len(annotations)):
        hidden = product(w_a, query) + b_a + product(u_a, annotations[j])
        scores[j] = inner(v_a, np.tanh(hidden))
    return scores


def dot_scores(query: Array, annotations: Array, weights: Weights) -> Array:
    """score(h_t, h_s) = h_t^T h_s (Luong et al. 2015, 3.1)."""
    scores = np.zeros(len(annotations))
    for s in range(len(annotations)):
        scores[s] = inner(query, annotations[s])
    return scores


def general_scores(query: Array, annotations: Array, weights: Weights) -> Array:
    """score(h_t, h_s) = h_t^T W_a h_s (Luong et al. 2015, 3.1)."""
    w_a = weights["key.weight"]
    scores = np.zeros(len(annotations))
    for s in range(len(annotations)):
        for k in range(w_a.shape[0]):
            for m in range(w_a.shape[1]):
                scores[s] += query[k] * w_a[k, m] * annotations[s, m]
    return scores


def concat_scores(query: Array, annotations: Array, weights: Weights) -> Array:
    """score(h_t, h_s) = v_a^T tanh(W_a [h_t; h_s]) (Luong et al. 2015, 3.1)."""
    w_a = np.concatenate([weights["query.weight"], weights["key.weight"]], axis=1)
    scores = np.zeros(len(annotations))
    for s in range(len(annotations)):
        both = product(w_a, np.concatenate([query, annotations[s]]))
        scores[s] = inner(weights["v.weight"][0], np.tanh(both))
    return scores


def location_scores(query: Array, annotations: Array, weights: Weights) -> Array:
    """W_a h_t, of which a_t is the softmax (Luong et al. 2015, eq. 8); -inf for positions beyond the rows of W_a."""
    by_position = product(weights["position.weight"], query)
    scores = np.full(len(annotations), -math.inf)
    for s in range(min(len(annotations), len(by_position))):
        scores[s] = by_position[s]
    return scores


SCORES = {
    "additive": additive_scores,
    "dot": dot_scores,
    "general": general_scores,
    "concat": concat_scores,
    "location": location_scores,
}

# --- windows: the factor of every source position, 0 outside ------------------------------------------------------


def global_window(length: int) -> Array:
    """1 at every position (Luong et al. 2015, 3.1)."""
    return np.ones(length)


def local_monotonic_window(step: int, length: int, half_width: int, ratio: float) -> Array:
    """1 within [p_t - D, p_t + D], p_t = t (Luong et al. 2015, 3.2); past the end of the source, p_t is the last position.

    With a ratio, p_t = round(ratio t), where halves round to even.
    """
    p_t = min(round(ratio * step), length - 1)
    factor = np.zeros(length)
    for s in range(p_t - half_width, p_t + half_width + 1):
        if 0 <= s < length:
            factor[s] = 1.0
    return factor


def predicted_center(query: Array, length: int, weights: Weights) -> float:
    """p_t = S sigmoid(v_p^T tanh(W_p h_t)) (Luong et al. 2015, eq. 9)."""
    return length * logistic(inner(weights["v.weight"][0], np.tanh(product(weights["hidden.weight"], query))))


def local_predictive_window(query: Array, length: int, half_width: int, weights: Weights) -> Array:
    """exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2, within [p_t - D, p_t + D] (Luong et al. 2015, eq. 9 and 10)."""
    p_t, sigma = predicted_center(query, length, weights), half_width / 2
    factor = np.zeros(length)
    for s in range(length):
        if p_t - half_width <= s <= p_t + half_width:
            factor[s] = math.exp(-((s - p_t) ** 2) / (2 * sigma**2))
    return factor


def window_factor(query: Array, step: int, length: int, window: Tree, weights: Weights) -> Array:
    if window["kind"] == "local-m":
        return local_monotonic_window(step, length, window["half_width"], window["ratio"])
    if window["kind"] == "local-p":
        return local_predictive_window(query, length, window["half_width"], under(weights, "window"))
    return global_window(length)


# --- weights and context ------------------------------------------------------------------------------------------


def masked_softmax(scores: Array, allowed: NDArray[np.bool_]) -> Array:
    """alpha_ij = exp(e_ij) / sum_k exp(e_ik), both over allowed positions only (Bahdanau et al. 2015, eq. 6; Luong et al. 2015, eq. 7)."""
    total = 0.0
    for k in range(len(scores)):
        if allowed[k]:
            total += math.exp(scores[k])
    alpha = np.zeros(len(scores))
    for j in range(len(scores)):
        if allowed[j] and total > 0:
            alpha[j] = math.exp(scores[j]) / total
    return alpha


def masked_entmax(scores: Array, allowed: NDArray[np.bool_], shape: float) -> Array:
    """alpha_ij = max((a - 1) e_ij - tau, 0)^(1 / (a - 1)) with a = `shape` above 1 (Peters et al. 2019, 3); tau by bisection.

    With a = 2 that is sparsemax, the nearest distribution to the scores (Martins and Astudillo 2016, 2.1).
    """
    alpha = np.zeros(len(scores))
    read = [j for j in range(len(scores)) if allowed[j] and scores[j] > -math.inf]
    if not read:
        return alpha
    largest = max((shape - 1) * scores[j] for j in read)
    low, high = largest - 1, largest  # the sum is at least 1, and 0
    for _ in range(100):
        tau = (low + high) / 2
        for j in read:
            alpha[j] = max((shape - 1) * scores[j] - tau, 0) ** (1 / (shape - 1))
        low, high = (tau, high) if alpha.sum() > 1 else (low, tau)
    return alpha


NORMALIZERS: dict[str, Callable[[Array, NDArray[np.bool_]], Array]] = {
    "softmax": masked_softmax,
    "sparsemax": partial(masked_entmax, shape=2.0),
    "entmax15": partial(masked_entmax, shape=1.5),
}


def expected_annotation(alpha: Array, annotations: Array) -> Array:
    """c_i = sum_j alpha_ij h_j (Bahdanau et al. 2015, eq. 5)."""
    context = np.zeros(annotations.shape[1])
    for j in range(len(annotations)):
        context = context + alpha[j] * annotations[j]
    return context


def attend(
    query: Array,
    step: int,
    annotations: Array,
    summary: Array,
    coverage: Array,
    attention: Tree,
    weights: Weights,
    only: int | None = None,
) -> tuple[Array, Array]:
    """c_i and alpha_i. Without a score the context is the encoder's summary at every step (Cho et al. 2014, eq. 7).

    `only` is a position j that gets all weight: c_i = h_j, or with heads [U_1 h_j; ...; U_n h_j].
    """
    if only is not None:
        h_j = annotations[only]
        context = product(weights["annotation.weight"], h_j) if attention["heads"] > 1 else h_j
        return context, np.eye(len(annotations))[only]
    if attention["score"]["kind"] == "none":
        return summary, np.zeros(len(annotations))
    coverage_read = coverage if attention["coverage"] else None
    if attention["heads"] > 1:
        return attend_with_heads(query, step, annotations, coverage_read, attention, weights)
    return attend_once(query, step, annotations, coverage_read, attention, weights)


def attend_with_heads(
    query: Array, step: int, annotations: Array, coverage: Array | None, attention: Tree, weights: Weights
) -> tuple[Array, Array]:
    """c_i = [head_1; ...; head_n], head_k = attend(W_k s, U_k h_j), where W_k and U_k are the k-th equal parts of the rows of
    square W and U (Vaswani et al. 2017, 3.2.2, without the output's projection); alpha_i is the mean over the heads.
    """
    heads = attention["heads"]
    query_size, annotation_size = len(query) // heads, annotations.shape[1] // heads
    contexts, alpha = [], np.zeros(len(annotations))
    for k in range(heads):
        w_k = weights["query.weight"][k * query_size : (k + 1) * query_size]
        u_k = weights["annotation.weight"][k * annotation_size : (k + 1) * annotation_size]
        projected = np.stack([product(u_k, h_j) for h_j in annotations])
        context, head_alpha = attend_once(
            product(w_k, query), step, projected, coverage, attention, under(weights, "head_attention")
        )
        contexts.append(context)
        alpha = alpha + head_alpha / heads
    return np.concatenate(contexts), alpha


def attend_once(
    query: Array, step: int, annotations: Array, coverage: Array | None, attention: Tree, weights: Weights
) -> tuple[Array, Array]:
    """c_i and alpha_i = normalizer(e_i) x window factor, not renormalized after the Gaussian (Luong et al. 2015, eq. 10)."""
    scores = SCORES[attention["score"]["kind"]](query, annotations, under(weights, "score"))
    if coverage is not None:  # e_ij + (w^T s_{i-1} + b) C_{i-1,j}
        weight = inner(weights["coverage.weight"][0], query) + weights["coverage.bias"][0]
        for j in range(len(annotations)):
            scores[j] += weight * coverage[j]
    factor = window_factor(query, step, len(annotations), attention["window"], weights)
    alpha = NORMALIZERS[attention["normalizer"]](scores, factor > 0) * factor
    return expected_annotation(alpha, annotations), alpha
