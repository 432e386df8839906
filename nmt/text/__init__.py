"""What text is: characters and their normal form, and sentences. It knows no corpus and no model."""

from nmt.text.sentences import split_sentences

__all__ = ["split_sentences"]
