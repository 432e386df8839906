"""Independent reference: every equation of the model in plain NumPy loops, one sentence at a time.

Weights are a dict of arrays under the names of the torch parameters; settings are the `model` section of a recipe as a plain dict.
Nothing here imports torch or nmt, and there are no batches and no padding.
"""
