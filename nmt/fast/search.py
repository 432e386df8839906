"""The loop of search with kernels: one ranks the continuations of a step, one collects those that end."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from nmt.fast.kernels import decoding as kernels
from nmt.fast.output import SearchLogProbs
from nmt.search.beam import Beam, Candidates
from nmt.search.candidates import IndexedLogProbs
from nmt.search.finished import FinishedHypotheses
from nmt.search.loop import Search


class FastSearch(Search):
    """The same hypotheses. Samples and coverage penalties have no kernel."""

    def candidates(self, beam: Beam, log_probs: IndexedLogProbs, uniform: Float[Tensor, "B L"] | None) -> Candidates:
        if uniform is None and isinstance(log_probs, SearchLogProbs) and log_probs.can_rank(beam, self.options):
            return log_probs.top_candidates(beam, self.options)
        return super().candidates(beam, log_probs, uniform)

    def update_finished(
        self,
        finished: FinishedHypotheses,
        candidates: Candidates,
        coverage: Float[Tensor, "B W S"] | None,
        first_node: int,
        time: int,
    ) -> Float[Tensor, "B W"]:
        if coverage is not None or not kernels.can_use(candidates.log_probs):
            return super().update_finished(finished, candidates, coverage, first_node, time)
        return kernels.update_finished(
            candidates.log_probs,
            candidates.tokens,
            finished.scores,
            finished.nodes,
            finished.max_lengths,
            finished.length_penalties,
            first=first_node,
            length=time + 1,
            horizon=self.options.horizon,
            eos=self.options.eos,
        )
