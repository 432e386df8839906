"""Unknown words of the output, replaced by source words: with attention written by hand, and with a small random model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt import recipe
from nmt.alignment.links import argmax_links
from nmt.alignment.translation import Translation
from nmt.bundle.folder import Bundle
from nmt.decoding.translator import Translator
from nmt.decoding.unknown import UnknownWords, read_lexicon
from nmt.errors import DataError
from nmt.search.hypothesis import Hypothesis
from nmt.text.subwords import EOS, UNK, Subwords
from tests.bundle.test_folder import small_recipe
from tests.models import output_bias

SOURCE = ["the dog sees a cat", "a cat sleeps", "the old dog sleeps here"]
TARGET = ["der Hund sieht eine Katze", "eine Katze schläft", "der alte Hund schläft hier"]


def words(lines: list[str], size: int = 11) -> Subwords:
    """Subwords that are the most frequent words of some lines."""
    return Subwords.train(lines * 3, kind="word", size=size, byte_fallback=False)


@pytest.fixture(scope="module")
def source() -> Subwords:
    return words(SOURCE)


@pytest.fixture(scope="module")
def target() -> Subwords:
    return words(TARGET)


def hypothesis_with(ids: list[int], weights: list[list[float]]) -> Hypothesis:
    return Hypothesis(tuple(ids), 0.0, 0.0, (0.0,) * len(weights), torch.tensor(weights), finished=True)


def text(
    source: Subwords, target: Subwords, line: str, output: list[int], weights: list[list[float]], **lexicon: str
) -> str:
    return UnknownWords(source, target, lexicon).text(line, source.encode(line), hypothesis_with(output, weights))


# --- by hand ----------------------------------------------------------------------------------------------------


def test_each_unknown_word_is_the_source_word_with_most_attention(source: Subwords, target: Subwords) -> None:
    der, katze = target.encode("der")[0], target.encode("Katze")[0]
    weights = [[0.9, 0.1, 0.0, 0.0], [0.1, 0.5, 0.1, 0.3], [0.0, 0.1, 0.6, 0.3], [0.0, 0.0, 0.0, 1.0]]
    line = "the Zürich-Express, ▁Bahn"
    assert text(source, target, line, [der, UNK, UNK], weights) == "der Zürich-Express, ▁Bahn"
    assert text(source, target, line, [UNK, katze, UNK], weights) == "the Katze ▁Bahn"
    assert text(source, target, line, [UNK, UNK, UNK], weights, the="die") == "die Zürich-Express, ▁Bahn"
    assert target.decode([UNK, katze, UNK]) == "⁇ Katze ⁇"


def test_the_end_mark_is_no_word_and_without_any_attention_the_mark_stays(source: Subwords, target: Subwords) -> None:
    weights = [[0.1, 0.2, 0.7], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    assert text(source, target, "Basel Bern", [UNK, UNK], weights) == "Bern ⁇"


def test_attention_on_the_tokens_of_a_word_adds_up(target: Subwords) -> None:
    characters = Subwords.train(SOURCE, kind="char", size=20, byte_fallback=False)
    tokens = characters.tokens(characters.encode("a dog"))
    assert len(tokens) == 6  # ▁ a ▁ d o g
    weights = [[0.0, 0.35, 0.1, 0.2, 0.1, 0.15, 0.1], [0.0] * 7]
    assert text(characters, target, "a dog", [UNK], weights) == "dog"


def test_an_unknown_character_is_replaced_where_it_stands(source: Subwords) -> None:
    characters = Subwords.train(SOURCE, kind="char", size=20, byte_fallback=False)
    weights = [[0.0, 1.0, 0.0]] * 7
    ids = [*characters.encode("a do"), UNK, EOS]
    assert text(source, characters, "the Bär", ids, weights) == "a doBär"


# --- a model ----------------------------------------------------------------------------------------------------

LINES = ["Zoe sees a cat", "the old dog", "", "Ann Zoe Bob", "here sleeps the zebra on a mat"]


def unsure() -> Bundle:
    """A model that often writes the unknown mark and looks at some places more than at others."""
    result = Bundle.fresh(small_recipe(), words(SOURCE), words(TARGET))
    with torch.no_grad():
        for parameter in result.model.parameters():
            parameter.mul_(3)
        output_bias(result.model).fill_(0)
        output_bias(result.model)[UNK], output_bias(result.model)[EOS] = 3.0, -3.0
    result.model.eval()
    return result


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return unsure()


def translate(bundle: Bundle, **options: Any) -> list[Translation]:
    decoding = recipe.DecodingConfig(beam_size=3, max_ratio=1.0)
    return list(Translator([bundle], decoding=decoding, **options).translate(LINES))


@pytest.mark.parametrize("alignments", [True, False])
def test_every_hypothesis_holds_the_words_that_its_links_name(bundle: Bundle, alignments: bool) -> None:
    plain = translate(bundle, n_best=3)
    replaced = translate(bundle, n_best=3, alignments=alignments, replace_unknown={"dog": "Hündchen", "Zoe": "Zoé"})
    marks = several = translated = 0
    for before, after in zip(plain, replaced, strict=True):
        assert [item.ids for item in after.hypotheses] == [item.ids for item in before.hypotheses]
        for rank, hypothesis in enumerate(after.hypotheses):
            source_of = {j: i for i, j in argmax_links(before.word_alignment(rank).weights)}
            aligned = before.source.split()
            expected = [
                {"dog": "Hündchen", "Zoe": "Zoé"}.get(aligned[source_of[j]], aligned[source_of[j]])
                if word == "⁇"
                else word
                for j, word in enumerate(before.hypotheses[rank].text.split())
            ]
            assert hypothesis.text == " ".join(expected)
            if alignments:
                assert list(after.word_alignment(rank).target) == expected
            marks += hypothesis.ids.count(UNK)
            several += hypothesis.ids.count(UNK) > 1
            translated += "Zoé" in expected or "Hündchen" in expected
    assert min(marks, several, translated) > 3


# --- lexicons ---------------------------------------------------------------------------------------------------


def test_of_several_translations_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "lexicon").write_text("dog\tHund\ncat\tKatze\n\ndog\tHündin\n")
    assert read_lexicon(tmp_path / "lexicon") == {"dog": "Hund", "cat": "Katze"}
    for line in ("dog", "dog Hund", "dog\t", "\tHund", "dog\tHund\t0.5", "dog\tder Hund"):
        (tmp_path / "lexicon").write_text(f"cat\tKatze\n{line}\n")
        with pytest.raises(DataError, match=r"lexicon, line 2: a line is a source word, a tab and a target word, but"):
            read_lexicon(tmp_path / "lexicon")
