"""Translate long lines in parts: split the text, then join the translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.alignment.translation import TranslationHypothesis
from nmt.search.hypothesis import Penalties, no_alignment
from nmt.text.scripts import UNSPACED, join_texts

_BREAKS = (
    re.compile(r"(?<=[.!?;:…؟۔।॥])\s+|(?<=[。！？；។။།])\s*"),
    re.compile(r"\s+"),
    re.compile(f"(?<=[{UNSPACED}])(?=[{UNSPACED}])"),
)
"""Where a text may be cut, best first: after a sentence, between words, between characters of scripts without spaces."""
_MAX_SIZE = 4096
"""Most rows and columns of the joint alignment of a line that is translated in parts."""


# --- text -----------------------------------------------------------------------------------------------------------


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Halve a text until its parts fit: between sentences if possible, else between words, else anywhere.

    `join_texts` joins the translations of the parts.
    """
    if len(text) < 2 or fits(text):
        return [text]
    left, right = _halves(text)
    return split_text(left, fits) + split_text(right, fits)


def _halves(text: str) -> tuple[str, str]:
    """Cut a text of at least two characters into two non-empty parts, at the best break in its middle half."""
    middle = len(text) // 2
    for pattern in _BREAKS:
        places = [
            (abs(match.start() - middle), match.start(), match.end())
            for match in pattern.finditer(text, len(text) // 4, len(text) - len(text) // 4)
        ]
        if places:
            _, start, end = min(places)
            if text[:start].strip() and text[end:].strip():
                return text[:start], text[end:]
    return text[:middle], text[middle:]


# --- translations ---------------------------------------------------------------------------------------------------


def join(parts: Sequence[TranslationHypothesis], penalties: Penalties) -> TranslationHypothesis:
    """Join the translations of a line's parts, with the score of the whole.

    Log-probabilities are summed. Inner end marks of the target lose their row and their entry in `token_log_probs`. The
    weight of inner end marks of the source moves to the last one, so that rows still sum to 1.
    """
    if len(parts) == 1:
        return parts[0]
    finished = all(part.finished for part in parts)
    lengths = [len(part.ids) for part in parts]
    lengths[-1] += finished
    return TranslationHypothesis(
        ids=tuple(index for part in parts for index in part.ids),
        score=penalties.joint_score(parts),
        log_probability=sum(part.log_probability for part in parts),
        token_log_probs=tuple(
            value for part, count in zip(parts, lengths, strict=True) for value in part.token_log_probs[:count]
        ),
        alignment=_block_diagonal([part.alignment[:count] for part, count in zip(parts, lengths, strict=True)]),
        finished=finished,
        text=join_texts(part.text for part in parts),
    )


def _block_diagonal(blocks: Sequence[Float[Tensor, "_T _S"]]) -> Float[Tensor, "T S"]:
    """Join the alignments of parts along the diagonal. Their last columns, of the end mark, become one shared column."""
    blocks = [block for block in blocks if block.shape[1]]
    if not blocks or max(sum(map(len, blocks)), sum(block.shape[1] for block in blocks)) > _MAX_SIZE:
        return no_alignment()
    diagonal = torch.block_diag(*(block[:, :-1] for block in blocks))  # type: ignore[no-untyped-call]
    return torch.cat([diagonal, torch.cat([block[:, -1:] for block in blocks])], dim=1)
