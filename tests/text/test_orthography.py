"""What other writing systems add to Latin letters survives: combining marks, saltillo, apostrophes as letters, tildes on any vowel.

A line is normalized, encoded, decoded and made a single line, as text is on its way through training and translation.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import islice
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from nmt.data.lines import read_lines
from nmt.text.normalization import Normalizer
from nmt.text.subwords import Kind, Subwords
from nmt.text.words import clean

LINES = (
    "Mba'éichapa, g\u0303uarani ñe'ẽ: ỹ ĩ ũ õ ã, G\u0303.",  # no code point for g with a tilde
    "Ye' kë\u0300 e' wa\u0331 tso\u0331' dör, kë\u0300 ta\u0331'.",  # nor for marks below
    "Nocēltia ꞌ Ꞌ tlahꞌtolli, cuahuitl ʼ nāhuatl ’ ʔ.",
    "Ọ̀rọ̀ náà ni ẹ́ ṣe é, Ọjọ́ Àìkú.",
    "Ŋutɔ ƒe ʋu la ɖo eƒe aƒeme, ɣ.",
    "Enra ea iki joni, moa kaai ´ ` ¨ ^ ~.",
)
"""Guarani, Bribri, Nahuatl, Yoruba, Ewe, and Shipibo with marks that stand alone."""
LETTERS = "aeiouygnkstmñọɖŋƒʔ'ʼꞌ’"
MARKS = "\u0300\u0301\u0302\u0303\u0304\u0308\u030c\u0323\u0331\u0330"
WORDS = st.lists(st.builds("".join, st.tuples(st.sampled_from(LETTERS), st.text(MARKS, max_size=2))), min_size=1)
TEXTS = st.lists(WORDS.map("".join), min_size=1).map(" ".join)
KINDS: list[Kind] = ["unigram", "bpe", "char"]
NFC = Normalizer("nfc")


@cache
def subwords(kind: Kind) -> Subwords:
    return Subwords.train(map(NFC, LINES), kind=kind, size=340, byte_fallback=True)


def written(model: Subwords, line: str) -> str:
    """A line as the model would write it."""
    return clean(model.decode(model.encode(line)))


@given(TEXTS)
def test_normalizing_composes_and_changes_nothing_else(text: str) -> None:
    assert NFC(text) == unicodedata.normalize("NFC", text)
    assert Normalizer("none")(text) == text


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS)
def test_every_mark_survives_subwords_that_have_not_seen_it(kind: Kind, text: str) -> None:
    normal = NFC(text)
    assert written(subwords(kind), normal).encode() == normal.encode()


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampled_segmentations_spell_the_same(kind: Kind) -> None:
    model, lines = subwords(kind), list(map(NFC, LINES))
    for seed in range(5):
        assert [model.decode(ids) for ids in model.sample(lines, 0.2, seed=seed)] == lines


@given(WORDS.map("".join))
def test_the_tokenizer_of_bleu_cuts_no_word(word: str) -> None:
    assert Tokenizer13a()(NFC(word)) == NFC(word)


@pytest.mark.parametrize("name", ["es-gn", "es-bzd", "es-nah", "es-shp", "en-yor", "fr-ewe"])
def test_the_lines_of_a_corpus_survive(corpora: Path, name: str) -> None:
    """Held-out lines too, by subwords of other lines."""
    folder, code = corpora / "low" / name, name.partition("-")[2]
    if not folder.is_dir():
        pytest.skip(f"needs {folder}")
    train, held_out = (list(islice(read_lines(folder / f"{split}.{code}.gz"), 2000)) for split in ("train", "dev"))
    model = Subwords.train(map(NFC, train), kind="bpe", size=1000, byte_fallback=True)
    for line in [*train, *held_out]:
        normal = NFC(line)
        assert written(model, normal).encode() == normal.encode()
        assert _spelling(normal) == _spelling(line)


def _spelling(line: str) -> list[str]:
    """The letters of a line with their marks, one by one."""
    return [one for one in unicodedata.normalize("NFD", line) if unicodedata.category(one)[0] in "LM" or one in "'’`´"]
