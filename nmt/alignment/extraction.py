"""Extract links from the weights of one model or two."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from nmt.alignment.link_files import format_confident, format_pharaoh
from nmt.alignment.links import ConfidentLinks, Links, argmax_links, flip, threshold_links
from nmt.alignment.symmetrization import Heuristic, Mean, mean_weights, mutual_weights, symmetrize
from nmt.alignment.weights import Alignment, Matrix
from nmt.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nmt.recipe import Recipe

Method = Literal["argmax", "threshold", "mutual"]
Joining = Heuristic | Mean
Format = Literal["pharaoh", "confident", "json"]

ALIGNER_SHARE = 0.6
"""Share of a word aligner in the mean with a model's weights."""
ALIGNER_THRESHOLD = 0.4
"""Default threshold of that mean, with the method `mutual`."""
DEFAULT_THRESHOLD = 0.3
"""Default threshold of the method `threshold`."""
MUTUAL_THRESHOLD = 0.45
"""Default threshold of the method `mutual`, tuned on a development text: posteriors of unguided models against `nmt links`."""


@dataclass(frozen=True)
class Extraction:
    """How to extract links from weights.

    Attributes:
        method: `argmax` links each target word to its strongest source word; `threshold` links all words whose weight
            reaches the threshold; `mutual` does so with `mutual_weights`.
        threshold: least weight of a link, in (0, 1]; by default none for `argmax`, 0.3 for `threshold`, 0.45 for `mutual`, 0.4
            with a word aligner.
        joining: how to join two directions: a heuristic joins their links; `mean` and `geometric` join their weights before
            links are extracted.

    Raises:
        UsageError: a threshold out of its range.
    """

    method: Method = "argmax"
    threshold: float | None = None
    joining: Joining = "grow-diag-final-and"

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UsageError(f"A link threshold must lie above 0 and not above 1, but is {self.threshold}.")

    def pair(
        self, forward: Alignment, backward: Alignment | None = None, confidences: ArrayLike | None = None
    ) -> AlignedPair:
        """Extract the links of a sentence pair.

        Args:
            forward: its alignment by a model.
            backward: its alignment by a model of the other direction.
            confidences: of every link by a word aligner, [T S], to be averaged with the weights; heuristics cannot use them.
        """
        if confidences is not None:
            weights = self._weights(forward) if backward is None else self._mean(forward, backward)
            mean = (1 - ALIGNER_SHARE) * weights + ALIGNER_SHARE * np.asarray(confidences)
            return AlignedPair(replace(forward, weights=mean), self._links(mean, ALIGNER_THRESHOLD), mean)
        if backward is None:
            weights = self._weights(forward)
            return AlignedPair(forward, self._links(weights), weights)
        match self.joining:
            case "mean" | "geometric":
                mean = self._mean(forward, backward)
                return AlignedPair(replace(forward, weights=mean), self._links(mean), mean)
            case heuristic:
                weights, reverse = self._weights(forward), self._weights(backward)
                links = symmetrize(self._links(weights), flip(self._links(reverse)), heuristic)
                return AlignedPair(forward, links, mean_weights(weights, reverse))

    def _mean(self, forward: Alignment, backward: Alignment) -> Matrix:
        """The mean of the weights of both directions; for a heuristic, the geometric one."""
        kind: Mean = "mean" if self.joining == "mean" else "geometric"
        return mean_weights(self._weights(forward), self._weights(backward), kind)

    def _weights(self, alignment: Alignment) -> Matrix:
        return mutual_weights(alignment.weights) if self.method == "mutual" else alignment.weights

    def _links(self, weights: Matrix, mutual: float = MUTUAL_THRESHOLD) -> Links:
        if self.method == "argmax":
            return argmax_links(weights, self.threshold)
        return threshold_links(weights, self.threshold or (mutual if self.method == "mutual" else DEFAULT_THRESHOLD))


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """The alignment of a sentence pair and its links.

    Attributes:
        alignment: by the forward model, or the mean of two models.
        links: those that were extracted.
        confidences: of every link, [T S]: what links were extracted from; for a heuristic, the mean of both directions.
    """

    alignment: Alignment
    links: Links
    confidences: Matrix = field(repr=False)

    @property
    def confident_links(self) -> ConfidentLinks:
        """The links with their confidences."""
        return {(source, target): float(self.confidences[target, source]) for source, target in self.links}


def format_pair(pair: AlignedPair, form: Format) -> str:
    """Format a pair as a line, without line end.

    * `pharaoh`: links `i-j`, source first, counted from 0.
    * `confident`: the same with confidences, `i-j:0.97`.
    * `json`: an object with `source` and `target` (words), `weights` (one row per target word) and `links`.
    """
    if form == "pharaoh":
        return format_pharaoh(pair.links)
    if form == "confident":
        return format_confident(pair.confident_links)
    fields = {
        "source": pair.alignment.source,
        "target": pair.alignment.target,
        "weights": pair.alignment.weights.round(4).tolist(),
        "links": sorted(pair.links),
    }
    return json.dumps(fields, ensure_ascii=False)


def fitting_extraction(recipe: Recipe, *, posterior: bool = False) -> Extraction:
    """The extraction that fits a model.

    * Posterior: `mutual`, and the geometric mean of two directions. Posteriors are sharp, but several target words may put
      their weight on the same source word.
    * Guided attention: `threshold`. It is trained to spread evenly over all linked source words.
    * Other attention: `argmax`. It also spreads to neighboring words.
    """
    if posterior:
        return Extraction("mutual", joining="geometric")
    return Extraction("argmax" if recipe.training.guided_alignment is None else "threshold")
