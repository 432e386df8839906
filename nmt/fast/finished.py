"""`FinishedHypotheses.update` as one call of a compiled kernel."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from nmt.fast import is_on
from nmt.fast.kernels import decoding as kernels
from nmt.search.candidates import Candidates
from nmt.search.finished import FinishedHypotheses


class FastFinishedHypotheses(FinishedHypotheses):
    """The same results, faster without a coverage penalty."""

    def update(
        self, candidates: Candidates, coverage: Float[Tensor, "B W S"] | None, first_node: int, time: int
    ) -> Float[Tensor, "B W"]:
        if coverage is not None or not is_on() or not kernels.can_use(candidates.log_probs):
            return super().update(candidates, coverage, first_node, time)
        settings = self.settings
        return kernels.settle(
            candidates.log_probs,
            candidates.tokens,
            self.scores,
            self.nodes,
            settings.limits,
            settings.length_penalties,
            first=first_node,
            length=time + 1,
            horizon=settings.horizon,
            eos=settings.eos,
        )
