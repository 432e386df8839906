"""The same texts read for their colors and for their animals: does the attention find the words that decide?

    python recipes/classification/colors_animals.py -o weights.html -o weights.png

A text is 15 to 24 words out of 1,000, among them up to four of 7 colors and up to four of 8 animals. One classifier names
the colors and another the animals; where there are none, the label is "none". Nobody tells either which words matter.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import torch
from classifier import Classifier, Examples, fit, predict
from command_line import add_output, count, draw, log, run
from reading import ATTENTIONS
from words import FIRST_WORD, encode

from nmt import Alignment

OBJECTIVES = {
    "colors": ("red", "orange", "yellow", "green", "blue", "purple", "brown"),
    "animals": ("cat", "dog", "horse", "fox", "owl", "bear", "frog", "whale"),
}
SYLLABLES = [f"{consonant}{vowel}" for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
FILLERS = random.Random(0).sample([*map("".join, itertools.product(SYLLABLES, repeat=2))], 1000 - 7 - 8)
VOCABULARY = {word: FIRST_WORD + place for place, word in enumerate([*itertools.chain(*OBJECTIVES.values()), *FILLERS])}
TRAIN, VALID, TEST = 832, 208, 260
PADDINGS = ("masked", "read")


def write_texts(seed: int) -> list[list[str]]:
    """Texts for training, validation and test."""
    author = random.Random(seed)
    return [write_text(author) for _ in range(TRAIN + VALID + TEST)]


def write_text(author: random.Random) -> list[str]:
    """Up to four words of each objective, at random places among words that mean nothing."""
    words = [word for names in OBJECTIVES.values() for word in author.sample(names, author.randint(0, 4))]
    words += author.choices(FILLERS, k=author.randint(15, 24) - len(words))
    return author.sample(words, len(words))


def labels_of(text: Sequence[str], objective: str) -> list[bool]:
    """Whether the text has each word of the objective, and whether it has none."""
    present = [word in text for word in OBJECTIVES[objective]]
    return [*present, not any(present)]


@dataclass(frozen=True)
class Trial:
    """One classifier to be trained."""

    objective: str
    attention: str
    padding: str
    seed: int
    epochs: int


@dataclass(frozen=True)
class Result:
    """The test of a classifier."""

    exact: int
    """Texts of which all labels are right."""
    share: float
    """Weight on the words that the labels name: the mean over all texts with such words."""
    labels: list[str]
    """What each text was classified as."""
    weights: list[list[float]]
    """The weight of each word of each text: the mean of the heads."""


def measure(trial: Trial) -> Result:
    """Train a classifier and test it. The same seed gives the same texts."""
    torch.set_num_threads(1)
    torch.manual_seed(trial.seed)
    texts, names = write_texts(trial.seed), [*OBJECTIVES[trial.objective], "none"]
    examples = Examples(encode(texts, VOCABULARY), torch.tensor([labels_of(text, trial.objective) for text in texts]))
    model = Classifier(len(VOCABULARY), len(names), attention=trial.attention, masked=trial.padding == "masked")
    fit(model, examples[:TRAIN], examples[TRAIN:-TEST], epochs=trial.epochs)
    probabilities, weights = predict(model, examples[-TEST:].ids)
    predicted, gold, shares = probabilities > 0.5, examples[-TEST:].labels, weights.mean(1)
    ids = torch.tensor([VOCABULARY[name] for name in OBJECTIVES[trial.objective]])
    named = torch.isin(examples[-TEST:].ids, ids)
    return Result(
        int((predicted == gold).all(1).sum()),
        float((shares * named).sum(1)[named.any(1)].mean()),
        [", ".join(itertools.compress(names, row)) for row in predicted.tolist()],
        [row[: len(text)] for row, text in zip(shares.tolist(), texts[-TEST:], strict=True)],
    )


def show(results: dict[Trial, Result]) -> Iterator[str]:
    """The lines of a table in Markdown: a row per kind of classifier, a figure per seed."""
    yield f"| objective | attention | padding | texts exactly right, of {TEST}, per seed | weight on the right words |"
    yield "|---|---|---|---|---|"
    for kind, group in itertools.groupby(results, lambda trial: (trial.objective, trial.attention, trial.padding)):
        rows = [results[trial] for trial in group]
        exact, share = " ".join(str(row.exact) for row in rows), sum(row.share for row in rows) / len(rows)
        yield f"| {' | '.join(kind)} | {exact} | {f'{share:.1%}' if share else '–'} |"


def read_twice(results: dict[Trial, Result], attention: str) -> list[Alignment]:
    """The first test texts of seed 1 with words of both objectives: what a classifier of each reads in them."""
    read = (attention, "masked", 1)
    pair = [row for trial, row in results.items() if (trial.attention, trial.padding, trial.seed) == read]
    texts = write_texts(1)[-TEST:]
    mixed = [place for place, text in enumerate(texts) if not any(labels_of(text, name)[-1] for name in OBJECTIVES)]
    return [
        Alignment(
            np.array([row.weights[place] for row in pair]),
            tuple(texts[place]),
            tuple(f"{name}: {row.labels[place]}" for name, row in zip(OBJECTIVES, pair, strict=True)),
        )
        for place in mixed[:20]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attention", action="append", choices=ATTENTIONS, help="only this kind; may be repeated")
    parser.add_argument("--seeds", type=count, default=5, help="seeds 1 to this one, each with texts of its own (5)")
    parser.add_argument("--epochs", type=count, default=10, help="passes over the training texts (10)")
    parser.add_argument("--jobs", type=count, default=2, help="trainings at the same time (2)")
    add_output(parser)
    options = parser.parse_args()
    attentions, seeds = options.attention or ATTENTIONS, range(1, options.seeds + 1)
    choices = itertools.product(OBJECTIVES, attentions, PADDINGS, seeds)
    trials, results = [Trial(*choice, options.epochs) for choice in choices], {}
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for trial, result in zip(trials, pool.map(measure, trials), strict=True):
            results[trial] = result
            kind = f"{trial.objective}, {trial.attention}, padding {trial.padding}, seed {trial.seed}"
            log(f"{len(results)} of {len(trials)}: {kind}: {result.exact} texts right")
    print(*show(results), sep="\n")
    draw(read_twice(results, attentions[0]), options.output, "Colors and animals")


if __name__ == "__main__":
    run(main)
