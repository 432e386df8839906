"""Word alignment from parallel text alone, without a neural model: IBM model 1 and hidden Markov models."""
