"""`nmt align` and `nmt plot --layer --head`, and `nmt.load(layer=, head=)`: any attention of a Transformer is its alignment."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt as package
from nmt.bundle.folder import Bundle
from nmt.decoding.self_attention import read_self_attention
from nmt.errors import UsageError
from tests.cli.conftest import SOURCE, TARGET
from tests.commands import good, nmt
from tests.plotting.test_heatmap import page_sizes, texts


def weights_of(untrained: Path, *arguments: object, model: str = "transformer") -> np.ndarray:
    """The weights that `nmt align` writes for the first pair."""
    texts = ["-s", "text.en", "-t", "text.de", "--format", "json", "--threads", "1"]
    return np.array(json.loads(good(nmt("align", model, *texts, *arguments, cwd=untrained)).splitlines()[0])["weights"])


def alignment(untrained: Path, **options: Any) -> np.ndarray:
    """The weights of the first pair in Python; words are tokens here."""
    [hypothesis] = package.load(untrained / "transformer", "cpu", **options).score((SOURCE[0], TARGET[0])).hypotheses
    weights: np.ndarray = hypothesis.alignment[:-1, :-1].numpy()
    return weights


def test_every_layer_and_head_is_an_alignment_and_without_a_head_it_is_their_mean(untrained: Path) -> None:
    heads = {places: alignment(untrained, layer=places[0], head=places[1]) for places in product((1, 2, 3), (1, 2))}
    for one, other in combinations(heads.values(), 2):
        assert np.abs(one - other).max() > 1e-3
    for layer in (1, 2, 3):
        mean = (heads[layer, 1] + heads[layer, 2]) / 2
        np.testing.assert_allclose(alignment(untrained, layer=layer), mean, atol=1e-6)
    np.testing.assert_allclose(weights_of(untrained, "--layer", 3, "--head", 2), heads[3, 2], atol=1e-4)
    np.testing.assert_allclose(weights_of(untrained, "--layer", 1), alignment(untrained, layer=1), atol=1e-4)


def test_without_a_layer_it_is_the_recipes(untrained: Path) -> None:
    np.testing.assert_array_equal(alignment(untrained), alignment(untrained, layer=2))
    np.testing.assert_array_equal(alignment(untrained, head=1), alignment(untrained, layer=2, head=1))
    attention = weights_of(untrained, "--weights", "attention")
    np.testing.assert_allclose(attention, alignment(untrained), atol=1e-4)
    assert np.abs(weights_of(untrained) - attention).max() > 1e-3  # the posterior


# --- pictures -----------------------------------------------------------------------------------------------------


def draw(untrained: Path, output: Path, *arguments: object) -> Path:
    options = [SOURCE[0], "--translation", TARGET[0], "-o", output, "-q", "--threads", "1"]
    assert good(nmt("plot", "transformer", *options, *arguments, cwd=untrained)).strip() == str(output)
    return output


def test_a_picture_is_of_the_layer_and_head_that_are_chosen(untrained: Path, tmp_path: Path) -> None:
    for options, title in (
        (("--layer", 3, "--head", 2), ["layer 3, head 2"]),
        (("--layer", 3), ["layer 3, mean of the heads"]),
        ((), []),
    ):
        shown = texts(draw(untrained, tmp_path / "a.svg", *options))
        assert [text for text in shown if text.startswith("layer")] == title


def test_a_page_names_the_layer_and_head_beside_the_recurrent_model(untrained: Path, tmp_path: Path) -> None:
    options = ["--compare", "words-en-de", "--layer", 1, "--head", 2, "-o", tmp_path / "page.html", "-q"]
    good(nmt("plot", "transformer", SOURCE[0], "--translation", TARGET[0], *options, cwd=untrained))
    page = (tmp_path / "page.html").read_text()
    assert "transformer, layer 1, head 2" in page
    assert "words-en-de, layer" not in page


@pytest.mark.parametrize(
    ("model", "options", "problem"),
    [
        ("transformer", {"layer": 0}, "layer must be at least 1, but is 0."),
        ("transformer", {"head": 1, "posterior": True}, "leave them out, or posterior=True."),
    ],
)
def test_python_refuses_the_same(untrained: Path, model: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        package.load(untrained / model, "cpu", **options)


# --- self-attention -----------------------------------------------------------------------------------------------


def read_self(untrained: Path, line: str = SOURCE[0], **view: Any) -> package.Alignment:
    return read_self_attention(Bundle.load(untrained / "transformer"), line, **view)


def test_self_attention_is_between_the_words_of_a_sentence(untrained: Path) -> None:
    heads = [read_self(untrained, head=head).weights for head in (1, 2)]
    mean = read_self(untrained)
    assert mean.source == mean.target == tuple(SOURCE[0].split())
    np.testing.assert_allclose(mean.weights, (heads[0] + heads[1]) / 2, atol=1e-6)
    assert np.abs(heads[0] - heads[1]).max() > 1e-3
    assert (mean.weights.sum(axis=1) > 0.5).all()  # the rest is on the end mark
    assert (mean.weights.sum(axis=1) < 1).all()
    tokens = read_self(untrained, layer=1, subwords=True)
    np.testing.assert_allclose(tokens.weights, mean.weights, atol=1e-6)  # each word is a token here
    assert tokens.source[0] == "▁the"


def test_self_attention_is_drawn(untrained: Path, tmp_path: Path) -> None:
    output, options = tmp_path / "self.svg", ["--self", "-q", "--head", "2", "--layer", "1"]
    assert good(nmt("plot", "transformer", SOURCE[0], "-o", output, *options, cwd=untrained)) == f"{output}\n"
    assert texts(output).count("sees") == 2
    pages = tmp_path / "self.pdf"
    good(nmt("plot", "transformer", SOURCE[0], SOURCE[2], "--self", "-q", "-o", pages, cwd=untrained))
    assert len(page_sizes(pages)) == 2
