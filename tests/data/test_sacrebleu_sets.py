"""sacreBLEU's test sets as corpora, from a folder that stands for its cache."""

from pathlib import Path
from typing import Any

import pytest
from sacrebleu.dataset import DATASETS

from nmt.data.locators import load_corpus
from nmt.errors import DataError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """sacreBLEU's folder of wmt14, with the text of en-de, and nothing to download from."""
    test_set: Any = DATASETS["wmt14"]
    monkeypatch.setattr(test_set, "_outdir", str(tmp_path))
    monkeypatch.setattr(test_set, "_rawdir", str(tmp_path / "raw"))
    monkeypatch.setattr(test_set, "data", ["http://127.0.0.1:9/test.tgz"])
    monkeypatch.setenv("no_proxy", "*")
    for name, text in {"src": "one\ntwo\n", "ref": "eins\nzwei\n", "docid": "", "genre": "", "origlang": ""}.items():
        (tmp_path / f"wmt14.en-de.{name}").write_text(text)
    return tmp_path


def test_a_test_set_is_a_corpus_in_both_directions() -> None:
    assert list(load_corpus("sacrebleu:wmt14/en-de", source="en", target="de").pairs()) == [
        ("one", "eins"),
        ("two", "zwei"),
    ]
    assert list(load_corpus("sacrebleu:wmt14/en-de", source="de", target="en").pairs())[1] == ("zwei", "two")


@pytest.mark.parametrize(
    ("locator", "sentence"),
    [
        ("sacrebleu:wmt14/fool/en-de", "sacreBLEU has no test set 'wmt14/fool'; did you mean 'wmt14/full'?"),
        ("sacrebleu:nothing", "sacreBLEU has no test set 'nothing'; it has "),
        ("sacrebleu:wmt14", "sacrebleu:wmt14 needs a language pair, as in sacrebleu:wmt14/cs-en."),
        ("sacrebleu:wmt14/full", "sacrebleu:wmt14/full needs a language pair, as in sacrebleu:wmt14/full/cs-en."),
        ("sacrebleu:wmt14/en-da", "sacreBLEU's wmt14 has no en-da; did you mean 'en-"),
        ("sacrebleu:wmt14/en-fr", "sacrebleu:wmt14/en-fr is in en and fr, not in en and de."),
    ],
)
def test_what_sacrebleu_does_not_have_is_one_sentence(locator: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        load_corpus(locator, source="en", target="de")
    assert str(caught.value).startswith(sentence)


def test_without_a_connection_it_says_what_to_do() -> None:
    with pytest.raises(DataError) as caught:
        load_corpus("sacrebleu:wmt14/de-en", source="de", target="en")
    assert str(caught.value).startswith(
        "sacreBLEU cannot provide sacrebleu:wmt14/de-en: [Errno 111] Connection refused; on"
    )
    assert "\n" not in str(caught.value)


def test_a_wrong_checksum_is_no_end_of_the_program(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "raw").mkdir()
    test_set: Any = DATASETS["wmt14"]
    monkeypatch.setattr(test_set, "data", [(folder / "other.tgz").as_uri()])
    (folder / "other.tgz").write_bytes(b"not the archive")
    with pytest.raises(DataError, match=r"^sacreBLEU refused what it downloaded for wmt14"):
        load_corpus("sacrebleu:wmt14/de-en", source="de", target="en")
