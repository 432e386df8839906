"""Every equation of the model in straight-line NumPy loops, one sentence at a time: what the torch code is held against.

Weights come as a dict of arrays under the names of the torch parameters, settings as the plain tree of a recipe's `model`
section. Nothing here knows torch, nmt, batches or padding.
"""
