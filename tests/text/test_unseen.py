"""Characters that a model has hardly seen in training."""

from __future__ import annotations

import pytest

from nmt.text.subwords import Subwords
from nmt.text.unseen import UnseenCharacters


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(["a dog sees a cat", "two cats"] * 30, kind="bpe", size=280, byte_fallback=True)


def test_a_model_knows_the_characters_of_its_tokens(subwords: Subwords) -> None:
    assert subwords.unknown_characters("a cat sees two dogs") == set()
    assert subwords.unknown_characters("a caté\u00a0犬") == {"é", "\u00a0", "犬"}


def test_each_character_is_reported_once(subwords: Subwords) -> None:
    reported: set[str] = set()
    first, second = (UnseenCharacters(subwords.unknown_characters, reported) for _ in range(2))
    assert first.warning() is None
    first.add(["a cat", "dé\u0301é"])
    assert first.warning() == (
        "The training text of the model has these characters rarely or never: é (U+00E9), U+0301 (3 in all)."
    )
    second.add(["é", "xé犬" + "".join(map(chr, range(0x400, 0x406)))])
    warning = second.warning()
    assert warning is not None
    assert "é" not in warning
    assert warning.endswith(" and 3 others (8 in all).")
