"""Public corpora by name, and the embedded sample: where their text comes from, and how it gets to this machine."""
