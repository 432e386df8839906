"""Shrink a recipe so that all of its steps run in about a minute: the first pairs of its text, few updates, the same model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from nmt.data.locators import named_rows
from nmt.recipe import Recipe, SubwordsConfig, parse_recipe
from nmt.training.text import TrainingText

PAIRS = {"train": 400, "valid": 50, "test": 50}
"""How many pairs are taken of each text."""
UPDATES = 6
_MORE_TOKENS = 200
"""Tokens of a vocabulary besides characters, bytes and special tokens; 400 short sentences allow as many."""
_SPECIAL, _BYTES = 4, 256


def smoke_recipe(recipe: Recipe) -> Recipe:
    """The same model with a small vocabulary, a few updates, and two validations, on the first pairs of each text.

    Word links that a file has for the whole training text are replaced by those of `nmt links` for its first pairs.

    Raises:
        DataError: the training or validation text cannot be used.
        UsageError: a filter needs a package that is not installed.
    """
    tree: dict[str, Any] = json.loads(recipe.model_dump_json())
    for split, count in PAIRS.items():
        if locator := tree["data"][split]:
            tree["data"][split] = _first(locator, count) if isinstance(locator, str) else _first_of_each(locator, count)
    training = tree["training"]
    training.update(epochs=UPDATES, updates=UPDATES, log_every=UPDATES // 2)
    training["validation"].update(every=UPDATES // 2, patience=None)
    guided, training["guided_alignment"] = training["guided_alignment"], None
    text = TrainingText.load(parse_recipe(tree, recipe.name))  # without links, which may take long to learn
    tree["subwords"]["size"] = min(recipe.subwords.size, _vocabulary_size(recipe.subwords, text))
    if guided is not None:
        links = guided["links"] if guided["links"] in ("gold", "hmm") else "hmm"
        training["guided_alignment"] = {**guided, "links": links}
    return parse_recipe(tree, recipe.name)


def describe_smoke() -> str:
    """What a smoke run is limited to, in words."""
    pairs = ", ".join(f"{count} {split}" for split, count in PAIRS.items())
    return f"{pairs} pairs, {UPDATES} updates"


def _first(locator: str, count: int) -> str:
    """The locator of the first pairs of a text. Of a data set of the hub, no others are then downloaded."""
    place, rows = named_rows(locator)
    start = (rows.start or 0) if rows else 0
    stop = start + count if rows is None or rows.stop is None else min(start + count, rows.stop)
    return f"{place}[{start}:{stop}]"


def _first_of_each(mixture: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The same mixture of the first pairs of its corpora, together as many."""
    return [{**item, "corpus": _first(item["corpus"], max(count // len(mixture), 1))} for item in mixture]


def _vocabulary_size(config: SubwordsConfig, text: TrainingText) -> int:
    """A vocabulary size that a small training text allows."""
    sides: list[Iterable[str]] = [text.train.untagged.source, text.train.target]
    base = _SPECIAL + (_BYTES if config.byte_fallback else 0) + len({*chain.from_iterable(text.train.tags)})
    return base + min(_units(config, lines) for lines in ([chain(*sides)] if config.joint else sides))


def _units(config: SubwordsConfig, lines: Iterable[str]) -> int:
    """How many words or other tokens of these lines a vocabulary can have."""
    if config.kind == "word":
        words = {word for line in lines for word in line.split()}
        return max(len(words) * 3 // 4, 4)  # the others are unknown
    count = len({character for line in lines for character in line})
    if config.kind == "char":
        return count // 2 if config.byte_fallback else count  # the others are bytes
    return count + 1 + _MORE_TOKENS
