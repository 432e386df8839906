"""Learn the labels of texts, such as sentiment or toxicity, from a table, and show which words decide.

    python recipes/classification/csv_labels.py reviews.csv --text review --label sentiment -o weights.html
    python recipes/classification/csv_labels.py comments.csv --text comment --label toxic --label insult --seeds 5
    python recipes/classification/csv_labels.py reviews.csv --text review --label sentiment --save reviews.safetensors
    python recipes/classification/csv_labels.py --load reviews.safetensors --classify new.txt > new.tsv

One --label is a column of classes, of which each text has one. Several are columns of 0 and 1: a text may have any of them.
A fifth of the texts is held out for the test, a tenth for the choice of the best epoch. --classify writes labels, their probabilities,
the line, and the weight of each of its words.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from classifier import ATTENTIONS, ENCODERS, FIRST_WORD, Classifier, Examples, encode, fit, predict
from command_line import add_output, count, draw, log, run
from labeled_table import read_labels, read_lines, read_rows
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nmt import Alignment, DataError
from nmt.runtime.files import replacing

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
"""What stands between spaces. Chinese and Japanese have none, so each of their characters counts as a word."""
MOST_WORDS, MOST_TEXTS = 30_000, 50
"""In the vocabulary; on a page."""


def key(word: str) -> str:
    """The form in which the classifier knows a word: without capitals and outer punctuation."""
    return word.lower().strip(".,;:!?\"'()[]…“”„«»") or word


def choose(probabilities: Tensor, columns: int) -> Tensor:
    """The labels of each text [N C]: the likeliest class or, of several columns, all that are likely."""
    if columns > 1:
        return probabilities > 0.5
    return probabilities.argmax(1, keepdim=True) == torch.arange(probabilities.shape[1])


def joined(names: Sequence[str], marks: Tensor) -> str:
    """The names of the labels that a text has."""
    return ", ".join(compress(names, marks.tolist())) or "none"


def report(names: Sequence[str], predicted: Tensor, gold: Tensor) -> Iterator[str]:
    """The lines of a table in Markdown with precision, recall and F1 of each label, and the figures of all."""
    yield "| label | texts | precision | recall | F1 |"
    yield "|---|---|---|---|---|"
    hits, answers, texts = (predicted & gold).sum(0), predicted.sum(0), gold.sum(0)
    f1 = 2 * hits / (answers + texts).clamp(min=1)
    scores = torch.stack([hits / answers.clamp(min=1), hits / texts.clamp(min=1), f1], dim=1)
    for name, number, row in zip(names, texts.tolist(), scores.tolist(), strict=True):
        yield f"| {name} | {number:,} | {' | '.join(f'{score:.3f}' for score in row)} |"
    commonest = max(Counter(map(tuple, gold.tolist())).values())
    right = (predicted == gold).all(1).sum() / len(gold)
    yield f"\nRight: {right:.1%} of {len(gold):,} test texts; always the commonest answer: {commonest / len(gold):.1%}."
    yield f"Mean F1: {f1.mean():.3f}."


@dataclass(frozen=True)
class TextClassifier:
    """A classifier with all that it needs to read text.

    Attributes:
        model: gives probabilities and weights.
        vocabulary: the ids of words.
        names: the labels.
        settings: `attention` and `encoder` of the model, how many `words` of a text it reads, and the `columns` of labels.
    """

    model: Classifier
    vocabulary: dict[str, int]
    names: list[str]
    settings: dict[str, Any]

    @classmethod
    def untrained(cls, vocabulary: dict[str, int], names: list[str], settings: dict[str, Any]) -> TextClassifier:
        ways = {"attention": settings["attention"], "encoder": settings["encoder"]}
        return cls(Classifier(len(vocabulary), len(names), **ways), vocabulary, names, settings)

    def save(self, path: Path) -> None:
        """Write it to a file. Raises DataError if that is impossible."""
        description = json.dumps([self.vocabulary, self.names, self.settings])
        try:
            with replacing(path) as new:
                save_file(self.model.state_dict(), new, {"classifier": description})
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

    def encode(self, texts: Sequence[Sequence[str]]) -> Tensor:
        return encode([map(key, text) for text in texts], self.vocabulary)

    def choose(self, probabilities: Tensor) -> Tensor:
        return choose(probabilities, self.settings["columns"])

    def classified(self, lines: Sequence[str]) -> Iterator[str]:
        """Labels, probabilities, text, and words with weights of each line."""
        texts = [WORD.findall(line)[: self.settings["words"]] for line in lines]
        probabilities, weights = predict(self.model, self.encode(texts))
        for line, text, row, read, marks in zip(
            lines, texts, probabilities.tolist(), weights.mean(1), self.choose(probabilities), strict=True
        ):
            likely = " ".join(f"{name}:{value:.3f}" for name, value in zip(self.names, row, strict=True))
            words = " ".join(f"{word}:{weight:.3f}" for word, weight in zip(text, read.tolist(), strict=False))
            yield "\t".join([joined(self.names, marks), likely, line, words])


@dataclass(frozen=True)
class Outcome:
    """What a training has given: the classifier, its answers on the test texts, and whether each is right."""

    classifier: TextClassifier
    texts: list[list[str]]
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
    texts = [WORD.findall(row[0])[: settings["words"]] for row in rows]
    test, valid = len(rows) // 5, len(rows) * 3 // 10  # where the test and the validation texts end
    frequencies = Counter(map(key, chain.from_iterable(texts[valid:]))).most_common(MOST_WORDS)
    vocabulary = {word: FIRST_WORD + place for place, (word, number) in enumerate(frequencies) if number > 1}
    classifier = TextClassifier.untrained(vocabulary, names, settings)
    examples = Examples(classifier.encode(texts), labels)
    fit(classifier.model, examples[valid:], examples[test:valid], epochs=epochs, report=log)
    answers = classifier.choose(predict(classifier.model, examples[:test].ids)[0])
    return Outcome(classifier, texts[:test], answers, labels[:test])


def over_seeds(shares: Sequence[float]) -> str:
    """The mean of several trainings, with an interval that holds it in about 95 % of all such experiments."""
    error = stdev(shares) / len(shares) ** 0.5
    each = " ".join(f"{share:.1%}" for share in shares)
    return (
        f"\nRight over {len(shares)} seeds: {mean(shares):.1%} ± {2 * error:.1%} (two standard errors); each: {each}."
    )


def draw_outcome(outcome: Outcome, outputs: Sequence[str], title: str) -> None:
    """Write what `-o` names: test texts, whose words are shaded by their weights."""
    texts, names = outcome.texts[:MOST_TEXTS], outcome.classifier.names
    weights = predict(outcome.classifier.model, outcome.classifier.encode(texts))[1].mean(1, keepdim=True)
    shown = [
        Alignment(
            read[:, : len(text)].numpy(), tuple(text), (f"{joined(names, answer)} (labeled {joined(names, gold)})",)
        )
        for text, read, answer, gold in zip(texts, weights, outcome.answers, outcome.gold, strict=False)
    ]
    draw(shown, outputs, title)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", help="a .tsv, .csv, .jsonl or .parquet file with a header")
    parser.add_argument("--text", metavar="COLUMN", help="the texts")
    parser.add_argument("--label", metavar="COLUMN", action="append", help="the labels; may be repeated")
    parser.add_argument("--classify", metavar="FILE", type=Path, help="then classify each of its lines")
    add_output(parser)
    parser.add_argument("--attention", choices=ATTENTIONS, default="additive", help="(additive)")
    parser.add_argument("--encoder", choices=ENCODERS, default="gru", help="none: a text is a set of words (gru)")
    parser.add_argument("--epochs", metavar="N", type=count, default=10, help="passes over the training texts (10)")
    parser.add_argument("--words", metavar="N", type=count, default=200, help="read this many words of a text (200)")
    parser.add_argument("--seed", metavar="N", type=count, default=1, help="of the split and the training (1)")
    parser.add_argument(
        "--seeds", metavar="N", type=count, default=1, help="train with so many seeds, from --seed on (1)"
    )
    parser.add_argument("--save", metavar="FILE", type=Path, help="keep the classifier (of the first seed)")
    parser.add_argument("--load", metavar="FILE", type=Path, help="a kept classifier, instead of a table")
    options = parser.parse_args()
    if options.load is None:
        missing = [name for name in ("table", "text", "label") if getattr(options, name) is None]
        if missing:
            names = ", ".join(name if name == "table" else f"--{name}" for name in missing)
            parser.error(f"the following arguments are required: {names}")
    elif options.table or options.classify is None:
        parser.error("--load classifies the lines of --classify, without a table")
    if (options.encoder, options.attention) == ("none", "last"):
        parser.error("--attention last is the last state of an encoder: choose another one for --encoder none")
    if options.save is not None and not options.save.absolute().parent.is_dir():
        parser.error(f"--save: there is no folder {options.save.parent}")  # before the training, not after it
    return options


def main() -> None:
    options = parse()
    lines = read_lines(options.classify)
    if options.load is not None:
        classifier = TextClassifier.load(options.load)
    else:
        rows = read_rows(options.table, [options.text, *options.label])
        settings = {
            "attention": options.attention,
            "encoder": options.encoder,
            "words": options.words,
            "columns": len(options.label),
        }
        seeds = range(options.seed, options.seed + options.seeds)
        outcomes = [learn(rows, options.label, settings, seed, options.epochs) for seed in seeds]
        first, say = outcomes[0], log if options.classify else print
        classifier = first.classifier
        for line in report(classifier.names, first.answers, first.gold):
            say(line)
        if len(outcomes) > 1:
            say(over_seeds([outcome.share for outcome in outcomes]))
        draw_outcome(first, options.output, options.table.name)
    if options.save is not None:
        classifier.save(options.save)
    for line in classifier.classified(lines) if lines else ():
        print(line)


if __name__ == "__main__":
    run(main)
