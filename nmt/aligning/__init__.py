"""Which words a model links, and which ones people (or the sample's grammar) linked."""

from nmt.aligning.extraction import word_links
from nmt.aligning.gold import aligned_text, error_rate, gold_links
from nmt.aligning.matrices import word_alignment

__all__ = ["aligned_text", "error_rate", "gold_links", "word_alignment", "word_links"]
