"""Overrides and bases reach where they should, and what is written is read back unchanged."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.recipe import (
    RecurrentModelConfig,
    changed_keys,
    dump_recipe,
    find_recipe,
    load_recipe,
    parse_recipe,
    parse_yaml,
)
from tests.recipe.minimal import MINIMAL

# --- overrides --------------------------------------------------------------------------------------------------


def test_overrides_reach_into_sections_and_unions(minimal: Path) -> None:
    recipe = load_recipe(
        minimal,
        [
            "model.dropout=0.3",
            "model.attention.score=concat",
            "model.attention.score.size=64",
            "model.attention.window={kind: local-p, half_width: 4}",
            "training.optimizer.kind=adamw",
            "training.updates=null",
            "data.test=a=b",
        ],
    )
    model = recipe.model
    assert isinstance(model, RecurrentModelConfig)
    dropout = model.dropout
    assert (dropout.embedding, dropout.annotations, dropout.recurrent, dropout.readout) == (0.3, 0.3, 0.0, 0.3)
    assert model.attention.model_dump() == {
        "score": {"kind": "concat", "size": 64, "coverage": False},
        "window": {"kind": "local-p", "half_width": 4},
        "heads": 1,
    }
    assert recipe.training.optimizer.kind == "adamw"
    assert recipe.data.test == "a=b"


# --- YAML --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-3", -3),
        ("012", 12),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("2024-01-31", "2024-01-31"),
        ("12:30:00", "12:30:00"),
        ("1_000", "1_000"),
        ("0x1f", "0x1f"),
        (".nan", ".nan"),
        ("{a: [1, 2e0]}", {"a": [1, 2.0]}),
    ],
)
def test_yaml_reads_what_is_written(text: str, value: object) -> None:
    read = parse_yaml(text, "here")
    assert read == value
    assert type(read) is type(value)


# --- round trip and schema --------------------------------------------------------------------------------------

SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(0, 2**63 - 1),
        "subwords": st.fixed_dictionaries(
            {"kind": st.sampled_from(["unigram", "bpe"]), "size": st.integers(300, 9000)}
        ),
        "model": st.fixed_dictionaries(
            {
                "tie": st.sampled_from(["none", "target", "all"]),
                "attention": st.fixed_dictionaries(
                    {
                        "score": st.sampled_from(["additive", "dot", "general", "concat", "location"]),
                        "window": st.sampled_from(["global", "local-m", {"kind": "local-p", "half_width": 3}]),
                    }
                ),
                "dropout": st.floats(0, 0.99),
            }
        ),
        "training": st.fixed_dictionaries(
            {
                "clip_norm": st.none() | st.floats(1e-6, 1e6),
                "optimizer": st.fixed_dictionaries({"kind": st.just("sgd"), "rate": st.floats(1e-12, 10)}),
                "schedule": st.sampled_from(["constant", "inverse-sqrt", "cosine", "plateau", "halving"]),
            }
        ),
    },
)


NAMES = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), min_size=1, max_size=20)


@settings(max_examples=25)
@given(sections=SETTINGS, train=NAMES, language=st.sampled_from(["no", "on", "en", "1e3"]))
def test_a_dumped_recipe_loads_unchanged(
    tmp_path_factory: pytest.TempPathFactory, sections: dict[str, Any], train: str, language: str
) -> None:
    data = {"source": language, "target": "de", "train": train, "valid": "null"}
    recipe = parse_recipe({"name": "round-trip", "data": data, **sections}, "the test")
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
        "model.attention.score.coverage",
    ]


# --- recipes laid over others -----------------------------------------------------------------------------------


def test_a_recipe_says_only_what_differs_from_its_base(minimal: Path, tmp_path: Path) -> None:
    minimal.write_text(MINIMAL + "model: {attention: {score: {kind: additive, size: 64}}, decoder: {hidden: 32}}\n")
    child = tmp_path / "child.yaml"
    child.write_text(
        "base: minimal.yaml\nname: child\nmodel: {attention: {score: {coverage: true}, window: local-m}}\n"
    )
    recipe = load_recipe(child, ["training.epochs=2"])
    model = recipe.model
    assert isinstance(model, RecurrentModelConfig)
    score = model.attention.score
    assert (recipe.name, recipe.training.epochs, model.decoder.hidden) == ("child", 2, 32)
    assert (score.kind, getattr(score, "size", None), getattr(score, "coverage", None)) == ("additive", 64, True)
    assert model.attention.window.kind == "local-m"
    assert "base" not in dump_recipe(recipe)


def test_a_section_of_another_kind_replaces_that_of_the_base(minimal: Path, tmp_path: Path) -> None:
    minimal.write_text(MINIMAL + "model: {attention: {score: {kind: additive, size: 64}}}\n")
    child = tmp_path / "child.yaml"
    child.write_text("base: minimal.yaml\nmodel: {attention: {score: {kind: concat, coverage: true}}}\n")
    model = load_recipe(child).model
    assert isinstance(model, RecurrentModelConfig)
    score = model.attention.score
    assert (score.kind, getattr(score, "size", None)) == ("concat", 256)


def test_a_base_may_be_a_recipe_that_ships(tmp_path: Path) -> None:
    child = tmp_path / "child.yaml"
    child.write_text("base: quickstart\nname: child\n")
    shipped = load_recipe(find_recipe("quickstart"))
    assert load_recipe(child) == shipped.model_copy(update={"name": "child"})


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
