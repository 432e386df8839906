"""Evaluation: text -> BLEU, chrF and TER by sacreBLEU, with signatures and significance."""

from nmt.evaluation.metrics import MetricScore, bleu, evaluate, format_scores

__all__ = ["MetricScore", "bleu", "evaluate", "format_scores"]
