"""Links, read off the matrices of one model or of two."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, assert_never

from nmt.alignment.links import Links, argmax_links, flip, threshold_links
from nmt.alignment.symmetrisation import Heuristic, Mean, mean_weights, mutual_weights, symmetrise
from nmt.alignment.weights import Alignment, Matrix
from nmt.errors import UsageError

if TYPE_CHECKING:
    from nmt.recipe import Recipe

Method = Literal["argmax", "threshold", "mutual"]
Joining = Heuristic | Mean

DEFAULT_THRESHOLD = 0.3
"""Least weight of a link where the method is `threshold` and none is given."""
MUTUAL_THRESHOLD = 0.45
"""The same for `mutual`; chosen by agreement of unguided models' posteriors with `nmt links` on a development text."""


@dataclass(frozen=True)
class Extraction:
    """How links are read off alignments.

    Attributes:
        method: each target word's strongest source word; every pair of words whose weight reaches the threshold; or every
            pair that chooses each other so much, by `mutual_weights`.
        threshold: least weight of a link, in (0, 1]; by default none for `argmax`, 0.3 for `threshold`, 0.45 for `mutual`.
        joining: how two directions become one: a heuristic joins their links; `mean` and `geometric` their weights, of
            which the links are then read off.
        punctuation: whether words of nothing but punctuation may have links.

    Raises:
        UsageError: a threshold out of its range.
    """

    method: Method = "argmax"
    threshold: float | None = None
    joining: Joining = "grow-diag-final-and"
    punctuation: bool = True

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UsageError(f"A link threshold must lie above 0 and not above 1, but is {self.threshold}.")

    def pair(self, forward: Alignment, backward: Alignment | None = None) -> AlignedPair:
        """The links of a pair, and its weights; `backward` is what a model of the other direction makes of it."""
        if backward is None:
            alignment, links = forward, self._links(self._judged(forward))
        else:
            alignment, links = self._join(forward, backward)
        return AlignedPair(alignment, links if self.punctuation else _between_words(links, forward))

    def _join(self, forward: Alignment, backward: Alignment) -> tuple[Alignment, Links]:
        match self.joining:
            case "mean" | "geometric":
                mean = mean_weights(self._judged(forward), self._judged(backward), self.joining)
                return replace(forward, weights=mean), self._links(mean)
            case _:
                links = self._links(self._judged(forward)), flip(self._links(self._judged(backward)))
                return forward, symmetrise(*links, self.joining)

    def _judged(self, alignment: Alignment) -> Matrix:
        return mutual_weights(alignment.weights) if self.method == "mutual" else alignment.weights

    def _links(self, judged: Matrix) -> Links:
        match self.method:
            case "argmax":
                return argmax_links(judged, self.threshold)
            case "threshold":
                return threshold_links(judged, self.threshold or DEFAULT_THRESHOLD)
            case "mutual":
                return threshold_links(judged, self.threshold or MUTUAL_THRESHOLD)
            case _:
                assert_never(self.method)


@dataclass(frozen=True)
class AlignedPair:
    """A pair's alignment by the (forward) model, or by the mean of two, and its links."""

    alignment: Alignment
    links: Links


def fitting_extraction(recipe: Recipe, *, posterior: bool = False) -> Extraction:
    """How links are best read off a model's weights.

    Guided alignment teaches a target word to spread its attention evenly over all source words that it is linked to: there
    every strong weight is a link. Attention that is left to itself spreads over neighbours too: only the strongest counts.
    The posterior is sharp, but two words may claim the same source word: who claims it more is right. Where two posteriors
    agree, their geometric mean is high.
    """
    if posterior:
        return Extraction("mutual", joining="geometric")
    return Extraction("threshold" if recipe.training.guided_alignment else "argmax")


def word_links(alignment: Alignment, recipe: Recipe, *, posterior: bool = False) -> Links:
    """The links of an alignment by the model of a recipe, read off in the way that fits it."""
    return fitting_extraction(recipe, posterior=posterior).pair(alignment).links


def _between_words(links: Links, alignment: Alignment) -> Links:
    """The links of which neither end is punctuation."""
    return frozenset(
        (source, target)
        for source, target in links
        if not (_is_punctuation(alignment.source[source]) or _is_punctuation(alignment.target[target]))
    )


def _is_punctuation(word: str) -> bool:
    """Whether a word, or a piece but for its word mark, has no character that is anything else."""
    return all(unicodedata.category(character).startswith("P") for character in word.replace("▁", ""))
