"""Random segmentations: their distribution, that they spell the text, and that they are the same in every process."""

import itertools
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.text.regularization import Sampler, Vocabulary
from nmt.text.subwords import UNK, Kind, Subwords

LINES = [f"{who} {does} the {what} quickly." for who in ("he", "she", "nobody") for does in ("reads", "sees", "rereads")
         for what in ("books", "bookcase", "sea", "seaside")]  # fmt: skip
KINDS: tuple[Kind, ...] = ("unigram", "bpe")
WORD = "▁abab"
TOKENS = {"▁": -2.0, "a": -1.5, "b": -3.25, "ab": -1.25, "▁a": -2.5, "aba": -4.5, "ba": -3.5, "▁abab": -6.5}
TRIALS = 20_000


@pytest.fixture(scope="module")
def models() -> dict[str, Subwords]:
    return {kind: Subwords.train(LINES, kind=kind, size=280, byte_fallback=True) for kind in KINDS}


def vocabulary(scores: dict[str, float]) -> Vocabulary:
    return Vocabulary({token: (number, score) for number, (token, score) in enumerate(scores.items(), 2)}, UNK, ())


def segmentations(word: str) -> Iterator[tuple[str, ...]]:
    """All ways to cut a word into tokens."""
    for count in range(len(word)):
        for cuts in itertools.combinations(range(1, len(word)), count):
            parts = tuple(word[begin:end] for begin, end in itertools.pairwise((0, *cuts, len(word))))
            if all(part in TOKENS for part in parts):
                yield parts


def check_frequencies(words: Vocabulary, alpha: float, word: str, expected: Mapping[tuple[str, ...], float]) -> None:
    """The segmentations of a word come as often as expected, within five standard deviations."""
    sampler, draws = Sampler(words, alpha), Random(1)
    found = Counter(tuple(sampler.draw(word, draws)) for _ in range(TRIALS))
    assert math.isclose(sum(expected.values()), 1)
    for parts, share in expected.items():
        deviation = math.sqrt(share * (1 - share) / TRIALS)
        assert abs(found.pop(tuple(words.spell(parts)), 0) / TRIALS - share) < 5 * deviation, parts
    assert not found


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_unigram_segmentations_come_as_often_as_their_probability_says(alpha: float) -> None:
    words = vocabulary(TOKENS)
    assert not words.is_bpe
    weights = {parts: math.exp(alpha * sum(TOKENS[part] for part in parts)) for parts in segmentations(WORD)}
    assert len(weights) == 10
    check_frequencies(words, alpha, WORD, {parts: weight / sum(weights.values()) for parts, weight in weights.items()})


def test_bpe_merges_are_dropped_as_often_as_the_rate_says() -> None:
    # ab (rank 0) is merged twice, then abab (rank 1). A dropped first ab may be merged after the second one.
    merges, rate = vocabulary({"ab": 0.0, "abab": -1.0, "a": -2.0, "b": -3.0}), 0.3
    assert merges.is_bpe
    keep = 1 - rate
    expected = {("abab",): keep**3 * (1 + rate), ("ab", "ab"): keep**2 * rate * (1 + rate), ("ab", "a", "b"): keep * rate,
                ("a", "b", "ab"): keep * rate**2, ("a", "b", "a", "b"): rate**2}  # fmt: skip
    check_frequencies(merges, rate, "abab", expected)


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 0.0), ("unigram", 1000.0)])
def test_the_likeliest_segmentation_is_sentencepieces(models: dict[str, Subwords], kind: Kind, alpha: float) -> None:
    lines = [*LINES, " two  spaces ", "NAÏVE 日本 👍", *(["▁", "", "xyz" * 50] if kind == "bpe" else [])]
    assert list(models[kind].sample(lines, alpha, seed=1)) == models[kind].encode_batch(lines)


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\U0010ffff")), seed=st.integers())
@settings(max_examples=150)
def test_every_sample_spells_its_text(models: dict[str, Subwords], text: str, seed: int) -> None:
    for model in models.values():
        [ids] = model.sample([text], 0.3, seed=seed)
        assert model.decode(ids) == text


def test_unknown_neighbors_and_tokens_over_several_words_are_found() -> None:
    assert Sampler(vocabulary(TOKENS), 300.0).draw("▁abXYab▁ZZ", Random(1)).count(UNK) == 2
    words = vocabulary({"▁a": -4.0, "▁b": -4.0, "▁a▁b": -0.1, "▁": -9.0, "a": -9.0, "b": -9.0})
    ids = [Sampler(words, 50.0).draw("▁a▁b", Random(seed)) for seed in range(5)]
    assert ids == [words.spell(["▁a▁b"])] * 5


def test_samples_are_the_same_in_another_process(models: dict[str, Subwords], tmp_path: Path) -> None:
    for kind in KINDS:
        models[kind].save(tmp_path / kind)
    code = (
        "import sys; from nmt.text.subwords import Subwords\n"
        f"for kind in {KINDS}: print(list(Subwords.load(sys.argv[1] + '/' + kind).sample({LINES!r}, 0.2, seed=7)))"
    )
    command, environment = [sys.executable, "-c", code, str(tmp_path)], {**os.environ, "PYTHONHASHSEED": "5"}
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    for kind, line in zip(KINDS, ended.stdout.splitlines(), strict=True):
        assert line == str(list(models[kind].sample(LINES, 0.2, seed=7)))
        assert line != str(list(models[kind].sample(LINES, 0.2, seed=8)))
