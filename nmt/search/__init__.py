"""Search: a step function -> hypotheses, by greedy search, beam search or sampling. It knows no model."""

from nmt.search.hypothesis import Hypothesis
from nmt.search.loop import beam_search, greedy, sample
from nmt.search.sampling import Sampling

__all__ = ["Hypothesis", "Sampling", "beam_search", "greedy", "sample"]
