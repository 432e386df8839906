"""Minimum Bayes risk decoding: of random translations, the one that is most like all of them.

    y* = argmax_{y in Y} chrF(y, mean n-gram counts of Y),   Y drawn from p(y | x)^(1 / T)

After Kumar and Byrne 2004 and Eikema and Aziz 2020. Vamvas and Sennrich 2024 compare with the mean counts instead of each translation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeVar

from nmt.search.hypothesis import Hypothesis

ORDER = 6
"""Longest n-grams of chrF, as in sacreBLEU."""

HypothesisT = TypeVar("HypothesisT", bound=Hypothesis)


def most_expected(drawn: Sequence[tuple[HypothesisT, str]], count: int, beta: float) -> list[tuple[HypothesisT, str]]:
    """Up to `count` hypotheses with different texts, by falling expected chrF.

    Args:
        drawn: random hypotheses with their texts.
        count: how many to return at most.
        beta: as for `expected_chrf`.
    """
    first = {text: hypothesis for hypothesis, text in reversed(drawn)}
    scores = expected_chrf([text for _, text in drawn], beta)
    ranked = sorted(first, key=lambda text: -scores[text])
    return [(first[text], text) for text in ranked[:count]]


def expected_chrf(texts: Sequence[str], beta: float = 2.0) -> dict[str, float]:
    """The chrF, from 0 to 1, of each text against the mean n-gram counts of all texts, themselves included.

    For a single reference this is sacreBLEU's chrF of a sentence: precision and recall are means over the n that both sides have.

    Args:
        texts: the texts, repeated ones as often as they were drawn.
        beta: how many times as much recall counts as precision; sacreBLEU's is 2.
    """
    times = Counter(texts)
    letters_of = {text: "".join(text.split()) for text in times}
    precisions: dict[str, list[float]] = {text: [] for text in times}
    recalls: dict[str, list[float]] = {text: [] for text in times}
    for n in range(1, ORDER + 1):
        counts = {
            text: Counter(letters[start : start + n] for start in range(len(letters) - n + 1))
            for text, letters in letters_of.items()
        }
        mean: dict[str, float] = defaultdict(float)
        for text, ngrams in counts.items():
            for ngram, number in ngrams.items():
                mean[ngram] += number * times[text] / len(texts)
        total = sum(mean.values())
        for text, ngrams in counts.items():
            if ngrams:
                matches = sum(min(number, mean[ngram]) for ngram, number in ngrams.items())
                precisions[text].append(matches / ngrams.total())
                recalls[text].append(matches / total)
    return {text: _f_score(precisions[text], recalls[text], beta) for text in times}


def _f_score(precisions: Sequence[float], recalls: Sequence[float], beta: float) -> float:
    """F_beta of the means; 0 if there is nothing to compare."""
    precision, recall = (sum(values) / max(len(values), 1) for values in (precisions, recalls))
    weighted = beta**2 * precision + recall
    return (1 + beta**2) * precision * recall / weighted if weighted else 0.0
