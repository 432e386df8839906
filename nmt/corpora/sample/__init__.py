"""A sample English-German corpus, generated from a small bilingual grammar written for this project.

The mapping from English to German is a function: equal sources have equal targets. The held-out splits test
composition. A deterministic hash *reserves* one in twelve combinations: of an adjective with a noun, a verb with an
object, or a verb with a tense and a clause type. No training sentence contains a reserved combination, every held-out
sentence contains one, and all words of a held-out sentence occur in training.

`lexicon` holds the words, `grammar` the syntax of both languages, `author` draws sentences, `corpus` assigns them to splits.
"""

from nmt.corpora.sample.corpus import SIZES, SPLITS, examples, links
from nmt.corpora.sample.grammar.phrases import Example

__all__ = ["SIZES", "SPLITS", "Example", "examples", "links"]
