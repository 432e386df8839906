"""A classifier with its vocabulary: it learns from rows of a table, reads text, and is kept in one file. `csv_labels.py` uses it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any

import torch
from classifier import Classifier, Examples, fit, predict
from command_line import log
from labeled_table import read_labels
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from words import FIRST_WORD, PADDING, encode, encode_sentences, key, read_text

from nmt import DataError

MOST_WORDS = 30_000
"""In the vocabulary."""


def choose(probabilities: Tensor, columns: int) -> Tensor:
    """The labels of each text [N C]: the likeliest class or, of several columns, all that are likely."""
    if columns > 1:
        return probabilities > 0.5
    return probabilities.argmax(1, keepdim=True) == torch.arange(probabilities.shape[1])


def joined(names: Sequence[str], marks: Tensor) -> str:
    """The names of the labels that a text has."""
    return ", ".join(compress(names, marks.tolist())) or "none"


@dataclass(frozen=True)
class TextClassifier:
    """A classifier with all that it needs to read text.

    Attributes:
        model: gives probabilities and weights.
        vocabulary: the ids of words.
        names: the labels.
        settings: `attention` and `encoder` of the model, how many `words` of a text it reads, the language of its `sentences` if
            it knows them, and the `columns` of labels.
    """

    model: Classifier
    vocabulary: dict[str, int]
    names: list[str]
    settings: dict[str, Any]

    @classmethod
    def untrained(cls, vocabulary: dict[str, int], names: list[str], settings: dict[str, Any]) -> TextClassifier:
        attention, encoder, hierarchical = settings["attention"], settings["encoder"], bool(settings["sentences"])
        model = Classifier(len(vocabulary), len(names), attention=attention, encoder=encoder, hierarchical=hierarchical)
        return cls(model, vocabulary, names, settings)

    def save(self, path: Path) -> None:
        """Write it to a file. Raises DataError if that is impossible."""
        description = json.dumps([self.vocabulary, self.names, self.settings])
        try:
            save_file(self.model.state_dict(), path, {"classifier": description})
        except (OSError, SafetensorError):
            raise DataError(f"Cannot write {path}.") from None

    @classmethod
    def load(cls, path: Path) -> TextClassifier:
        """Raises DataError if the file is none of `save`."""
        try:
            with safe_open(path, "pt") as file:
                classifier = cls.untrained(*json.loads(file.metadata()["classifier"]))
                classifier.model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 -- no dict
        except (OSError, SafetensorError, TypeError, KeyError, ValueError, RuntimeError):
            raise DataError(f"{path} is no classifier that --save has written.") from None
        return classifier

    def encode(self, texts: Sequence[Sequence[Sequence[str]]]) -> Tensor:
        keys = [[[*map(key, sentence)] for sentence in text] for text in texts]
        if self.settings["sentences"]:
            return encode_sentences(keys, self.vocabulary)
        return encode(map(chain.from_iterable, keys), self.vocabulary)

    def read(self, texts: Sequence[Sequence[Sequence[str]]]) -> tuple[Tensor, list[Tensor]]:
        """The probability of each label, and the weight of each word of each text: the mean of the heads."""
        ids = self.encode(texts)
        probabilities, weights = predict(self.model, ids)
        return probabilities, [row[words] for row, words in zip(weights.mean(1), ids != PADDING, strict=True)]

    def choose(self, probabilities: Tensor) -> Tensor:
        return choose(probabilities, self.settings["columns"])

    def classified(self, lines: Sequence[str]) -> Iterator[str]:
        """Labels, probabilities, text, and words with weights of each line."""
        texts = [read_text(line, self.settings["words"], self.settings["sentences"]) for line in lines]
        probabilities, weights = self.read(texts)
        for line, text, row, read, marks in zip(
            lines, texts, probabilities.tolist(), weights, self.choose(probabilities), strict=True
        ):
            likely = " ".join(f"{name}:{value:.3f}" for name, value in zip(self.names, row, strict=True))
            words = " ".join(f"{word}:{weight:.3f}" for word, weight in zip(chain(*text), read.tolist(), strict=False))
            yield "\t".join([joined(self.names, marks), likely, line, words])


@dataclass(frozen=True)
class Outcome:
    """What a training has given: the classifier, its answers on the test texts, and whether each is right."""

    classifier: TextClassifier
    texts: list[list[list[str]]]
    answers: Tensor
    gold: Tensor

    @property
    def share(self) -> float:
        return float((self.answers == self.gold).all(1).float().mean())


def learn(
    rows: Sequence[Sequence[str]], columns: Sequence[str], settings: dict[str, Any], seed: int, epochs: int
) -> Outcome:
    """Split the rows, which hold a text and its labels, and train on them."""
    rows = random.Random(seed).sample(rows, len(rows))
    torch.manual_seed(seed)
    names, labels = read_labels([row[1:] for row in rows], columns)
    texts = [read_text(row[0], settings["words"], settings["sentences"]) for row in rows]
    test, valid = len(rows) // 5, len(rows) * 3 // 10  # where the test and the validation texts end
    frequencies = Counter(map(key, chain(*chain(*texts[valid:])))).most_common(MOST_WORDS)
    vocabulary = {word: FIRST_WORD + place for place, (word, number) in enumerate(frequencies) if number > 1}
    classifier = TextClassifier.untrained(vocabulary, names, settings)
    examples = Examples(classifier.encode(texts), labels)
    fit(classifier.model, examples[valid:], examples[test:valid], epochs=epochs, report=log)
    answers = classifier.choose(predict(classifier.model, examples[:test].ids)[0])
    return Outcome(classifier, texts[:test], answers, labels[:test])
