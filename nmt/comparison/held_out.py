"""The held-out text that models are measured on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from nmt.alignment.gold import aligned_text, gold_links
from nmt.alignment.links import GoldLinks
from nmt.bundle.languages import choose_direction
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_corpus
from nmt.errors import DataError, UsageError
from nmt.recipe import Recipe
from nmt.runtime.wording import counted


@dataclass(frozen=True)
class HeldOut:
    """The held-out text that all models are measured on.

    Attributes:
        corpus: the text to translate.
        aligned: the text with gold links, which may be the same.
        gold: its links; None if there is no such text.
    """

    corpus: ParallelCorpus
    aligned: ParallelCorpus
    gold: list[GoldLinks] | None

    @classmethod
    def load(cls, recipe: Recipe, split: str, aligned: str | None = None) -> HeldOut:
        """Load the only text of `test` or `valid` or that of a locator, and a text with gold links if there is one.

        Raises:
            UsageError: the recipe has no such text or several, or the text given for alignments has no gold links.
            DataError: a text cannot be read, or the numbers of lines and links differ.
        """
        texts = held_out_texts(recipe, split)
        corpus, (source, target) = texts[0], texts[0].languages
        if len(texts) > 1:
            raise UsageError(
                f"data.{split} has {len(texts)} texts, and this takes one, as in "
                f"--set 'data.{split}=[{{corpus: {corpus.name}, to: {target}}}]'."
            )
        with_links = aligned or aligned_text(recipe.data, corpus.name)
        gold = gold_links(with_links, source=source) if with_links else None
        if aligned and gold is None:
            raise UsageError(f"--aligned {aligned}: no gold links are known for this text; put them in a .align file.")
        aligned_corpus = corpus
        if with_links and with_links != corpus.name:
            aligned_corpus = load_corpus(with_links, source=source, target=target)
        if gold is not None and len(gold) != len(aligned_corpus):
            pairs = counted(len(aligned_corpus), "sentence pair")
            raise DataError(f"{aligned_corpus.name} has {pairs}, but gold links of {len(gold):,}.")
        return cls(corpus, aligned_corpus, gold)

    def describe(self) -> tuple[str, str | None]:
        """The text to translate, and the one with gold links, in words."""
        pairs, languages = counted(len(self.corpus), "sentence pair"), " → ".join(self.corpus.languages)
        text = f"{self.corpus.name} ({languages}), {pairs}"
        if self.gold is None:
            return text, None
        return text, f"{self.aligned.name}, {counted(len(self.aligned), 'sentence pair')}"


def held_out_texts(recipe: Recipe, split: str, to: str | None = None) -> list[ParallelCorpus]:
    """The texts of `test` or `valid`, or that of a locator. With `to`, those in a target language alone.

    Raises:
        UsageError: the recipe names no test text, or none in this language, or does not tell the language of a locator.
        DataError: a text cannot be read.
    """
    data = recipe.data
    of_recipe = {"test": data.texts(data.test), "valid": data.texts(data.valid)}
    if split in of_recipe:
        target = None if to is None else choose_direction(data, to)[1]
        named = [(text.corpus, data.direction(text)) for text in of_recipe[split]]
        if not named:
            raise UsageError("The recipe names no data.test: give --split valid or the locator of a corpus.")
        texts = [(corpus, direction) for corpus, direction in named if target in (None, direction[1])]
        if not texts:
            raise UsageError(f"data.{split} has no text in {target}: give the locator of a corpus as --split.")
    else:
        known = next((text for text in chain(*of_recipe.values()) if text.corpus == split and to is None), None)
        texts = [(split, choose_direction(data, to) if known is None else data.direction(known))]
    return [load_corpus(corpus, source=source, target=target) for corpus, (source, target) in texts]
