"""The splits of the sample corpus."""

import functools
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from nmt.corpora.sample.author import Author
from nmt.corpora.sample.grammar.phrases import Combination, Example, Phrase, write

SIZES = {"train": 24_000, "valid": 500, "test": 1_000}
SPLITS = tuple(SIZES)
SEED = 1514
RESERVED_ONE_IN = 12
FAMILIAR = 8  # how often the training split must contain every word of a held-out sentence
LENGTHS = range(4, 17)


class Draft(NamedTuple):
    """An example and the combinations that it is made of."""

    example: Example
    combinations: tuple[Combination, ...]

    @property
    def held_out(self) -> bool:
        """Whether the example contains a combination that the training split must not show."""
        return any(map(reserved, self.combinations))


@functools.cache
def reserved(combination: Combination) -> bool:
    """Reserve a fixed share of all combinations for the held-out splits, by a hash that never changes."""
    return zlib.crc32(" ".join(combination).encode()) % RESERVED_ONE_IN == 0


def repetitive(phrase: Phrase) -> bool:
    """Tell whether a German noun or name occurs twice: ``Der Bäcker geht zum Bäcker``."""
    names = [word.text for word in phrase.german if word.text[0].isupper()]
    return len(set(names)) < len(names)


def drafts(seed: int = SEED) -> Iterator[Draft]:
    """Generate sentences endlessly, without repeating a source or a target."""
    author, earlier = Author(seed), set[str]()
    while True:
        phrase, sign = author.sentence()
        if len(phrase.english) not in LENGTHS or len(phrase.german) not in LENGTHS or repetitive(phrase):
            continue
        example = write(phrase, sign)
        if example.source not in earlier and example.target not in earlier:
            earlier |= {example.source, example.target}
            yield Draft(example, phrase.combinations)


def vocabulary(example: Example) -> list[str]:
    """Return the words of both sides, without the signs attached to them."""
    return [word.strip(".,?") for word in f"{example.source} {example.target}".split()]


@functools.cache
def corpus() -> dict[str, tuple[Draft, ...]]:
    """Assign the drafts to splits: reserved combinations to the held-out splits, all others to training.

    Held-out sentences with a word that is rare in training are dropped: they would test memory, not composition.
    """
    train: list[Draft] = []
    held_out: list[Draft] = []
    for draft in drafts():
        (held_out if draft.held_out else train).append(draft)
        if len(train) == SIZES["train"]:
            break
    counts = Counter(word for draft in train for word in vocabulary(draft.example))
    familiar = [draft for draft in held_out if all(counts[word] >= FAMILIAR for word in vocabulary(draft.example))]
    valid, test = SIZES["valid"], SIZES["test"]
    return {"train": tuple(train), "valid": tuple(familiar[:valid]), "test": tuple(familiar[valid : valid + test])}


@functools.cache
def examples(split: str) -> tuple[Example, ...]:
    """Return a split of the sample corpus: ``train``, ``valid`` or ``test``."""
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r} in the sample corpus; choose one of {', '.join(SPLITS)}.")
    return tuple(draft.example for draft in corpus()[split])


def links(split: str, *, source: str) -> list[frozenset[tuple[int, int]]]:
    """Return the links of each pair of a split, words of the ``source`` language first: ``en`` or ``de``."""
    pairs = [example.links for example in examples(split)]
    return pairs if source == "en" else [frozenset((german, english) for english, german in pair) for pair in pairs]
