"""The result of translation, and how the translations of a long line's parts are joined."""

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
"""Most rows and columns of the joint alignment of a line that is translated in parts."""


@dataclass(frozen=True, eq=False)
class TranslationHypothesis(Hypothesis):
    """One translation of a line.

    Row t of its alignment belongs to target token t and column s to source token s. The last column belongs to the source's
    end mark and, if finished, the last row to the target's. The alignment has

    * no rows if alignments are switched off,
    * no columns if no model was run,
    * neither if the line was translated in parts and would have more than 4096 rows or columns.
    """

    text: str

    @classmethod
    def of(cls, hypothesis: Hypothesis, *, text: str, alignment: Float[Tensor, "T S"]) -> TranslationHypothesis:
        """Add the text to a hypothesis of the search, and replace its alignment."""
        return cls(
            ids=hypothesis.ids,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            token_log_probs=hypothesis.token_log_probs,
            alignment=alignment,
            finished=hypothesis.finished,
            text=text,
        )


@dataclass(frozen=True)
class Translation:
    """A line with its translations."""

    source: str
    """The original line, without its line end."""
    source_ids: tuple[int, ...]
    """Token ids the (first) model read, without end mark."""
    hypotheses: tuple[TranslationHypothesis, ...]
    """At least one, best first."""

    @property
    def text(self) -> str:
        """The best translation, always a single line."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """The score of the best translation."""
        return self.hypotheses[0].score

    def is_aligned(self, rank: int = 0) -> bool:
        """Whether a hypothesis has an alignment; one that was too long has none."""
        return not self.source_ids or self.hypotheses[rank].alignment.shape[1] > 0


def empty() -> TranslationHypothesis:
    """The translation of a blank line, for which no model is run."""
    return TranslationHypothesis((), 0.0, 0.0, (), torch.zeros(0, 0), finished=True, text="")


def unscored(ids: Sequence[int], target: Subwords) -> TranslationHypothesis:
    """A given translation that is too long to be scored."""
    nan = float("nan")
    text = clean(target.decode(ids))
    return TranslationHypothesis(tuple(ids), nan, nan, (), torch.zeros(0, 0), finished=True, text=text)


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
        score=penalties.joint(parts),
        log_probability=sum(part.log_probability for part in parts),
        token_log_probs=tuple(
            value for part, count in zip(parts, lengths, strict=True) for value in part.token_log_probs[:count]
        ),
        alignment=_block_diagonal([part.alignment[:count] for part, count in zip(parts, lengths, strict=True)]),
        finished=finished,
        text=join_texts(part.text for part in parts),
    )


def _block_diagonal(blocks: Sequence[Float[Tensor, "_T _S"]]) -> Float[Tensor, "T S"]:
    """Join the alignments of parts. The last column of each, that of the end mark, becomes one shared column."""
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
