"""Attentional recurrent translation: train, translate, score, and see the alignments."""

__version__ = "0.1.0"
