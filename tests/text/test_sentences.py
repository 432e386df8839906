"""Where a line is cut into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Dr. Lee met Ann at 3.30 p.m. in Rome.  ", "She paid $3.50! ", '"Really?" she asked.']),
        ("de", ["Am 5. Juni kam Dr. Lehmann z. B. nach Köln. ", "Er blieb."]),
        ("zh", ["我有一只猫。", "你呢?", "好!"]),
        ("hi", ["राम घर गया। ", "वह सोया।"]),
        ("ar", ["هل نام القط؟ ", "نعم."]),
        ("tlh", ["One bird. ", "Two birds."]),
        ("en", ["A dog.\u00a0\t", "It runs."]),
        ("en", ["(This is one.) ", "[So is this!]  ", "That is two. ", "Three (it ends here.) is one. ", "Four."]),
        ("de", ["(Das ist eins.) ", "Das ist zwei."]),
    ],
)
def test_languages_end_their_sentences_in_their_own_ways(language: str, sentences: list[str]) -> None:
    assert split_sentences("".join(sentences), language) == sentences


@pytest.mark.parametrize(
    "text",
    "1. Open page.Html, then v1.2.3 and Ant.Bee|...|A dog. ...|X. Young ran| a|(Approx.) Value|(This is one.)".split(
        "|"
    ),
)
def test_numbers_initials_and_names_with_dots_are_no_sentences(text: str) -> None:
    assert split_sentences(text) == [text]


AWKWARD = st.text(st.sampled_from("aB1.!?()[]。 \u00a0\u2028\t\n\"”)'é我।\ud800\U0001f600"), max_size=30)


@given(AWKWARD, st.sampled_from(["en", "de", "zh", "hi", "el", "xx", ""]))
def test_sentences_are_the_text(text: str, language: str) -> None:
    sentences = split_sentences(text, language)
    assert "".join(sentences) == text
    assert all(sentences)
