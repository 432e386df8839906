"""Word links learnt from parallel text alone, without a neural model: IBM model 1, hidden Markov models, agreement."""
