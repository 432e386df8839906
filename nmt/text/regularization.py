"""Random segmentation of text into tokens: subword regularization and BPE dropout.

SentencePiece can do it too, but seeds its generator differently in every process, so that no run could be repeated. Here all
random numbers come from the generator that is passed in.

If no token crosses a word boundary (the word mark is only at the front), text is segmented word by word, and words are cached.
Otherwise each text is treated as one word.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random

MARK = "▁"
_CACHED_WORDS = 2**15
_LONGEST_CACHED = 32
"""Longest word that is cached, in characters."""
_UNKNOWN_PENALTY = 10.0
"""How much lower the log-probability of an unknown character is than that of the least likely token; as in SentencePiece."""


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a subword model, without control tokens and bytes."""

    tokens: dict[str, tuple[int, float]]
    """Id and score of each token: its log-probability, or for BPE the negative rank of its merge."""
    unknown: int
    """The id of characters that no token covers."""
    bytes: Sequence[int]
    """The ids of the 256 byte tokens, which spell such characters; empty without byte fallback."""
    whole: Collection[str] = ()
    """Tokens that are never split, such as the tags of a mixture."""

    @property
    def is_bpe(self) -> bool:
        """Whether the scores are ranks of merges."""
        return all(score.is_integer() for _, score in self.tokens.values())

    def spell(self, parts: Sequence[str]) -> list[int]:
        """The ids of consecutive parts of a word: tokens, or single characters that may be unknown."""
        ids: list[int] = []
        for part in parts:
            if part in self.tokens:
                ids.append(self.tokens[part][0])
            elif self.bytes:
                ids.extend(self.bytes[byte] for byte in part.encode())
            elif not ids or ids[-1] != self.unknown:  # consecutive unknown characters share one id
                ids.append(self.unknown)
        return ids


class Sampler:
    """Draws segmentations of text that SentencePiece has normalized, with word marks for spaces."""

    def __init__(self, vocabulary: Vocabulary, alpha: float) -> None:
        crosses_words = any(MARK in token[1:] for token in vocabulary.tokens)
        whole = "|".join(re.escape(token) for token in sorted(vocabulary.whole, key=len, reverse=True))
        words = ".+" if crosses_words else f"{MARK}[^{MARK}]*|[^{MARK}]+"
        self._whole = {token: vocabulary.tokens[token][0] for token in vocabulary.whole}
        self._words = re.compile(f"{whole}|{words}" if whole else words, re.DOTALL)
        self._segmenter = Merging(vocabulary, alpha) if vocabulary.is_bpe else Lattices(vocabulary, alpha)

    def draw(self, text: str, random: Random) -> list[int]:
        """Draw one segmentation of a text, as ids."""
        ids: list[int] = []
        for word in self._words.findall(text):
            ids += [self._whole[word]] if word in self._whole else self._segmenter.draw(word, random)
        return ids


class Lattices:
    """Unigram sampling: segmentations of a word with P(x) proportional to prod_i p(x_i)^alpha (Kudo 2018, 3.2; l = infinity).

    The forward sums are F(0) = 0, F(e) = log sum_b exp(F(b) + alpha log p(x[b:e])). Sampling goes backwards from the end of
    the word: the token that ends at e begins at b with probability exp(F(b) + alpha log p(x[b:e]) - F(e)).
    """

    def __init__(self, vocabulary: Vocabulary, alpha: float) -> None:
        self.vocabulary, self.alpha = vocabulary, alpha
        self.longest = max(map(len, vocabulary.tokens), default=1)
        self.unknown = min((score for _, score in vocabulary.tokens.values()), default=0.0) - _UNKNOWN_PENALTY
        self._cached_lattice = lru_cache(_CACHED_WORDS)(self.lattice)

    def draw(self, word: str, random: Random) -> list[int]:
        """Draw one segmentation of a word, as ids."""
        lattice = self._cached_lattice(word) if len(word) <= _LONGEST_CACHED else self.lattice(word)
        parts, end = [], len(word)
        while end:
            sums, begins = lattice[end - 1]
            begin = begins[bisect(sums, random.random(), 0, len(begins) - 1)] if len(begins) > 1 else begins[0]
            parts.append(word[begin:end])
            end = begin
        return self.vocabulary.spell(parts[::-1])

    def lattice(self, word: str) -> list[tuple[list[float], list[int]]]:
        """For each position where a token may end: the cumulative probabilities of its beginnings, and the beginnings."""
        tokens, forward, lattice = self.vocabulary.tokens, [0.0], []
        for end in range(1, len(word) + 1):
            begins = [begin for begin in range(max(0, end - self.longest), end) if word[begin:end] in tokens]
            logs = [forward[begin] + self.alpha * tokens[word[begin:end]][1] for begin in begins]
            if end - 1 not in begins:  # a single character that is not a token is unknown
                begins.append(end - 1)
                logs.append(forward[end - 1] + self.alpha * self.unknown)
            top = max(logs)
            likelihoods = [math.exp(log - top) for log in logs]
            total = math.fsum(likelihoods)
            forward.append(top + math.log(total))
            lattice.append(([mass / total for mass in accumulate(likelihoods)], begins))
        return lattice


class Merging:
    """BPE dropout (Provilkov et al. 2020, algorithm 1): before each merge, drop every candidate with probability alpha.

    As in the authors' code, a dropped merge may be applied later. In SentencePiece it is lost: with the same rate it drops about
    twice as much.
    """

    def __init__(self, vocabulary: Vocabulary, alpha: float) -> None:
        self.vocabulary, self.alpha = vocabulary, alpha

    def draw(self, word: str, random: Random) -> list[int]:
        """Draw one segmentation of a word, as ids."""
        tokens = self.vocabulary.tokens
        parts = list(word)  # a part that has been merged into the one before it is empty
        after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
        agenda: list[tuple[float, int, int, str]] = []
        dropped: list[tuple[float, int, int, str]] = []

        def consider(left: int, right: int) -> None:
            if left >= 0 and right < len(parts) and (merged := parts[left] + parts[right]) in tokens:
                heapq.heappush(agenda, (-tokens[merged][1], left, right, merged))

        for left in range(len(parts) - 1):
            consider(left, left + 1)
        while agenda:
            candidate = _, left, right, merged = heapq.heappop(agenda)
            if not parts[left] or not parts[right] or parts[left] + parts[right] != merged:
                continue  # one of the two has been merged with another part since
            if random.random() < self.alpha:
                dropped.append(candidate)
                continue
            parts[left], parts[right] = merged, ""
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
            consider(before[left], left)
            consider(left, after[left])
            while dropped:
                heapq.heappush(agenda, dropped.pop())
        return self.vocabulary.spell([part for part in parts if part])
