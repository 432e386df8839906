"""Plotting: alignments, attention over pictures and curves -> pictures and the interactive page."""

from nmt.plotting.heatmap import plot_alignment
from nmt.plotting.pictures import PictureAttention, plot_picture_attention

__all__ = ["PictureAttention", "plot_alignment", "plot_picture_attention"]
