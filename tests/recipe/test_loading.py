"""Overrides and bases reach where they should, and what is written is read back unchanged."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import UsageError
from nmt.recipe import changed_keys, dump_recipe, load_recipe, parse_recipe, parse_yaml, value_at
from tests.recipe.minimal import MINIMAL

# --- overrides --------------------------------------------------------------------------------------------------


def test_overrides_reach_into_sections_and_unions(minimal: Path) -> None:
    overrides = ["model.dropout=0.3", "model.attention.score=concat", "model.attention.score.size=64"]
    overrides += ["model.attention.window={kind: local-p, half_width: 4}", "training.updates=null", "data.test=a=b"]
    recipe = load_recipe(minimal, overrides)
    model = recipe.model.model_dump()
    rates = {"embedding": 0.3, "annotations": 0.3, "readout": 0.3, "recurrent": 0.0}
    assert rates.items() <= value_at(model, "dropout").items()
    assert value_at(model, "attention.score") == {"kind": "concat", "size": 64}
    assert value_at(model, "attention.window") == {"kind": "local-p", "half_width": 4}
    assert recipe.data.test == "a=b"


# --- YAML --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        (".5", 0.5),
        ("012", 12),
        ("no", "no"),
        ("null", None),
        ("2024-01-31", "2024-01-31"),
        ("1_000", "1_000"),
        (".nan", ".nan"),
        ("{a: [1, 2e0]}", {"a": [1, 2.0]}),
    ],
)
def test_yaml_reads_what_is_written(text: str, value: object) -> None:
    read = parse_yaml(text, "here")
    assert read == value
    assert type(read) is type(value)


# --- round trip and schema --------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), min_size=1, max_size=20)


@settings(max_examples=25)
@given(train=NAMES, seed=st.integers(0, 2**63 - 1), rate=st.floats(1e-12, 10))
@pytest.mark.parametrize("language", ["no", "1e3"])
def test_a_dumped_recipe_loads_unchanged(
    tmp_path_factory: pytest.TempPathFactory, train: str, seed: int, rate: float, language: str
) -> None:
    data = {"source": language, "target": "de", "train": train, "valid": "null"}
    training = {"optimizer": {"kind": "sgd", "rate": rate}, "clip_norm": None}
    recipe = parse_recipe({"name": "round-trip", "seed": seed, "data": data, "training": training}, "the test")
    path = tmp_path_factory.getbasetemp() / "dumped.yaml"
    path.write_text(dump_recipe(recipe), encoding="utf-8")
    assert load_recipe(path) == recipe
    assert changed_keys(recipe, path) == []


def test_changed_keys_are_dotted(minimal: Path) -> None:
    changed = load_recipe(minimal, ["model.attention.score=dot", "training.epochs=3"])
    assert changed_keys(changed, minimal) == [
        "model.attention.score.kind",
        "training.epochs",
        "model.attention.score.size",
    ]


def test_what_training_has_found_is_no_change_where_the_recipe_leaves_it_open(minimal: Path, tmp_path: Path) -> None:
    found = ["decoding.split_sentences=true", "decoding.keep_numbers=false"]
    (tmp_path / "run.yaml").write_text(dump_recipe(load_recipe(minimal, found)))
    assert changed_keys(load_recipe(minimal), tmp_path / "run.yaml") == []
    other = load_recipe(minimal, ["decoding.split_sentences=false"])
    assert changed_keys(other, tmp_path / "run.yaml") == ["decoding.split_sentences"]


# --- recipes laid over others -----------------------------------------------------------------------------------


def test_a_recipe_says_only_what_differs_from_its_base(minimal: Path, tmp_path: Path) -> None:
    minimal.write_text(
        MINIMAL
        + "model: {attention: {score: {size: 64}, window: {kind: local-p, half_width: 3}}, decoder: {hidden: 32}}\n"
    )
    child = tmp_path / "child.yaml"
    child.write_text("base: minimal.yaml\nname: child\nmodel: {attention: {coverage: true, window: {kind: local-m}}}\n")
    recipe = load_recipe(child, ["training.epochs=2"])
    model = recipe.model.model_dump()
    assert (recipe.name, recipe.training.epochs, value_at(model, "decoder.hidden")) == ("child", 2, 32)
    assert value_at(model, "attention.score") == {"kind": "additive", "size": 64}
    assert value_at(model, "attention.window") == {"kind": "local-m", "half_width": 10, "ratio": 1.0}, "of another kind"
    assert "base" not in dump_recipe(recipe)


def test_without_a_validation_text_a_part_of_the_one_training_text_is_kept_back(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("name: small\ndata: {source: en, target: de, train: 'a.{en,de}'}\n")
    recipe = load_recipe(path)
    assert (recipe.data.train, recipe.data.valid) == ("a.{en,de}[rest]", "a.{en,de}[held-out]")
    path.write_text(dump_recipe(recipe))
    assert load_recipe(path) == recipe
    path.write_text("name: small\ndata: {source: en, target: de, train: [a, b]}\n")
    with pytest.raises(UsageError, match=r"'data\.valid' is missing"):
        load_recipe(path)


# --- many languages ---------------------------------------------------------------------------------------------

LANGUAGES = """
name: many
data:
  train: [{corpus: a, from: es, to: gn}, {corpus: b, to: bzd, weight: 2, tag: "<BT>"}, c]
  valid: [{corpus: d, to: bzd}, e]
"""


def test_corpora_name_their_languages_and_the_first_ones_are_those_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(LANGUAGES)
    recipe = load_recipe(path)
    data = recipe.data
    assert (data.source, data.target) == ("es", "gn")
    assert data.directions == (("es", "gn"), ("es", "bzd"))
    assert list(map(data.tags, data.corpora)) == [("<2gn>",), ("<2bzd>", "<BT>"), ("<2gn>",)]
    assert list(map(data.tags, data.texts(data.valid))) == [("<2bzd>",), ("<2gn>",)]
    dumped = dump_recipe(recipe)
    assert "to: bzd" in dumped
    path.write_text(dumped)
    assert load_recipe(path) == recipe
