"""Long lines in parts: how the text is split, and how translations and n-best lists are joined."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from math import fsum

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.alignment.translation import TranslationHypothesis
from nmt.decoding.parts import join, join_ranked, join_texts, largest_sums, split_text
from nmt.search.hypothesis import NEG_INF, Penalties

Part = list[TranslationHypothesis]


def hypothesis(
    log_probability: float, tokens: int, penalties: Penalties, *, coverage: float = 0.0, finished: bool = True
) -> TranslationHypothesis:
    score = log_probability / penalties.length_penalty(tokens + finished) + coverage
    ids, nothing = tuple(range(10, 10 + tokens)), torch.zeros(0, 0)
    return TranslationHypothesis(ids, score, log_probability, (), nothing, finished, text=f"{log_probability}")


def ranked(values: Sequence[tuple[int, float, float]], penalties: Penalties, *, finished: bool = True) -> Part:
    """Hypotheses of so many tokens, as improbable as given, in the order of their scores."""
    part = [
        hypothesis(-nats, tokens, penalties, coverage=-cover * bool(penalties.coverage), finished=finished)
        for tokens, nats, cover in values
    ]
    return sorted(part, key=lambda item: -item.score)


lists = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.floats(0, 20), st.floats(0, 2)), min_size=1, max_size=4),
    min_size=2,
    max_size=4,
)


@given(st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), max_size=4), st.integers(1, 300))
@settings(max_examples=60)
def test_choices_come_once_each_in_falling_order_of_their_sums(values: list[list[int]], count: int) -> None:
    rows = [sorted(map(float, row), reverse=True) for row in values]
    choices = list(islice(largest_sums(rows), count))
    sums = [sum(row[place] for row, place in zip(rows, places, strict=True)) for places in choices]
    assert sums == sorted(map(sum, product(*rows)), reverse=True)[:count]
    assert len(set(choices)) == len(choices)


@given(values=lists, count=st.integers(1, 6), coverage=st.sampled_from([0.0, 0.5]))
@settings(max_examples=60)
def test_without_a_length_penalty_they_are_the_best_of_all(
    values: list[list[tuple[int, float, float]]], count: int, coverage: float
) -> None:
    penalties = Penalties(0.0, coverage)
    parts = [ranked(part, penalties) for part in values]
    expected = sorted(map(penalties.joint_score, product(*parts)), reverse=True)[:count]
    assert [item.score for item in join_ranked(parts, penalties, count)] == pytest.approx(expected)
    if not coverage:
        totals = sorted((fsum(item.log_probability for item in choice) for choice in product(*parts)), reverse=True)
        assert [item.log_probability for item in join_ranked(parts, penalties, count)] == pytest.approx(totals[:count])


@given(values=lists, count=st.integers(1, 6), finished=st.booleans())
@settings(max_examples=60)
def test_with_one_the_first_is_no_worse_than_the_best_of_each_part(
    values: list[list[tuple[int, float, float]]], count: int, finished: bool
) -> None:
    penalties = Penalties(1.0, 0.0)
    parts = [ranked(part, penalties, finished=finished) for part in values]
    scores = [item.score for item in join_ranked(parts, penalties, count)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] >= penalties.joint_score([part[0] for part in parts]) - 1e-9
    every = sorted(map(penalties.joint_score, product(*parts)), reverse=True)
    assert len(scores) == min(count, len(every))
    if count >= len(every):
        assert scores == pytest.approx(every)


def test_a_second_best_takes_the_best_of_the_other_part() -> None:
    penalties = Penalties(0.0, 0.0)
    parts = [ranked([(3, 1.0, 0), (3, 9.0, 0)], penalties), ranked([(3, 1.0, 0), (3, 1.1, 0)], penalties)]
    assert [item.score for item in join_ranked(parts, penalties, 2)] == pytest.approx([-2.0, -2.1])


def test_one_length_penalty_is_that_of_the_whole() -> None:
    penalties = Penalties(1.0, 0.0)
    [joined] = join_ranked([[hypothesis(-3.0, 4, penalties)], [hypothesis(-6.0, 8, penalties)]], penalties, 5)
    assert joined.score == pytest.approx(-9.0 / ((5 + 13) / 6))


def test_a_part_that_was_not_found_leaves_one_impossible_line() -> None:
    penalties = Penalties(1.0, 0.5)
    nothing = TranslationHypothesis((), NEG_INF, NEG_INF, (), torch.zeros(0, 0), finished=False, text="")
    part = ranked([(3, 1.0, 0), (3, 9.0, 0)], penalties)
    assert [item.score for item in join_ranked([part, [nothing]], penalties, 3)] == [NEG_INF]


def test_many_parts_are_joined_at_once() -> None:
    """3 ** 200 combinations."""
    penalties = Penalties(1.0, 0.0)
    part = ranked([(5, 1.0, 0), (5, 1.5, 0), (6, 4.0, 0)], penalties)
    joined = join_ranked([part] * 200, penalties, 5)
    assert [item.log_probability for item in joined] == pytest.approx([-200.0, *[-200.5] * 4])


def test_joined_alignments_lie_along_the_diagonal() -> None:
    def part(rows: list[list[float]], *, finished: bool) -> TranslationHypothesis:
        ids = tuple(range(10, 10 + len(rows) - finished))
        log_probs = tuple([-1.0] * len(rows))
        total = -float(len(rows))
        return TranslationHypothesis(ids, total, total, log_probs, torch.tensor(rows), finished, text="x")

    first = part([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]], finished=True)
    second = part([[0.75, 0.25], [0.5, 0.5]], finished=True)
    joined = join([first, second], Penalties())
    assert joined.alignment.tolist() == [[0.5, 0.25, 0.0, 0.25], [0.0, 0.0, 0.75, 0.25], [0.0, 0.0, 0.5, 0.5]]
    assert (joined.ids, joined.log_probability, joined.text, joined.finished) == ((10, 10), -4.0, "x x", True)
    cut = join([first, part([[0.75, 0.25]], finished=False)], Penalties())
    assert (cut.finished, cut.alignment.shape, len(cut.token_log_probs)) == (False, (2, 4), 2)


@pytest.mark.parametrize(
    "text",
    [
        "One sentence here. Another one there. And a third one, quite a bit longer than the rest.",
        "word " * 40,
        "x" * 100,
        "これは文です。" * 9,
        "x" * 50 + " y",
    ],
)
def test_parts_fit_and_lose_nothing(text: str) -> None:
    parts = split_text(text, lambda part: len(part) <= 40)
    assert all(0 < len(part) <= 40 for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_parts_end_where_sentences_or_words_end() -> None:
    text = "A first sentence of words. A second one follows here."
    assert split_text(text, lambda part: len(part) <= 40) == [
        "A first sentence of words.",
        "A second one follows here.",
    ]
    assert split_text("alpha beta gamma delta", lambda part: len(part) <= 12) == ["alpha beta", "gamma delta"]
    assert split_text("これ は 文 です 。 それ も 文 です 。", lambda part: len(part) <= 12) == [
        "これ は 文 です 。",
        "それ も 文 です 。",
    ]
    assert split_text("東京大阪京都Photography", lambda part: len(part) <= 16) == ["東京大阪京", "都Photography"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["A first.", "", "A second."], "A first. A second."),
        (["これは文です。", "それも文です。"], "これは文です。それも文です。"),
        (["他说：", "“NASA很大”", "对"], "他说：“NASA很大” 对"),
        (["长城很", "长"], "长城很长"),
        (["ภาษาไทย", "สวยมาก"], "ภาษาไทยสวยมาก"),
        (["これ は 文 です 。", "それ も 文 です 。"], "これ は 文 です 。 それ も 文 です 。"),
        (["한국어 문장", "하나 더"], "한국어 문장 하나 더"),
        (["He lives in 東京", "and works there."], "He lives in 東京 and works there."),
        (["これは文です。", "NASAは大きい。"], "これは文です。NASAは大きい。"),
        ([], ""),
    ],
)
def test_parts_are_joined_by_a_space_where_their_script_has_one(parts: list[str], text: str) -> None:
    assert join_texts(parts) == text
