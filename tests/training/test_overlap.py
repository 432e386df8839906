"""Held-out text that is also trained on is found, counted and said, whatever else the texts hold."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_corpus
from nmt.training import advice
from nmt.training.advice import Overlap, overlap_warning
from nmt.training.text import TrainingText
from nmt.training.trainer import train
from tests.training.toy import recipe, write_reversal

sentences = st.sampled_from(["", "a", "b", "a b", "ä", "\u2028"])
texts = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=8)


def corpus(pairs: list[tuple[str, str]]) -> ParallelCorpus:
    source, target = collect([[list(side) for side in zip(*pairs, strict=True)]], 2)
    return ParallelCorpus(source, target, "text", ("en", "de"))


@given(held_out=texts, train=texts)
@settings(max_examples=100)
def test_overlaps_agree_with_a_plain_reading(held_out: list[tuple[str, str]], train: list[tuple[str, str]]) -> None:
    overlap = Overlap.of(corpus(held_out), corpus(train))
    pairs = [pair in train for pair in held_out]
    sources = [source in [other for other, _ in train] for source, _ in held_out]
    assert (overlap.lines, overlap.pairs, overlap.sources) == (len(held_out), sum(pairs), sum(sources))
    if not any(sources):
        assert overlap.example is None
    else:
        row = (pairs if any(pairs) else sources).index(True)
        assert overlap.example == (row, held_out[row][0])


TRAIN = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("a bird", "ein Vogel")]


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    for side, code in enumerate(("src", "tgt")):
        (folder / f"{name}.{code}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")


def warning(folder: Path, test: str | None) -> str | None:
    data = recipe(folder).data.model_copy(update={"test": test})
    texts = [load_corpus(name, source="src", target="tgt") for name in (str(data.train), str(data.valid))]
    return overlap_warning(data, TrainingText(texts[0], texts[1]))


def test_one_sentence_names_both_texts_and_an_example(tmp_path: Path) -> None:
    write(tmp_path, "train", TRAIN)
    write(tmp_path, "valid", [("a fish", "ein Fisch"), ("a cat", "die Katze")])
    write(tmp_path, "test", [("a cat", "die Katze"), ("a bird", "ein Vogel"), ("a dog", "ein Hund")])
    assert warning(tmp_path, f"{tmp_path}/test") == (
        "Warning: data.train also has 0 pairs and 1 source of the 2 of data.valid (such as line 2: a cat) "
        "and 2 pairs and 3 sources of the 3 of data.test (such as line 2: a bird). "
        "Scores on text that was trained on are too high."
    )
    assert "data.test" not in str(warning(tmp_path, None))
    assert "data.valid" in str(warning(tmp_path, f"{tmp_path}/nowhere"))


def test_texts_apart_are_no_matter(tmp_path: Path) -> None:
    write(tmp_path, "train", TRAIN)
    write(tmp_path, "valid", [("a fish", "ein Hund")])
    assert warning(tmp_path, f"{tmp_path}/valid") is None


@pytest.mark.parametrize("test", ["hf:nobody/nothing:test", "sacrebleu:wmt14/en-de", "multi30k/test_2016_flickr"])
def test_no_test_text_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str) -> None:
    write(tmp_path, "train", TRAIN)
    write(tmp_path, "valid", [("a fish", "ein Fisch")])
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_CORPORA", raising=False)
    for function in ("catalogue.fetching._fetch_file", "locators.read_hub", "locators.sacrebleu_files"):
        monkeypatch.setattr(f"nmt.data.{function}", lambda *_: pytest.fail("fetched"))
    data = recipe(tmp_path).data.model_copy(update={"source": "en", "target": "de", "test": test})
    text = TrainingText(corpus(TRAIN), corpus([("a fish", "ein Fisch")]))
    assert overlap_warning(data, text) is None


def test_a_training_warns_once_at_its_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5, longest=30)
    lines = (tmp_path / "train.src").read_text().splitlines()
    (tmp_path / "valid.src").write_text("".join(f"{line}\n" for line in lines[:5]))
    toy = recipe(tmp_path, training={"epochs": 1, "validation": {"metrics": "perplexity"}})
    train(toy, tmp_path / "run", device="cpu")
    assert capsys.readouterr().err.count("has 0 pairs and 5 sources of the 5 of data.valid (such as line 1:") == 1
    train(toy, tmp_path / "run", device="cpu", resume=True)
    assert "data.valid" not in capsys.readouterr().err
    monkeypatch.setattr(advice, "overlap_warning", lambda *_: pytest.fail("compared for nobody"))
    train(toy, tmp_path / "quiet", device="cpu", quiet=True)
    assert capsys.readouterr().err == ""
