"""A translation knows its words, alignment and links, draws itself, and shows itself in a notebook."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.extraction import Extraction, fitting_extraction
from nmt.alignment.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError, UsageError
from tests.robustness import tiny

LINE = "the dog sees a cat ."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator([tiny.bundle()])


def test_words_alignment_and_links_are_those_of_the_commands(translator: Translator) -> None:
    bundle = tiny.bundle()
    for translation in translator.translate([LINE, "a cat", ""], n_best=2):
        for rank in range(len(translation.hypotheses)):
            words = translation.word_alignment(rank)
            assert words.target == tuple(translation.hypotheses[rank].text.split())
            assert translation.word_links(rank) == fitting_extraction(bundle.recipe).pair(words).links
        assert translation.words == tuple(translation.text.split())
        assert translation.source_words == tuple(translation.source.split())
        assert isinstance(translation.alignment, np.ndarray)
        assert translation.alignment.shape == (len(translation.words), len(translation.source_words))
        assert translation.links == translation.word_links(0)
        assert str(translation) == translation.text
        assert repr(translation).startswith(f"Translation({translation.source!r} -> ")
        best = translation.hypotheses[0]
        assert repr(best) == f"TranslationHypothesis({best.text!r}, score={best.score:.4f})"
        shown = f"Alignment({' '.join(translation.source_words)!r} -> {best.text!r}, weights {list(translation.alignment.shape)})"
        assert repr(translation.word_alignment()) == shown
        assert repr(translation.aligned_pair()).startswith(f"AlignedPair(alignment={shown}, links=")
    assert repr(translator) == f"Translator({bundle.recipe.name!r}, en to de, 1 model)"
    [long] = translator.translate(["a cat " * 400], max_ratio=0.1)
    assert len(repr(long)) < 250


def test_given_pairs_are_aligned_by_the_posterior(translator: Translator) -> None:
    pair = (LINE, "a cat sleeps")
    aligned, [listed] = translator.align(pair), translator.align([pair])
    expected = translator.score(pair, posterior=True)
    assert aligned == listed == expected
    assert aligned.links == Extraction("mutual").pair(aligned.word_alignment()).links
    assert aligned.words == ("a", "cat", "sleeps")
    attention = translator.align(pair, posterior=False)
    assert attention == translator.score(pair)
    assert not np.allclose(attention.alignment, aligned.alignment)


def test_without_an_alignment_there_are_words_and_a_sentence(translator: Translator) -> None:
    translation = translator.translate(LINE, alignments=False)
    assert translation.words == tuple(translation.text.split())
    with pytest.raises(DataError, match="has no alignment: its line is longer than 4,096 tokens, or alignments=False"):
        _ = translation.links
    assert translation._repr_png_() is None


def test_pickling_keeps_the_words_and_leaves_the_subwords(translator: Translator) -> None:
    translation = translator.translate(LINE, n_best=2)
    stored = pickle.dumps(translation)
    assert len(stored) < len(tiny.bundle().source.serialized)
    again = pickle.loads(stored)
    assert again == translation
    assert (again.words, again.links) == (translation.words, translation.links)
    assert again.word_alignment(1) == translation.word_alignment(1)
    assert pickle.loads(pickle.dumps(again)).links == translation.links
    assert translation.token_alignment().source
    with pytest.raises(UsageError, match="tokens of a Translation are not pickled"):
        again.token_alignment()
    by_hand = Translation(translation.source, translation.source_ids, translation.hypotheses)
    assert by_hand == translation
    with pytest.raises(UsageError, match="known only if a Translator made it"):
        _ = by_hand.words


def test_it_draws_itself(translator: Translator, tmp_path: Path) -> None:
    picture = translator.align((LINE, "a cat")).plot(tmp_path / "pair.svg", title="$x$", gold={(0, 0)})
    assert (tmp_path / "pair.svg").read_bytes() == picture.content
    assert picture._repr_png_() is None
    assert "posterior weight" in str(picture._repr_svg_())
    again = translator.align((LINE, "a cat")).plot()
    assert str(again) == "Drawing(kind='png')"
    assert str(again._repr_png_()).startswith(r"b'\x89PNG")
    again.save(tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == again.content
    with pytest.raises(UsageError, match=r"This picture is a \.png, not what .*again\.svg says"):
        again.save(tmp_path / "again.svg")
    assert str(translator.translate(LINE)._repr_png_()).startswith(r"b'\x89PNG")  # what a notebook shows
    assert translator.translate("")._repr_png_() is None
