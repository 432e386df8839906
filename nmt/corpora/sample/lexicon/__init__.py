"""The bilingual lexicon: `lexicon.yaml` has its entries, the modules read them, once, on import."""
