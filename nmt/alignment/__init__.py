"""Alignments: weights between words, the links read off them, links learnt without a model, gold links and error rates."""
