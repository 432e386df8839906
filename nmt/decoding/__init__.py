"""Decoding: model and text -> text. Search needs no more than the step function of a model."""

from nmt.decoding.search import Hypothesis, beam_search, greedy, sample

__all__ = ["Hypothesis", "beam_search", "greedy", "sample"]
