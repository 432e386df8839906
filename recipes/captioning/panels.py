"""Draw attention over pictures, word by word, as in figure 2 of "Show, Attend and Tell" (Xu et al. 2015)."""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

VEIL = LinearSegmentedColormap.from_list("veil", [(0.06, 0.07, 0.1, 0.82), (0.06, 0.07, 0.1, 0.0)])
"""Darkens cells without weight, and leaves the cell of the largest weight as it is."""


class PictureAttention(NamedTuple):
    """A picture [3 H W] from 0 to 1, words about it, and the attention of each word over a grid of cells [T rows columns]."""

    pixels: np.ndarray
    words: list[str]
    weights: np.ndarray


def draw_panels(pictures: list[PictureAttention], path: str) -> None:
    """Draw a row per picture: as it is, then once per word, bright where the word was read and dark elsewhere."""
    columns = 1 + max(len(picture.words) for picture in pictures)
    figure, grid = plt.subplots(
        len(pictures), columns, squeeze=False, figsize=(1.1 * columns, 1.32 * len(pictures)), layout="constrained"
    )
    for picture, row in zip(pictures, grid, strict=True):
        draw_panel(row[0], picture.pixels, "")
        for axes, word, weights in zip(row[1:], picture.words, picture.weights, strict=False):
            draw_panel(axes, picture.pixels, word)
            _, height, width = picture.pixels.shape
            extent, most = (-0.5, width - 0.5, height - 0.5, -0.5), weights.max() or 1
            axes.imshow(weights, cmap=VEIL, vmin=0, vmax=most, extent=extent, interpolation="bilinear")
        for axes in row[1 + len(picture.words) :]:
            axes.set_axis_off()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_panel(axes: Axes, pixels: np.ndarray, title: str) -> None:
    """Draw a picture without ticks."""
    axes.imshow(pixels.transpose(1, 2, 0))
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=10, pad=4)
