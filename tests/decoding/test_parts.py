"""Long lines in parts: how the text is split, and how translations are joined."""

from __future__ import annotations

import pytest
import torch

from nmt.alignment.translation import TranslationHypothesis
from nmt.decoding.parts import join, split_text
from nmt.search.hypothesis import NEG_INF, Penalties


def test_joined_hypotheses_have_one_length_penalty_and_summed_coverage_penalties() -> None:
    penalties = Penalties(1.0, 0.5)
    parts = [
        TranslationHypothesis(
            tuple(range(10, 10 + tokens)),
            log_probability / penalties.length_penalty(tokens + 1) - coverage,
            log_probability,
            (),
            torch.zeros(0, 0),
            finished=True,
            text="x",
        )
        for tokens, log_probability, coverage in ((4, -3.0, 0.25), (8, -6.0, 0.5))
    ]
    assert join(parts, penalties).score == pytest.approx(-9.0 / ((5 + 13) / 6) - 0.75)
    nothing = TranslationHypothesis((), NEG_INF, NEG_INF, (), torch.zeros(0, 0), finished=False, text="")
    assert join([parts[0], nothing], penalties).score == NEG_INF


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
    assert split_text("យើងនៅទីនេះ។យើងទៅផ្ទះ។", lambda part: len(part) <= 13) == ["យើងនៅទីនេះ។", "យើងទៅផ្ទះ។"]
    assert split_text("東京大阪京都Photography", lambda part: len(part) <= 16) == ["東京大阪京", "都Photography"]
