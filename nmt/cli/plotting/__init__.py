"""`nmt plot`: draw alignments as pictures or as an HTML page."""
