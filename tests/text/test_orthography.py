"""What other writing systems add to Latin letters survives: combining marks, saltillo, apostrophes as letters, tildes on any vowel.

A line is normalized, encoded, decoded and made a single line, as text is on its way through training and translation.
"""

import unicodedata
from functools import cache

import hypothesis.strategies as st
import pytest
from hypothesis import given
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

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
NFC = Normalizer("nfc")


@cache
def subwords(kind: Kind) -> Subwords:
    return Subwords.train(map(NFC, LINES), kind=kind, size=340, byte_fallback=True)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(text=TEXTS)
def test_every_mark_survives_subwords_that_have_not_seen_it(kind: Kind, text: str) -> None:
    normal, model = NFC(text), subwords(kind)
    assert normal == unicodedata.normalize("NFC", text)
    assert Normalizer("none")(text) == text
    assert clean(model.decode(model.encode(normal))).encode() == normal.encode()


@given(WORDS.map("".join))
def test_the_tokenizer_of_bleu_cuts_no_word(word: str) -> None:
    assert Tokenizer13a()(NFC(word)) == NFC(word)
