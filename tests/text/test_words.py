"""The words of a text are what spaces separate, or tokens where there are no spaces."""

import re
from collections.abc import Sequence

import pytest

from nmt.recipe import Normalization
from nmt.text.normalization import Normalizer
from nmt.text.scripts import splitter
from nmt.text.subwords import Subwords
from nmt.text.words import words_of

TOKENIZED = """ねこ が にわ に い ます 。
いぬ が いえ に い ます 。
ねこ は ちいさい です 。
いぬ は おおきい です 。
わたし は ねこ が すき です 。
あなた は いぬ が すき です か 。""".splitlines()
ENGLISH = ["A cat is in the garden .", "A dog is in the house .", "I like the cat ."]


@pytest.fixture(scope="module")
def raw() -> Subwords:
    return trained([line.replace(" ", "") for line in TOKENIZED])


@pytest.fixture(scope="module")
def tokenized() -> Subwords:
    return trained(TOKENIZED)


def trained(lines: list[str]) -> Subwords:
    return Subwords.train([*lines, *ENGLISH] * 20, kind="bpe", size=370, byte_fallback=True)


def words(subwords: Subwords, text: str) -> tuple[str, ...]:
    ids = subwords.encode(text)
    names, word_of = words_of(subwords, ids, text)
    assert len(word_of) == len(ids)
    assert sorted(set(word_of)) == list(range(len(names)))
    assert word_of == sorted(word_of)
    return names


def test_words_of_a_text_without_spaces_are_its_tokens(raw: Subwords) -> None:
    assert not raw.is_spaced
    text = "ねこがにわにいます。"
    assert words(raw, text) == tuple(token.replace("▁", "") for token in raw.tokens(raw.encode(text)))
    assert len(words(raw, text)) > 2
    assert words(raw, "ねこ猫。")[-2:] == ("猫", "。"), "the bytes of a character are one word"
    names = words(raw, "Tom はねこがすきです。")
    assert "".join(names) == "Tomはねこがすきです。"
    assert all(name == name.strip() != "" for name in names)
    assert words_of(raw, [], "") == ((), [])


def test_spaced_text_keeps_its_words(raw: Subwords, tokenized: Subwords) -> None:
    assert tokenized.is_spaced
    line = "ねこ が おおきい です 。"
    assert words(tokenized, line) == tuple(line.split()) == words(raw, line)
    assert words(tokenized, "おおきい") == ("おおきい",)
    assert words(raw, ENGLISH[1]) == tuple(ENGLISH[1].split())


@pytest.mark.parametrize(
    ("text", "forms", "visible"),
    [
        ("A\u00a0cat is  in\tthe house .", ["nfc", "none"], range(6)),
        ("\ufeffA cat\u00ad is in the house .", ["nfc", "none"], range(7)),
        ("A \u200b cat", ["nfc"], [0, 2]),
    ],
)
def test_words_keep_the_numbers_of_those_between_plain_spaces(
    raw: Subwords, text: str, forms: list[Normalization], visible: Sequence[int]
) -> None:
    """As gold links number them, however the model reads the text."""
    for form in forms:
        names, word_of = words_of(raw, raw.encode(Normalizer(form)(text)), text)
        assert list(names) == [word for word in re.split("[ \t]", text) if word]
        assert sorted(set(word_of)) == list(visible)
        assert word_of == sorted(word_of)


def test_text_is_split_at_plain_spaces_alone() -> None:
    split = splitter(["zwei\u00a0Hunde laufen"])
    assert split("zwei\u00a0Hunde\tlaufen  weg") == ["zwei\u00a0Hunde", "laufen", "weg"]
    assert split("zwei\x0bHunde\tlaufen") == ["zwei\x0bHunde", "laufen"], "also of text in ASCII"
