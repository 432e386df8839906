"""Matrix products in 8-bit integers, element by element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def int8_product(values: Numbers, weight: Numbers, bias: Numbers, *, most: int) -> tuple[Numbers, Numbers]:
    """y_ig = s_i s_g (x'_i - z) . A'_g + b_g, [N G], and a bound of its distance from x_i . A_g + b_g.

    s_g = max |A_g| / 127 and s_i = max |x_i| / `most`. Rounding errors are at most half a step, and
    |x A - x' A'| <= |x - x'| |A| + |x'| |A - A'|.
    """
    product = np.zeros((len(values), len(weight)))
    bound = np.zeros_like(product)
    for g, row in enumerate(weight):
        row_step = np.abs(row).max() / 127 or 1.0
        rounded = np.rint(row / row_step)
        for n, value in enumerate(values):
            step = np.abs(value).max() / most or 1.0
            quantized = np.floor(value / step + 0.5)
            product[n, g] = step * row_step * sum(a * b for a, b in zip(quantized, rounded, strict=True)) + bias[g]
            bound[n, g] = step / 2 * np.abs(row).sum() + row_step / 2 * step * np.abs(quantized).sum()
    return product, bound
