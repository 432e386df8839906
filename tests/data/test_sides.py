"""Swapped sides are refused where the text shows it for certain, and nothing else is."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.data.locators import load_corpus, load_training_corpus
from nmt.errors import DataError
from nmt.recipe import DataConfig

ENGLISH, GREEK = ("the dog runs", "a cat", "OK", "we see it"), ("ο σκύλος τρέχει", "μια γάτα", "OK", "το βλέπουμε")


def write(folder: Path, texts: Sequence[Sequence[str]], names: tuple[str, str]) -> str:
    for text, name in zip(texts, names, strict=True):
        (folder / f"train.{name}").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return str(folder / "train")


def train(locator: str, source: str, target: str) -> int:
    return len(load_training_corpus(DataConfig(source=source, target=target, train=locator, valid=locator)))


def test_text_in_the_scripts_of_each_other_is_refused(tmp_path: Path) -> None:
    right = write(tmp_path, (ENGLISH * 5, GREEK * 5), ("en", "el"))
    assert len(load_corpus(right, source="en", target="el")) == 20
    assert len(load_corpus(right, source="el", target="en")) == 20
    swapped = write(tmp_path, (GREEK * 5, ENGLISH * 5), ("en", "el"))
    for source, target in (("en", "el"), ("el", "en")):
        sentence = rf"^The sides of .*/train are swapped: its {source} side is in {target}, and its {target} side in {source}\."
        with pytest.raises(DataError, match=sentence):
            load_corpus(swapped, source=source, target=target)


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        ((GREEK, ENGLISH), ("en", "el")),  # so little text is no certainty
        ((ENGLISH * 5, ENGLISH[::-1] * 5), ("en", "el")),  # one side alone
        ((GREEK * 5, ENGLISH * 5), ("sr", "en")),  # written in Cyrillic or Latin
        ((GREEK * 5, ENGLISH * 5), ("en", "xx")),
        ((("1, 2", "?") * 10, ("3", "...") * 10), ("en", "el")),
    ],
)
def test_what_is_not_certain_is_read(tmp_path: Path, texts: Sequence[Sequence[str]], names: tuple[str, str]) -> None:
    locator = write(tmp_path, texts, names)
    assert len(load_corpus(locator, source=names[0], target=names[1])) == len(texts[0])


def test_text_in_the_languages_of_each_other_is_refused_for_training(tmp_path: Path) -> None:
    pytest.importorskip("py3langid", reason="needs the extra langid: pip install attentional-nmt[langid]")
    corpus = load_corpus("sample:train[:200]", source="en", target="de")
    english, german = list(corpus.source), list(corpus.target)
    right = write(tmp_path, (english, german), ("en", "de"))
    assert train(right, "en", "de") == train(right, "de", "en") == 200
    with pytest.raises(DataError, match=r"are swapped"):
        train(write(tmp_path, (german, english), ("en", "de")), "en", "de")
    assert train(write(tmp_path, (english, english[::-1]), ("en", "de")), "en", "de") == 200, (
        "one side alone is no certainty"
    )
