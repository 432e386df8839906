"""Words linked by what text teaches: on the embedded sample's gold links, on unseen text, on text that is odd."""

from __future__ import annotations

import numpy as np
import pytest

from nmt.alignment.error_rate import error_rate
from nmt.alignment.links import GoldLinks
from nmt.alignment.statistical import aligner
from nmt.alignment.statistical.aligner import MAX_WORDS, HMMAligner
from nmt.alignment.statistical.hmm import FLOOR, agreement, learn
from nmt.alignment.statistical.word_forms import WordForms
from nmt.data import sample
from nmt.data.locators import load_corpus
from nmt.errors import DataError

TEXT = [
    ("red dog", "hund rot"),
    ("red cat", "katze rot"),
    ("big dog", "hund gross"),
    ("dog", "hund"),
    ("cat", "katze"),
] * 20


@pytest.fixture(scope="module")
def taught() -> HMMAligner:
    return HMMAligner.learn(TEXT)


def test_words_are_linked_to_their_translations(taught: HMMAligner) -> None:
    result = list(taught.links(TEXT[:5]))
    assert result == [{(0, 1), (1, 0)}, {(0, 1), (1, 0)}, {(0, 1), (1, 0)}, {(0, 0)}, {(0, 0)}]


def test_confidences_are_the_geometric_means_of_the_posteriors(taught: HMMAligner) -> None:
    (links,) = taught.confident_links(TEXT[:1])
    assert links.keys() == {(0, 1), (1, 0)}
    cells, source, target = aligner._cells(TEXT[:1], taught.splits)
    (matrix,) = cells.groups[0].of(agreement(*taught._models_of(cells, source, target), cells))
    assert links == {(i, j): pytest.approx(min(float(matrix[j, i]), 1)) for i, j in links}


def test_one_direction_links_a_generated_word_once_and_the_other_is_that_of_the_swapped_text() -> None:
    text = sample.examples("train")[:300]
    pairs = [(example.source, example.target) for example in text]
    taught, swapped = HMMAligner.learn(pairs), [pair[::-1] for pair in pairs]
    forward, reverse = (list(taught.directed_links(pairs, direction)) for direction in ("forward", "reverse"))
    assert all(len({j for _, j in links}) == len(links) for links in forward)
    assert any(len({i for i, _ in links}) < len(links) for links in forward)
    assert all(0 < posterior < 1.001 for links in forward for posterior in links.values())
    for there, back in zip(reverse, HMMAligner.learn(swapped).directed_links(swapped, "forward"), strict=True):
        assert there == pytest.approx({(i, j): posterior for (j, i), posterior in back.items()}, rel=1e-2)
    for links, forward_links, reverse_links in zip(taught.joined_links(pairs, "union"), forward, reverse, strict=True):
        assert links.keys() == forward_links.keys() | reverse_links.keys()


def test_entries_without_weight_are_left_out_and_change_little(taught: HMMAligner) -> None:
    together = {(x, y) for source, target in TEXT for x in source.split() for y in target.split()}
    assert 4 <= len(taught.keys) < len(together)
    cells, source, target = aligner._cells(TEXT, taught.splits)
    forms = WordForms.of(cells, source, target)
    plain = learn(cells, forms)
    for model, whole in zip(taught._models_of(cells, source, target), plain, strict=True):
        assert model.table.translation == pytest.approx(np.maximum(whole.table.translation, FLOOR), rel=1e-2)
        assert model.table.empty[: len(whole.table.empty)] == pytest.approx(whole.table.empty)


def test_new_words_are_linked_by_stems_and_spelling() -> None:
    text = [("negotiate now", "jetzt verhandeln"), ("negotiate", "verhandeln"), ("now", "jetzt")] * 10
    taught = HMMAligner.learn(text)
    new = [("negotiation now", "jetzt verhandelte"), ("columbia now", "jetzt colombie")]
    assert list(taught.links(new)) == [{(0, 1), (1, 0)}] * 2


def test_the_characters_of_a_text_without_spaces_are_linked() -> None:
    words = {"dog": "犬", "cat": "猫", "red": "赤", "big": "大"}
    text = [(source, "".join(words[word] for word in source.split())) for source, _ in TEXT]
    assert list(HMMAligner.learn(text).links(text[:4])) == [{(0, 0), (1, 1)}] * 3 + [{(0, 0)}]
    tokenized = [(source, target.replace("", " ").strip()) for source, target in text]
    assert list(HMMAligner.learn(tokenized).links(tokenized[:4])) == list(HMMAligner.learn(text).links(text[:4]))


def test_case_and_punctuation_do_not_hide_a_word(taught: HMMAligner) -> None:
    assert next(taught.links([('The "Red" dog .', "Hund, ROT!")])) >= {(1, 1), (2, 0)}


def test_lines_keep_their_places(taught: HMMAligner) -> None:
    long = " ".join(["dog"] * (MAX_WORDS + 1))
    text = [
        ("dog", "hund"),
        ("", ""),
        ("dog", " "),
        (long, "hund"),
        ("red dog", "hund rot"),
        ("unseen", "words here"),
        ("cat", "katze"),
    ]
    whole = list(taught.links(text))
    assert whole[:5] == [{(0, 0)}, set(), set(), set(), {(0, 1), (1, 0)}]
    assert whole[6] == {(0, 0)}
    copies = 10_000 // len(text) + 1  # more than are linked at a time
    assert list(taught.links(text * copies)) == whole * copies


def test_a_large_text_teaches_by_every_other_line(
    taught: HMMAligner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aligner, "MAX_CELLS", sum(len(x.split()) * len(y.split()) for x, y in TEXT) // 2)
    result = HMMAligner.learn(TEXT)
    assert "One line in 3 is learned from: the text has 280 pairs of words." in caplog.text
    assert result.forward.jumps.sum() < taught.forward.jumps.sum()
    assert list(result.links(TEXT[:5])) == list(taught.links(TEXT[:5]))


def test_nothing_teaches_nothing() -> None:
    with pytest.raises(DataError, match="no line has words on both sides"):
        HMMAligner.learn([("", "a"), ("b", " ")])


def test_the_samples_links_are_found() -> None:
    corpus = load_corpus("sample:train", source="en", target="de")
    pairs = list(corpus.pairs())[:1000]
    gold = list(sample.links("train", source="en"))[:1000]
    rate = error_rate(list(HMMAligner.learn(pairs).links(pairs)), [GoldLinks(links, links) for links in gold])
    assert rate.aer < 0.08
