"""Window centers p_t of local attention for known targets (Luong et al. 2015, 3.2), per token and per word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nmt.alignment.translation import Translation
from nmt.alignment.weights import Matrix
from nmt.model.interface import TranslationModel, device_of
from nmt.text.subwords import BOS, EOS


def window_centers(model: TranslationModel[Any, Any], source: Sequence[int], target: Sequence[int]) -> Matrix | None:
    """p_t of the steps that predict known target tokens; None if attention is global.

    p_t = t (local-m), or p_t = S sigmoid(v_p^T tanh(W_p h_t)) (local-p, Luong et al. 2015, eq. 9).

    Args:
        model: in evaluation mode.
        source: ids without end mark.
        target: ids without special marks.

    Returns:
        [T K] for K heads, from 0 to S in source tokens, of which the end mark is the last.
    """
    device, centers = device_of(model), []
    with torch.inference_mode():
        ids = torch.tensor([[*source, EOS]], device=device)
        memory = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        state, rows = model.start(memory), torch.zeros(1, dtype=torch.long, device=device)
        for token in [BOS, *target]:  # one step too many, so that an empty target also gives the number of heads
            step = model.step(torch.tensor([token], device=device), state, memory, rows)
            if step.centers is None:
                return None
            centers.append(step.centers)
            state = step.state
    return torch.cat(centers)[: len(target)].double().cpu().numpy()


def word_centers(translation: Translation, model: TranslationModel[Any, Any], rank: int = 0) -> Matrix | None:
    """p_t for each row of `word_alignment`; None if attention is global.

    Word n covers [n, n + 1] on the axis of source words, and its tokens share that interval evenly. A token counts by its
    middle, and p_t between two tokens is interpolated. A target word has the mean p_t of its tokens, as it has the mean of
    their weights; a word without tokens has NaN.

    Returns:
        [target words, heads], from 0 to the number of source words. A p_t beyond the last word, towards the end mark that no
        figure shows, is clipped.
    """
    centers = window_centers(model, translation.source_ids, translation.hypotheses[rank].ids)
    if centers is None:
        return None
    (source, source_word_of), (target, target_word_of) = (
        translation.words_of_tokens(),
        translation.words_of_tokens(rank),
    )
    positions, rows = word_positions(centers, source_word_of, len(source)), np.array(target_word_of)
    merged = np.full((len(target), positions.shape[1]), np.nan)
    for word in set(target_word_of) - {-1}:
        merged[word] = positions[rows == word].mean(0)
    return merged


def token_centers(translation: Translation, model: TranslationModel[Any, Any], rank: int = 0) -> Matrix | None:
    """p_t for each row of `token_alignment`, where source token j covers [j, j + 1]; None if attention is global."""
    centers = window_centers(model, translation.source_ids, translation.hypotheses[rank].ids)
    count = len(translation.source_ids)
    return None if centers is None else word_positions(centers, range(count), count)


def word_positions(centers: Matrix, word_of: Sequence[int], words: int) -> Matrix:
    """Turn positions on the axis of tokens, the end mark being the last, into positions on the axis of words."""
    word = np.array(word_of, dtype=np.int64)
    first, end = np.searchsorted(word, word), np.searchsorted(word, word, side="right")
    middles = word + (np.arange(len(word)) - first + 0.5) / (end - first)
    positions: Matrix = np.interp(centers, np.arange(len(word) + 1), np.append(middles, words + 0.5))
    return np.minimum(positions, words)
