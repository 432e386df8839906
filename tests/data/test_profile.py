"""What the profile of a text counts."""

import random

import pytest

from nmt.data import profile
from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.mixture import mix
from nmt.data.profile import profile_text


def corpus(*pairs: tuple[str, str]) -> ParallelCorpus:
    source, target = collect([tuple(map(list, zip(*pairs, strict=True)))], 2)
    return ParallelCorpus(source, target, "text", ("en", "ja"))


PAIRS = [("a dog runs", "ein Hund rennt"), ("a dog runs", "ein Hund rennt"), ("a cat", "eine Katze schläft")]
VALID = [("a dog sleeps", "ein Hund schläft"), ("the cat", "die Katze")]


def test_duplicates_are_counted_once_and_unseen_words_among_those_for_validation() -> None:
    text = profile_text(corpus(*PAIRS), corpus(*VALID))
    assert (text.pairs, text.duplicates, text.longest) == (2, 1, 3)
    assert (text.source.words, text.source.types, text.source.characters) == (5, 4, 15)
    assert (text.target.words, text.target.types) == (6, 6)
    assert text.source.unseen == pytest.approx(2 / 5)  # sleeps, the
    assert text.target.unseen == pytest.approx(1 / 5)  # die
    assert text.unseen == text.source.unseen


@pytest.mark.parametrize(
    ("pairs", "shared"),
    [
        ([("ab", "ab ж"), ("c", "жж1.")], 2 / 5),
        ([("аб вг дежз I", "I am"), ("ий", "in")], 1 / 11),  # a name among the letters of another script
        ([("12", "a")], 0),
    ],
)
def test_letters_are_shared_in_proportion_to_their_use(pairs: list[tuple[str, str]], shared: float) -> None:
    for turned in (pairs, [(target, source) for source, target in pairs]):
        assert profile_text(corpus(*turned), corpus(*VALID)).shared_letters == pytest.approx(shared)


def test_text_without_spaces_has_characters_as_words() -> None:
    text = profile_text(corpus(("a dog", "犬が走る。")), corpus(("a", "犬")))
    assert (text.source.is_spaced, text.target.is_spaced) == (True, False)
    assert text.target.words == 5
    assert text.target.tokens == pytest.approx(5 / 1.5)


def test_characters_that_say_more_are_more_tokens() -> None:
    draw = random.Random(1)
    letters, syllables = ("".join(map(chr, range(first, first + count))) for first, count in ((97, 8), (0x13A0, 80)))
    few, many = (["".join(draw.choices(kind, k=5)) for _ in range(2000)] for kind in (letters, syllables))
    text = profile_text(corpus(*zip(few, many, strict=True)), corpus(("a", "b")))
    assert text.source.bits == pytest.approx(3, rel=0.1)  # log2 8
    assert text.target.bits == pytest.approx(6.3, rel=0.1)  # log2 80
    assert text.target.tokens > 1.9 * text.source.tokens


def test_a_word_mark_and_tags_are_part_of_the_alphabet() -> None:
    train = corpus(("ab", "cd"))
    assert (profile_text(train, train).alphabet, profile_text(train, train).source.alphabet) == (5, 3)
    assert profile_text(mix([train], [("<2b>",)]), train).alphabet == 6


def test_large_text_is_sampled_and_counted_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "SAMPLE", 100)
    pairs = [(f"word{number} dog", f"Wort{number} Hund") for number in range(1000)]
    text = profile_text(corpus(*pairs), corpus(*VALID))
    assert text.pairs == 1000
    assert text.source.words == 2000
