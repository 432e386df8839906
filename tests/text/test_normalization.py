"""The normal form of a line."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import get_args

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nmt.bundle.folder import RECIPE
from nmt.data.locators import load_text, load_training_corpus
from nmt.recipe import DataConfig, Normalization, dump_recipe, load_recipe
from nmt.text.normalization import Normalizer

NFC = Normalizer("nfc")
ZWNJ, ZWJ = "\u200c", "\u200d"
LINES = st.text(
    st.characters() | st.sampled_from(f"ab  \t\n\u00a0\u00ad\u200b\ufeff\u0301\u0308{ZWNJ}{ZWJ}ی\u0915\u094d👩🏽\ufe0f")
)


def plain(line: str) -> str:
    """What `none` is, by itself: no control characters, no lone surrogates, no needless spaces."""
    line = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", line)
    return re.sub(" {2,}", " ", re.sub(r"[\ud800-\udfff]", "\ufffd", line)).strip(" ")


@pytest.mark.parametrize(
    ("line", "normal"),
    [
        ("ein\u00a0Hund", "ein Hund"),
        ("10\u202f%\u3000und\u2003so", "10 % und so"),
        ("  zwei   Hunde \t", "zwei Hunde"),
        ("\ufeffEin\u200b Hund\u2060 \u200fHaus\u00adtür\u200e.", "Ein Hund Haustür."),
        ("scho\u0308n scho\u200b\u0308n", "schön schön"),
        ("a\u2028b\x00c\ud800", "a b c\ufffd"),
        (f"می{ZWNJ}خواهم क्{ZWJ}ष", f"می{ZWNJ}خواهم क्{ZWJ}ष"),
        (f"ab{ZWNJ}c{ZWJ}d", "abcd"),
        (f"👩🏽{ZWJ}🚀 ❤\ufe0f{ZWJ}🔥", f"👩🏽{ZWJ}🚀 ❤\ufe0f{ZWJ}🔥"),
        ("ﬁn Ａ² ｶﾞ", "ﬁn Ａ² ｶﾞ"),
    ],
)
def test_nfc(line: str, normal: str) -> None:
    assert NFC(line) == normal
    assert NFC.all([line, "Ein Hund."]) == [normal, "Ein Hund."]


def test_nfkc_has_plain_characters() -> None:
    assert Normalizer("nfkc")("ﬁn Ａ² ｶﾞ") == "fin A2 ガ"


@given(line=LINES)
def test_none_only_cleans(line: str) -> None:
    assert Normalizer("none")(line) == plain(line)


@pytest.mark.parametrize("form", get_args(Normalization))
@given(lines=st.lists(LINES, max_size=3))
def test_a_normal_form_is_one_clean_line_and_stays(form: Normalization, lines: list[str]) -> None:
    normalizer = Normalizer(form)
    normal = normalizer.all(lines)
    assert normal == [normalizer(line) for line in lines]
    assert normalizer.all(normal) == normal
    for line in normal:
        assert line == plain(line)
        if normalizer.is_normal([line]):
            assert normalizer._normalized(line) == line
        assert form == "none" or unicodedata.is_normalized(form.upper(), line)  # type: ignore[arg-type]


def test_corpora_are_normalized_by_the_recipe(tmp_path: Path) -> None:
    lines = {"a.en": " a\u00a0dog", "a.de": "ein  Hund", "b.en": "two dogs", "b.de": "zwei Hunde"}
    for name, line in lines.items():
        (tmp_path / name).write_text(f"{line}\n", encoding="utf-8")
    locators = tuple(str(tmp_path / name) for name in "ab")
    train = ({"corpus": locators[0], "tag": "<T>"}, locators[1])
    data = DataConfig.model_validate({"source": "en", "target": "de", "train": train, "valid": locators[0]})
    assert list(load_training_corpus(data)) == [("<T> a dog", "ein Hund"), ("two dogs", "zwei Hunde")]
    assert list(load_text(data, data.valid)) == [("a dog", "ein Hund")]
    raw = data.model_copy(update={"normalization": "none"})
    assert list(load_text(raw, data.valid)) == [("a\u00a0dog", "ein Hund")]


def test_models_from_before_the_setting_have_none(tmp_path: Path) -> None:
    recipe = load_recipe("quickstart")
    assert recipe.data.normalization == "nfc"
    path = tmp_path / RECIPE
    path.write_text(dump_recipe(recipe).replace("  normalization: nfc\n", ""), encoding="utf-8")
    assert load_recipe(path).data.normalization == "nfc"
    (tmp_path / "source.model").touch()
    assert load_recipe(path).data.normalization == "none"
    assert load_recipe(path, based=False).data.normalization == "none"
    beside = path.rename(tmp_path / "mine.yaml")  # users keep their recipes beside the subwords that they name
    assert load_recipe(beside).data.normalization == "nfc"
