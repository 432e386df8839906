"""The result of translation: a line with its hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.data.subwords import Subwords
from nmt.data.words import clean
from nmt.decoding.hypothesis import Hypothesis


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
    """Token ids that the (first) model read, without end mark."""
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


def empty_hypothesis() -> TranslationHypothesis:
    """The translation of a blank line, for which no model is run."""
    return TranslationHypothesis((), 0.0, 0.0, (), torch.zeros(0, 0), finished=True, text="")


def unscored_hypothesis(ids: Sequence[int], target: Subwords) -> TranslationHypothesis:
    """A known translation that is too long to be scored: its score is nan."""
    nan = float("nan")
    text = clean(target.decode(ids))
    return TranslationHypothesis(tuple(ids), nan, nan, (), torch.zeros(0, 0), finished=True, text=text)
