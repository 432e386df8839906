"""The alignment error rate and its interval, against values worked out by hand and against loops."""

import random

import pytest

from nmt.alignment.error_rate import AlignmentErrorRate, error_rate
from nmt.alignment.links import GoldLinks
from nmt.errors import DataError

Links = set[tuple[int, int]]


def rate_of(links: list[Links], sure: list[Links], possible: list[Links], *, bootstrap: int = 0) -> AlignmentErrorRate:
    gold = [GoldLinks(frozenset(links), frozenset(more)) for links, more in zip(sure, possible, strict=True)]
    return error_rate(links, gold, bootstrap=bootstrap)


def random_text(sentences: int) -> tuple[list[Links], list[Links], list[Links]]:
    """Predicted, sure and possible links."""
    generator = random.Random(5)

    def links(share: float) -> Links:
        return {(j, i) for j in range(6) for i in range(7) if generator.random() < share}

    predicted, sure, possible = ([links(share) for _ in range(sentences)] for share in (0.2, 0.1, 0.3))
    return predicted, sure, possible


def test_alignment_error_rate_worked_out_by_hand() -> None:
    # A = {00, 11, 22}; S = {00, 12}; P adds {11}: |A&S| = 1, |A&P| = 2, so AER = 1 - 3/5.
    rate = rate_of([{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (1, 2)}], [{(1, 1)}])
    assert [rate.aer, rate.precision, rate.recall] == pytest.approx([2 / 5, 2 / 3, 1 / 2])
    assert str(rate) == "AER 40.0%  precision 66.7%  recall 50.0%  (3 links, 2 sure, 1 sentence pair)"


def test_perfect_empty_and_unequal_alignments() -> None:
    sure = [{(0, 0)}, {(1, 2)}]
    assert rate_of(sure, sure, [set(), set()]).aer == 0
    nothing = rate_of([set()], [set()], [set()])
    assert (nothing.aer, nothing.precision, nothing.recall) == (0, 1, 1)
    with pytest.raises(DataError, match="1 sentence pair, but gold links of 2"):
        rate_of([set()], sure, sure)
    with pytest.raises(DataError, match="no alignments"):
        rate_of([], [], [])


# --- its interval -----------------------------------------------------------------------------------------------


def test_the_interval_is_that_of_resampling_in_loops() -> None:
    predicted, sure, possible = random_text(40)
    generator = random.Random(7)
    rates = []
    for _ in range(4000):
        drawn = [generator.randrange(40) for _ in range(40)]
        hits = sum(len(predicted[n] & sure[n]) + len(predicted[n] & (sure[n] | possible[n])) for n in drawn)
        rates.append(1 - hits / sum(len(predicted[n]) + len(sure[n]) for n in drawn))
    rates.sort()
    rate = rate_of(predicted, sure, possible, bootstrap=4000)
    assert rate.interval == pytest.approx((rates[100], rates[3899]), abs=0.005)
    assert rate == rate_of(predicted, sure, possible, bootstrap=4000)


def test_sentences_that_are_all_alike_leave_no_doubt() -> None:
    rate = rate_of([{(0, 0), (1, 1)}] * 9, [{(0, 0), (1, 2)}] * 9, [set()] * 9, bootstrap=50)
    assert str(rate).startswith("AER 50.0% [50.0, 50.0]  precision 50.0%")
