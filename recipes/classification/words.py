"""Words of texts, and their ids. The programs beside it use it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from nmt.text import split_sentences

PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2  # ids: the first two are no words
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
"""What stands between spaces. Chinese and Japanese have none, so each of their characters counts as a word."""


def key(word: str) -> str:
    """The form in which the classifier knows a word: without capitals and outer punctuation."""
    return word.lower().strip(".,;:!?\"'()[]…“”„«»") or word


def read_text(line: str, most: int, language: str | None = None) -> list[list[str]]:
    """The words of each sentence of a text, `most` in all. Without a language, all of the text is one sentence."""
    sentences = list[list[str]]()
    for piece in split_sentences(line, language) if language else [line]:
        if words := WORD.findall(piece)[:most]:
            sentences.append(words)
            most -= len(words)
    return sentences


def encode(texts: Iterable[Iterable[str]], vocabulary: Mapping[str, int]) -> Int[Tensor, "N S"]:
    """The ids of the words of each text, padded to the longest. A text without words is one unknown word."""
    rows = [torch.tensor([vocabulary.get(word, UNKNOWN) for word in text] or [UNKNOWN]) for text in texts]
    return pad_sequence(rows, batch_first=True, padding_value=PADDING)


def encode_sentences(texts: Iterable[Sequence[Iterable[str]]], vocabulary: Mapping[str, int]) -> Int[Tensor, "N T S"]:
    """The ids of the words of each sentence of each text."""
    encoded = [encode(sentences or [[]], vocabulary) for sentences in texts]
    most, longest = map(max, zip(*(ids.shape for ids in encoded), strict=True))
    return torch.stack([pad(ids, (0, longest - ids.shape[1], 0, most - len(ids)), value=PADDING) for ids in encoded])
