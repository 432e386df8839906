"""Window centres p_t of local attention, for each step of a known target (Luong et al. 2015, 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nmt.alignment.weights import Matrix
from nmt.data.subwords import BOS, EOS
from nmt.decoding.lines import words_of
from nmt.model.interface import TranslationModel, device_of

if TYPE_CHECKING:
    from nmt.decoding.translation import Translation
    from nmt.model_folder import Bundle


def window_centers(model: TranslationModel[Any, Any], source: Sequence[int], target: Sequence[int]) -> Matrix | None:
    """p_t of the steps that predict known target tokens; None where the attention is global.

    p_t = t (local-m), or p_t = S sigmoid(v_p^T tanh(W_p h_t)) (local-p, Luong et al. 2015, eq. 9).

    Args:
        model: in evaluation mode.
        source: ids without end mark, read in one piece.
        target: ids without special marks.

    Returns:
        [T K] for K heads, in source tokens from 0 to S, the end mark being one of the S.
    """
    device, centers = device_of(model), []
    with torch.inference_mode():
        ids = torch.tensor([[*source, EOS]], device=device)
        memory = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        state, rows = model.start(memory), torch.zeros(1, dtype=torch.long, device=device)
        for token in [BOS, *target]:  # one step more than tokens, so that an empty target shows the number of heads
            step = model.step(torch.tensor([token], device=device), state, memory, rows)
            if step.centers is None:
                return None
            centers.append(step.centers)
            state = step.state
    return torch.cat(centers)[: len(target)].double().cpu().numpy()


def word_centers(found: Translation, bundle: Bundle, rank: int = 0) -> Matrix | None:
    """p_t for each row of `word_alignment`, where column n reaches from n to n + 1; None where the attention is global.

    A source piece stands in the middle of its share of the word, and p_t in between where it is between two pieces. A
    target word has the mean of its pieces, as its weights are their mean; one without pieces has NaN.

    Returns:
        [target words, heads], from 0 to the number of source words: beyond the last word stands only the end mark, which
        no figure shows, and p_t there is drawn in to the edge.
    """
    hypothesis = found.hypotheses[rank]
    centers = window_centers(bundle.model, found.source_ids, hypothesis.ids)
    if centers is None:
        return None
    source, source_word_of = words_of(bundle.source, found.source_ids, found.source)
    target, target_word_of = words_of(bundle.target, hypothesis.ids, hypothesis.text)
    places, rows = _places(centers, source_word_of, len(source)), np.array(target_word_of)
    merged = np.full((len(target), places.shape[1]), np.nan)
    for word in set(target_word_of) - {-1}:
        merged[word] = places[rows == word].mean(0)
    return merged


def piece_centers(found: Translation, bundle: Bundle, rank: int = 0) -> Matrix | None:
    """The same for each row of `piece_alignment`, whose columns are source pieces."""
    centers = window_centers(bundle.model, found.source_ids, found.hypotheses[rank].ids)
    count = len(found.source_ids)
    return None if centers is None else _places(centers, range(count), count)


def _places(centers: Matrix, word_of: Sequence[int], words: int) -> Matrix:
    """Positions in pieces, the end mark being the last, as places on the axis of words."""
    word = np.array(word_of, dtype=np.int64)
    first, end = np.searchsorted(word, word), np.searchsorted(word, word, side="right")
    middles = word + (np.arange(len(word)) - first + 0.5) / (end - first)
    places: Matrix = np.interp(centers, np.arange(len(word) + 1), np.append(middles, words + 0.5))
    return np.minimum(places, words)
