"""`nmt align` and `nmt plot --layer --head`, and `nmt.load(layer=, head=)`: any attention of a Transformer is its alignment."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nmt as package
from nmt.bundle.folder import Bundle
from nmt.decoding.self_attention import read_self_attention
from nmt.errors import UsageError
from nmt.model.transformer import TransformerModel
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import bad, good, nmt
from tests.plotting.test_heatmap import page_sizes, texts

SOURCE, TARGET = "the dog sees a cat", "a cat sleeps"
TRANSFORMER = {
    "kind": "transformer",
    "heads": 2,
    "encoder": {"layers": 1},
    "decoder": {"layers": 3},
    "embedding_scale": 9.0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, its translation, a Transformer, one of the other direction, and recurrent models of both, untrained."""
    root = tmp_path_factory.mktemp("heads")
    (root / "text.en").write_text(f"{SOURCE}\na dog\n")
    (root / "text.de").write_text(f"{TARGET}\nthe dog\n")
    words = Subwords.train(TEXT, kind="word", size=13, byte_fallback=False)
    forward = small_recipe()
    recipes = {"recurrent": forward, "transformer": _with_model(forward, TRANSFORMER | {"embedding": 8})}
    turned = forward.data.model_copy(update={"source": "de", "target": "en"})
    recipes |= {f"{name}-back": recipe.model_copy(update={"data": turned}) for name, recipe in recipes.items()}
    for name, recipe in recipes.items():
        Bundle.fresh(recipe, words, words).save(root / name)
    return root


def _with_model(recipe: package.Recipe, model: dict[str, Any]) -> package.Recipe:
    return package.Recipe.model_validate(recipe.model_dump(exclude={"model"}) | {"model": model})


def weights_of(folder: Path, *arguments: object, model: str = "transformer") -> np.ndarray:
    """The weights that `nmt align` writes for the first pair."""
    texts = ["-s", "text.en", "-t", "text.de", "--format", "json", "--threads", "1"]
    return np.array(json.loads(good(nmt("align", model, *texts, *arguments, cwd=folder)).splitlines()[0])["weights"])


def alignment(folder: Path, **options: Any) -> np.ndarray:
    """The weights of the first pair in Python; words are tokens here."""
    [hypothesis] = package.load(folder / "transformer", "cpu", **options).score((SOURCE, TARGET)).hypotheses
    weights: np.ndarray = hypothesis.alignment[:-1, :-1].numpy()
    return weights


def test_every_layer_and_head_is_an_alignment_and_without_a_head_it_is_their_mean(folder: Path) -> None:
    heads = {places: alignment(folder, layer=places[0], head=places[1]) for places in product((1, 2, 3), (1, 2))}
    for one, other in combinations(heads.values(), 2):
        assert np.abs(one - other).max() > 1e-3
    for layer in (1, 2, 3):
        mean = (heads[layer, 1] + heads[layer, 2]) / 2
        np.testing.assert_allclose(alignment(folder, layer=layer), mean, atol=1e-6)
    np.testing.assert_allclose(weights_of(folder, "--layer", 3, "--head", 2), heads[3, 2], atol=1e-4)
    np.testing.assert_allclose(weights_of(folder, "--layer", 1), alignment(folder, layer=1), atol=1e-4)


def test_without_a_layer_it_is_the_recipes(folder: Path) -> None:
    np.testing.assert_array_equal(alignment(folder), alignment(folder, layer=2))
    np.testing.assert_array_equal(alignment(folder, head=1), alignment(folder, layer=2, head=1))
    attention = weights_of(folder, "--weights", "attention")
    np.testing.assert_allclose(attention, alignment(folder), atol=1e-4)
    assert np.abs(weights_of(folder) - attention).max() > 1e-3  # the posterior


def test_a_layer_is_that_of_both_directions_if_both_have_it(folder: Path) -> None:
    options = ["--layer", 3, "--head", 2, "--symmetrize", "mean"]
    both, mixed = (weights_of(folder, *options, "--reverse", f"{name}-back") for name in ("transformer", "recurrent"))
    texts = ["-s", "text.de", "-t", "text.en", "--format", "json", "--threads", "1"]
    for weights, name, more in ((both, "transformer", options[:4]), (mixed, "recurrent", ["--weights", "attention"])):
        lines = good(nmt("align", f"{name}-back", *texts, *more, cwd=folder)).splitlines()
        backward = np.array(json.loads(lines[0])["weights"])
        np.testing.assert_allclose(weights, (weights_of(folder, *options[:4]) + backward.T) / 2, atol=2e-4)


