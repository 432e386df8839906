"""Learn the labels of texts, such as sentiment or toxicity, from a table, and show which words decide.

    python recipes/classification/csv_labels.py reviews.csv --text review --label sentiment -o weights.html
    python recipes/classification/csv_labels.py comments.csv --text comment --label toxic --label insult
    python recipes/classification/csv_labels.py reviews.csv --text review --label sentiment --classify new.txt > new.tsv

One --label is a column of classes, of which each text has one. Several are columns of 0 and 1: a text may have any of them.
A fifth of the texts is held out for the test, a tenth for the choice of the best epoch.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, compress
from pathlib import Path

import torch
from classifier import ATTENTIONS, FIRST_WORD, Classifier, Examples, encode, fit, predict
from command_line import add_output, count, draw, log, run
from labeled_table import read_labels, read_lines, read_rows
from torch import Tensor

from nmt import Alignment

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="a .tsv, .csv, .jsonl or .parquet file with a header")
    parser.add_argument("--text", required=True, metavar="COLUMN", help="the texts")
    parser.add_argument("--label", required=True, metavar="COLUMN", action="append", help="the labels; may be repeated")
    parser.add_argument("--classify", metavar="FILE", type=Path, help="then write labels and text of each of its lines")
    add_output(parser)
    parser.add_argument("--attention", choices=ATTENTIONS, default="additive", help="(additive)")
    parser.add_argument("--epochs", metavar="N", type=count, default=10, help="passes over the training texts (10)")
    parser.add_argument("--words", metavar="N", type=count, default=200, help="read this many words of a text (200)")
    parser.add_argument("--seed", metavar="N", type=count, default=1, help="of the split and the training (1)")
    options = parser.parse_args()

    rows, lines = read_rows(options.table, [options.text, *options.label]), read_lines(options.classify)
    random.Random(options.seed).shuffle(rows)
    torch.manual_seed(options.seed)
    names, labels = read_labels([row[1:] for row in rows], options.label)
    texts = [WORD.findall(row[0])[: options.words] for row in rows]
    test, valid = len(rows) // 5, len(rows) * 3 // 10  # where the test and the validation texts end
    frequencies = Counter(map(key, chain.from_iterable(texts[valid:]))).most_common(MOST_WORDS)
    vocabulary = {word: FIRST_WORD + place for place, (word, number) in enumerate(frequencies) if number > 1}
    examples = Examples(encode([map(key, text) for text in texts], vocabulary), labels)
    model = Classifier(len(vocabulary), len(names), attention=options.attention)
    fit(model, examples[valid:], examples[test:valid], epochs=options.epochs, report=log)

    probabilities, weights = predict(model, examples[:test].ids)
    answers = choose(probabilities, len(options.label))
    for line in report(names, answers, labels[:test]):
        (log if options.classify else print)(line)
    if lines:
        new = encode([map(key, WORD.findall(line)[: options.words]) for line in lines], vocabulary)
        for line, marks in zip(lines, choose(predict(model, new)[0], len(options.label)), strict=True):
            print(joined(names, marks), line, sep="\t")
    shown = [
        Alignment(
            weights[place].mean(0, keepdim=True)[:, : len(text)].numpy(),
            tuple(text),
            (f"{joined(names, answers[place])} (labeled {joined(names, labels[place])})",),
        )
        for place, text in enumerate(texts[: min(test, MOST_TEXTS)])
    ]
    draw(shown, options.output, options.table.name)


if __name__ == "__main__":
    run(main)
