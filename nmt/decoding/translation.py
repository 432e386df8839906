"""What leaves the room: a translation with its hypotheses, and how the parts of a line that was too long become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.data.subwords import Subwords
from nmt.decoding.hypothesis import Hypothesis, Penalties
from nmt.decoding.lines import clean, join_texts

_LONGEST = 4096
"""Most rows and columns of the alignment of a line that is translated in parts, which is almost all zeros."""


@dataclass(frozen=True, eq=False)
class TranslationHypothesis(Hypothesis):
    """One translation of a line.

    Row t of its alignment belongs to target piece t, and column s to source piece s. The last column is that of the
    source's end mark; the last row is that of the target's, if finished. There are no rows where no alignment was asked
    for, and no columns where no model was run. A line that was translated in parts has neither if it would have more than
    4096 of one of them.
    """

    text: str

    @classmethod
    def of(cls, found: Hypothesis, *, text: str, alignment: Float[Tensor, "T S"]) -> TranslationHypothesis:
        """What a search found, with its text and with the alignment as it should be read."""
        return cls(
            ids=found.ids,
            score=found.score,
            log_probability=found.log_probability,
            token_log_probs=found.token_log_probs,
            alignment=alignment,
            finished=found.finished,
            text=text,
        )


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    source: str
    """The line as it was given, without its line end."""
    source_ids: tuple[int, ...]
    """The pieces that the (first) model read, without end mark."""
    hypotheses: tuple[TranslationHypothesis, ...]
    """Best first; there is always one."""

    @property
    def text(self) -> str:
        """The best translation: a single line, whatever the source holds."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """That of the best translation."""
        return self.hypotheses[0].score

    def is_aligned(self, rank: int = 0) -> bool:
        """Whether a hypothesis has an alignment, which a line too long to be scored has not."""
        return not self.source_ids or self.hypotheses[rank].alignment.shape[1] > 0


def empty() -> TranslationHypothesis:
    """The translation of nothing, for which no model is run."""
    return TranslationHypothesis((), 0.0, 0.0, (), torch.zeros(0, 0), finished=True, text="")


def unscored(ids: Sequence[int], target: Subwords) -> TranslationHypothesis:
    """A known translation that is too long to be scored."""
    nan = float("nan")
    text = clean(target.decode(ids))
    return TranslationHypothesis(tuple(ids), nan, nan, (), torch.zeros(0, 0), finished=True, text=text)


def join(parts: Sequence[TranslationHypothesis], penalties: Penalties) -> TranslationHypothesis:
    """The translations of the parts of a line as one, with the score of the whole.

    Log-probabilities are summed. Inner end marks lose their row and their entry of `token_log_probs`; the
    weight that an inner end mark of the source received counts for the last one, so that rows sum to 1 as before.
    """
    if len(parts) == 1:
        return parts[0]
    finished = all(part.finished for part in parts)
    kept = [len(part.ids) for part in parts]
    kept[-1] += finished
    return TranslationHypothesis(
        ids=tuple(index for part in parts for index in part.ids),
        score=penalties.joint(parts),
        log_probability=sum(part.log_probability for part in parts),
        token_log_probs=tuple(
            value for part, count in zip(parts, kept, strict=True) for value in part.token_log_probs[:count]
        ),
        alignment=_block_diagonal([part.alignment[:count] for part, count in zip(parts, kept, strict=True)]),
        finished=finished,
        text=join_texts(part.text for part in parts),
    )


def _block_diagonal(blocks: Sequence[Float[Tensor, "_T _S"]]) -> Float[Tensor, "T S"]:
    """Alignments of parts as one; the last column of each is that of the end mark, which they come to share."""
    rows, columns = sum(len(block) for block in blocks), sum(max(block.shape[1] - 1, 0) for block in blocks)
    if max(rows, columns + 1) > _LONGEST:
        return torch.zeros(0, 0)
    joined = torch.zeros(rows, columns + 1 if rows else 0)
    row = column = 0
    for block in blocks if rows else ():
        end_row, end_column = row + len(block), column + block.shape[1] - 1
        joined[row:end_row, column:end_column] = block[:, :-1]
        joined[row:end_row, -1:] = block[:, -1:]
        row, column = end_row, end_column
    return joined