def test_a_loaded_model_keeps_its_own_attention(folder: Path) -> None:
    bundle = Bundle.load(folder / "transformer")
    other = bundle.attending(1, 2)
    assert other.recipe.model.aligned_by == "layer 1, head 2"  # type: ignore[union-attr]
    assert bundle.recipe.model.aligned_by == "layer 2, mean of the heads"  # type: ignore[union-attr]
    model = bundle.model
    assert isinstance(model, TransformerModel)
    assert (model.alignment_layer, model.alignment_head) == (2, None)
    assert all(one is two for one, two in zip(bundle.model.parameters(), other.model.parameters(), strict=True))


def test_a_translator_takes_its_head_to_another_process(folder: Path) -> None:
    translator = package.load(folder / "transformer", "cpu", layer=3, head=2)
    copied = pickle.loads(pickle.dumps(translator))
    one, other = (each.score((SOURCE, TARGET)).hypotheses[0].alignment for each in (translator, copied))
    torch.testing.assert_close(one, other)


def test_an_ensemble_averages_the_head_with_the_recurrent_models_attention(folder: Path) -> None:
    folders = [folder / "transformer", folder / "recurrent"]
    mean = package.load(folders, "cpu", layer=3, head=1).score((SOURCE, TARGET)).hypotheses[0].alignment
    alone = [package.load(folders[0], "cpu", layer=3, head=1), package.load(folders[1], "cpu")]
    each = [translator.score((SOURCE, TARGET)).hypotheses[0].alignment for translator in alone]
    torch.testing.assert_close(mean, (each[0] + each[1]) / 2)


# --- pictures -----------------------------------------------------------------------------------------------------


def draw(folder: Path, *arguments: object, name: str = "picture.svg") -> Path:
    options = [SOURCE, "--target", TARGET, "-o", name, "-q", "--threads", "1"]
    assert good(nmt("plot", "transformer", *options, *arguments, cwd=folder)).strip() == name
    return folder / name


def cells(picture: Path) -> Counter[str]:
    """The weights in the cells, and the titles."""
    shown = Counter(text for text in texts(picture) if re.fullmatch(r"[01]\.[0-9]{2}|layer .*", text))
    return shown - Counter(["0.00", "0.25", "0.50", "0.75", "1.00"])  # beside the bar


def test_a_figure_of_all_heads_has_the_panels_of_each(folder: Path) -> None:
    every = cells(draw(folder, "--layer", 3, "--head", "all"))
    one, other = (cells(draw(folder, "--layer", 3, "--head", head)) for head in (1, 2))
    assert every == one + other
    assert (one["layer 3, head 1"], other["layer 3, head 2"]) == (1, 1)
    assert one.total() > 10
    assert "layer 3, mean of the heads" in texts(draw(folder, "--layer", 3))
    assert not [text for text in texts(draw(folder)) if text.startswith("layer")]


def test_all_heads_show_the_translation_that_the_model_finds(folder: Path) -> None:
    options = ["-o", "some.pdf", "--beam-size", 2, "--threads", "1"]
    ended = nmt("plot", "transformer", "-i", "text.en", "--head", "all", *options, cwd=folder)
    assert good(ended).strip() == "some.pdf"
    assert len(page_sizes(folder / "some.pdf")) == 2
    translator = package.load(folder / "transformer", "cpu", decoding={"beam_size": 2}, max_source=10_000)
    lines = [line for line in ended.stderr.decode().splitlines() if not line.startswith("nmt: ")]
    assert lines == [translator.translate(line).text for line in (SOURCE, "a dog")]


def test_a_page_names_the_layer_and_head_beside_the_recurrent_model(folder: Path) -> None:
    options = ["--compare", "recurrent", "--layer", 1, "--head", 2, "-o", "page.html", "-q"]
    good(nmt("plot", "transformer", SOURCE, "--target", TARGET, *options, cwd=folder))
    page = (folder / "page.html").read_text()
    assert "transformer, layer 1, head 2" in page
    assert "recurrent, layer" not in page


# --- what cannot be ---------------------------------------------------------------------------------------------

RECURRENT = (
    "Only the attention of a Transformer has layers and heads to choose from: "
    "a recurrent model has one alignment, the mean of its heads."
)
BEYOND = {
    "--layer": (["--layer", "4"], "There is no layer 4: the decoder has 3 layers."),
    "--head": (["--layer", "1", "--head", "3"], "There is no head 3: each layer has 2 heads."),
}


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        *(("transformer", *case) for case in BEYOND.values()),
        ("recurrent", ["--head", "1"], RECURRENT),
        ("transformer", ["--head", "0"], "'--head'"),
        ("transformer", ["--layer", "last"], "'--layer'"),
        (
            "transformer",
            ["--head", "1", "--weights", "posterior"],
            "--layer and --head choose attention weights: leave them out, or --weights posterior.",
        ),
    ],
)
def test_what_cannot_be_aligned(folder: Path, model: str, options: list[str], sentence: str) -> None:
    assert sentence in bad(nmt("align", model, "-s", "text.en", "-t", "text.de", *options, cwd=folder), 2)


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        *(("transformer", *case) for case in BEYOND.values()),
        ("recurrent", ["--layer", "1"], RECURRENT),
        ("recurrent", ["--head", "all"], RECURRENT),
        ("transformer", ["--head", "some"], "'some' is neither a number from 1 up nor 'all'."),
        (
            "transformer",
            ["--layer", "1", "--posterior"],
            "--layer and --head choose attention weights: leave them out, or --posterior.",
        ),
        (
            "transformer",
            ["--head", "all", "-o", "a.html"],
            "--head all is for pictures: a page shows one alignment of each sentence by each model.",
        ),
    ],
)
def test_what_cannot_be_drawn(folder: Path, model: str, options: list[str], sentence: str) -> None:
    arguments = [SOURCE, "-q", "-o", "a.png", *options]
    assert sentence in bad(nmt("plot", model, *arguments, cwd=folder), 2)
    assert not list(folder.glob("a.*"))


