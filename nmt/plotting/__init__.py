"""Plotting: alignments and curves -> pictures and the interactive page."""
