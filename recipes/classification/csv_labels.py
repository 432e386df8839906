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
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import mean, stdev

import torch
from command_line import add_output, count, draw, log, run
from labeled_table import read_lines, read_rows
from reading import ATTENTIONS
from text_classifier import Outcome, TextClassifier, joined, learn
from torch import Tensor

from nmt import Alignment

MOST_TEXTS = 50
"""On a page."""


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


def over_seeds(shares: Sequence[float]) -> str:
    """The mean of several trainings, with an interval that holds it in about 95 % of all such experiments."""
    error = stdev(shares) / len(shares) ** 0.5
    listed = " ".join(f"{share:.1%}" for share in shares)
    return (
        f"\nRight over {len(shares)} seeds: {mean(shares):.1%} ± {2 * error:.1%} (two standard errors); each: {listed}."
    )


def draw_outcome(outcome: Outcome, outputs: Sequence[str], title: str) -> None:
    """Write what `-o` names: test texts, whose words are shaded by their weights."""
    texts, names = outcome.texts[:MOST_TEXTS], outcome.classifier.names
    shown = [
        Alignment(
            read.numpy()[None], tuple(chain(*text)), (f"{joined(names, answer)} (labeled {joined(names, gold)})",)
        )
        for text, read, answer, gold in zip(
            texts, outcome.classifier.read(texts)[1], outcome.answers, outcome.gold, strict=False
        )
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
    parser.add_argument(
        "--encoder", choices=("gru", "none"), default="gru", help="none: a text is a set of words (gru)"
    )
    parser.add_argument(
        "--sentences",
        metavar="LANGUAGE",
        help="a text is sentences, in a language such as en: read each, then all of them",
    )
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
            "sentences": options.sentences,
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