def test_too_many_heads_for_a_figure(folder: Path) -> None:
    (folder / "dogs").write_text("a dog\n" * 13)
    sentence = bad(nmt("plot", "transformer", "-i", "dogs", "--head", "all", "-o", "a.png", cwd=folder), 1)
    assert sentence == (
        "A figure holds at most 25 matrices, but there would be 26: write a .pdf, a page for each sentence, or a page.html."
    )


def test_python_refuses_the_same(folder: Path) -> None:
    def refused(model: str, **options: Any) -> str:
        with pytest.raises(UsageError) as error:
            package.load(folder / model, "cpu", **options)
        return str(error.value)

    assert refused("recurrent", layer=1) == RECURRENT
    assert refused("transformer", layer=4) == BEYOND["--layer"][1]
    assert refused("transformer", layer=0) == "layer must be at least 1, but is 0."
    assert refused("transformer", head=1, posterior=True) == (
        "layer and head choose attention weights: leave them out, or posterior=True."
    )


# --- self-attention -----------------------------------------------------------------------------------------------


def read_self(folder: Path, line: str = SOURCE, **view: Any) -> package.Alignment:
    return read_self_attention(Bundle.load(folder / "transformer"), line, **view)


def test_self_attention_is_between_the_words_of_a_sentence(folder: Path) -> None:
    heads = [read_self(folder, head=head).weights for head in (1, 2)]
    mean = read_self(folder)
    assert mean.source == mean.target == tuple(SOURCE.split())
    np.testing.assert_allclose(mean.weights, (heads[0] + heads[1]) / 2, atol=1e-6)
    assert np.abs(heads[0] - heads[1]).max() > 1e-3
    assert (mean.weights.sum(axis=1) > 0.5).all()  # the rest is on the end mark
    assert (mean.weights.sum(axis=1) < 1).all()
    tokens = read_self(folder, layer=1, subwords=True)
    np.testing.assert_allclose(tokens.weights, mean.weights, atol=1e-6)  # each word is a token here
    assert tokens.source[0] == "▁the"


def test_self_attention_is_drawn_for_one_head_or_all(folder: Path, tmp_path: Path) -> None:
    for options, panels in (((), 1), (("--head", "2", "--layer", "1"), 1), (("--head", "all"), 2)):
        output = tmp_path / "self.svg"
        written = good(nmt("plot", "transformer", SOURCE, "--self", "-q", "-o", output, *options, cwd=folder))
        assert written == f"{output}\n"
        shown = texts(output)
        assert shown.count("sees") == 2 * panels
        assert ("head 2" in shown) == (panels == 2)
    pages = tmp_path / "self.pdf"
    good(nmt("plot", "transformer", "-i", "text.en", "--self", "-q", "-o", pages, cwd=folder))
    assert len(page_sizes(pages)) == 2


@pytest.mark.parametrize(
    ("model", "options", "status", "sentence"),
    [
        ("recurrent", "", 2, "Only the encoder of a Transformer attends to itself"),
        ("transformer", "--layer 2", 2, "There is no layer 2: the encoder has 1 layer."),
        ("transformer", "--head 3", 2, "There is no head 3: each layer has 2 heads."),
        ("transformer", "--target a", 2, "--self shows one sentence and no translation"),
        ("transformer", "--n-best 2", 2, "--self shows one sentence and no translation"),
        ("transformer", "-o page.html", 2, "--self draws pictures"),
    ],
)
def test_self_attention_that_cannot_be_drawn(
    folder: Path, model: str, options: str, status: int, sentence: str
) -> None:
    assert sentence in bad(nmt("plot", model, SOURCE, "--self", *options.split(), cwd=folder), status)


def test_an_empty_sentence_has_no_self_attention(folder: Path) -> None:
    assert bad(nmt("plot", "transformer", " ", "--self", cwd=folder), 1) == "The sentence to plot is empty."
