"""Share models: a description, a model card, one file, the Hugging Face hub."""
