"""Alignments: weights between words, the links read off them, links learned without a model, gold links and error rates."""
