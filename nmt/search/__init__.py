"""Search: a step function -> hypotheses, by greedy search, beam search or sampling. It knows no model."""

from nmt.search.hypothesis import Hypothesis
from nmt.search.loop import Search
from nmt.search.options import SearchOptions
from nmt.search.sampling import Sampling

__all__ = ["Hypothesis", "Sampling", "Search", "SearchOptions"]
