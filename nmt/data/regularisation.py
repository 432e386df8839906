"""Random segmentations of text into the pieces of a vocabulary: subword regularisation and BPE dropout.

SentencePiece draws them too, but from a generator that it salts in every process, so that no run could be repeated. Here
everything comes from the generator that is passed in.

Pieces that hold the word mark only in front never cross a word, so words are segmented one by one, and what is known about
a word is kept for its next occurrence. A vocabulary with other pieces has each text treated as one word.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random

MARK = "▁"
_REMEMBERED = 2**15
_MEMORABLE = 32
"""The longest word, in characters, that is worth remembering."""
_UNKNOWN_PENALTY = 10.0
"""How much less likely than the least likely piece an unknown character is; SentencePiece's own figure."""


@dataclass(frozen=True)
class Vocabulary:
    """The pieces that text is made of, control marks and bytes left out."""

    pieces: dict[str, tuple[int, float]]
    """Id and score of each: a log-probability, or for BPE the negative rank of the merge that makes it."""
    unknown: int
    """The id of what no piece covers."""
    bytes: Sequence[int]
    """The ids of the 256 bytes that then spell it; empty without byte fallback."""

    @property
    def is_bpe(self) -> bool:
        """Whether the scores are ranks of merges."""
        return all(score.is_integer() for _, score in self.pieces.values())

    def spell(self, parts: Sequence[str]) -> list[int]:
        """The ids of consecutive parts of a word: pieces, or single characters that may be unknown."""
        ids: list[int] = []
        for part in parts:
            if part in self.pieces:
                ids.append(self.pieces[part][0])
            elif self.bytes:
                ids.extend(self.bytes[byte] for byte in part.encode())
            elif not ids or ids[-1] != self.unknown:  # unknown neighbours are one unknown piece
                ids.append(self.unknown)
        return ids


class Sampler:
    """Draws segmentations of normalised text, in which the word mark stands for the space."""

    def __init__(self, vocabulary: Vocabulary, alpha: float) -> None:
        crossing = any(MARK in piece[1:] for piece in vocabulary.pieces)
        self._words = re.compile(".+" if crossing else f"{MARK}[^{MARK}]*|[^{MARK}]+", re.DOTALL)
        self._segmenter = Merging(vocabulary, alpha) if vocabulary.is_bpe else Lattices(vocabulary, alpha)

    def draw(self, text: str, random: Random) -> list[int]:
        """Ids of one segmentation of a text."""
        ids: list[int] = []
        for word in self._words.findall(text):
            ids += self._segmenter.draw(word, random)
        return ids


class Lattices:
    """Segmentations of a word with P(x) proportional to prod_i p(x_i)^alpha (Kudo 2018, 3.2; l = infinity).

    F(0) = 0 and F(e) = log sum_b exp(F(b) + alpha log p(x[b:e])) sum over all ways to get to e, so that, from the end of
    the word on, the piece that ends at e begins at b with probability exp(F(b) + alpha log p(x[b:e]) - F(e)).
    """

    def __init__(self, vocabulary: Vocabulary, alpha: float) -> None:
        self.vocabulary, self.alpha = vocabulary, alpha
        self.longest = max(map(len, vocabulary.pieces), default=1)
        self.unknown = min((score for _, score in vocabulary.pieces.values()), default=0.0) - _UNKNOWN_PENALTY
        self._remembered = lru_cache(_REMEMBERED)(self.ways)

    def draw(self, word: str, random: Random) -> list[int]:
        """Ids of one segmentation."""
        ways = self._remembered(word) if len(word) <= _MEMORABLE else self.ways(word)
        parts, end = [], len(word)
        while end:
            sums, begins = ways[end - 1]
            begin = begins[bisect(sums, random.random(), 0, len(begins) - 1)] if len(begins) > 1 else begins[0]
            parts.append(word[begin:end])
            end = begin
        return self.vocabulary.spell(parts[::-1])

    def ways(self, word: str) -> list[tuple[list[float], list[int]]]:
        """For each end of a piece: where it may begin, and the running sums of the probabilities that it does."""
        pieces, paths, found = self.vocabulary.pieces, [0.0], []
        for end in range(1, len(word) + 1):
            begins = [begin for begin in range(max(0, end - self.longest), end) if word[begin:end] in pieces]
            logs = [paths[begin] + self.alpha * pieces[word[begin:end]][1] for begin in begins]
            if end - 1 not in begins:  # a character that is no piece is unknown
                begins.append(end - 1)
                logs.append(paths[end - 1] + self.alpha * self.unknown)
            top = max(logs)
            likelihoods = [math.exp(log - top) for log in logs]
            total = math.fsum(likelihoods)
            paths.append(top + math.log(total))
            found.append(([mass / total for mass in accumulate(likelihoods)], begins))
        return found


class Merging:
    """BPE dropout (Provilkov et al. 2020): the best merge first, but each is passed over for good with probability alpha."""

    def __init__(self, vocabulary: Vocabulary, alpha: float) -> None:
        self.vocabulary, self.alpha = vocabulary, alpha

    def draw(self, word: str, random: Random) -> list[int]:
        """Ids of one segmentation."""
        pieces = self.vocabulary.pieces
        parts = list(word)  # a part that was merged into the one before it is empty
        after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
        agenda: list[tuple[float, int, int, str]] = []

        def consider(left: int, right: int) -> None:
            if left >= 0 and right < len(parts) and (merged := parts[left] + parts[right]) in pieces:
                heapq.heappush(agenda, (-pieces[merged][1], left, right, merged))

        for left in range(len(parts) - 1):
            consider(left, left + 1)
        while agenda:
            _, left, right, merged = heapq.heappop(agenda)
            if not parts[left] or not parts[right] or parts[left] + parts[right] != merged:
                continue  # one of the two has been merged with another since
            if random.random() < self.alpha:
                continue
            parts[left], parts[right] = merged, ""
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
            consider(before[left], left)
            consider(left, after[left])
        return self.vocabulary.spell([part for part in parts if part])
