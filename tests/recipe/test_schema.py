"""A recipe means what it says: nothing in it is ignored, guessed or silently another type."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import UsageError
from nmt.model.build import build_model
from nmt.recipe import (
    CorpusConfig,
    Recipe,
    Tokenizer,
    ValidationConfig,
    dump_recipe,
    leaves,
    load_recipe,
    parse_overrides,
    parse_recipe,
    parse_yaml,
    recipe_schema,
)
from tests.recipe.minimal import MINIMAL

# --- mixtures ---------------------------------------------------------------------------------------------------


def test_a_mixture_lists_locators_and_sections(tmp_path: Path) -> None:
    path = tmp_path / "mixed.yaml"
    path.write_text(MINIMAL)
    recipe = load_recipe(path, ["data.train=[a, {corpus: b, weight: 2, tag: <BT>}, {corpus: c}]"])
    expected = (CorpusConfig(corpus="a"), CorpusConfig(corpus="b", weight=2.0, tag="<BT>"), CorpusConfig(corpus="c"))
    assert recipe.data.train == recipe.data.corpora == expected
    path.write_text(dump_recipe(recipe))
    assert load_recipe(path) == recipe
    assert load_recipe(path, ["data.train=a"]).data.corpora == expected[:1]


# --- strictness -------------------------------------------------------------------------------------------------


def test_validation_takes_one_metric_or_several(minimal: Path) -> None:
    def metrics(value: str) -> tuple[str, ...]:
        recipe = load_recipe(minimal, [f"training.validation.{value}"])
        assert parse_recipe(parse_yaml(dump_recipe(recipe), "dumped"), "dumped") == recipe
        return recipe.training.validation.metrics

    assert metrics("metrics=chrf") == ("chrf",)
    assert metrics("metrics=[bleu, chrf]") == ("bleu", "chrf")
    assert metrics("metric=perplexity") == ("perplexity",), "recipes of 0.1 say metric"
    assert ValidationConfig.model_validate({"metrics": "chrf"}) == ValidationConfig(metrics=("chrf",))


def test_every_tokenizer_of_sacrebleu_can_be_named(minimal: Path) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    assert set(get_args(Tokenizer)) == set(sacrebleu.BLEU.TOKENIZERS)
    assert load_recipe(minimal, ["evaluation.tokenize=flores200"]).evaluation.tokenize == "flores200"


# --- what is not given follows from what is ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "follows"),
    [
        ([], {}),
        (["embedding=128"], {"decoder.readout.size": 128}),
        (["decoder.readout.size=96"], {"embedding": 96}),
        (["decoder.readout.size=96", "tie=none"], {"embedding": 256}),
        (["encoder.hidden=100"], {"decoder.hidden": 200}),
        (["decoder.hidden=300", "attention.score=dot"], {"encoder.hidden": 150}),
        (["encoder.direction=forward"], {"decoder.hidden": 256, "decoder.bridge": "final"}),
        (["encoder.direction=reversed"], {"decoder.hidden": 256, "decoder.bridge": "backward"}),
        (["attention.heads=4", "decoder.hidden=12", "attention.score=dot"], {"encoder.hidden": 6}),
        (["decoder.bridge=copy", "decoder.layers=2"], {"encoder.layers": 2}),
        (["decoder.bridge=copy", "encoder.cell=lstm"], {"decoder.cell": "lstm"}),
    ],
)
def test_defaults_follow_from_what_is_given(minimal: Path, overrides: list[str], follows: dict[str, object]) -> None:
    plain = dict(leaves(load_recipe(minimal).model.model_dump()))
    recipe = load_recipe(minimal, [f"model.{override}" for override in overrides])
    given = {override.split("=")[0] for override in overrides}
    model = dict(leaves(recipe.model.model_dump()))
    changed = {key for key in model if model[key] != plain.get(key)} - given - {f"{key}.kind" for key in given}
    assert {key: model[key] for key in follows} == follows
    assert changed <= follows.keys()


WIDTHS = st.sampled_from([4, 8, 12, 48])
GIVEN = {
    "embedding": WIDTHS,
    "tie": st.sampled_from(["none", "target", "all"]),
    "encoder.cell": st.sampled_from(["gru", "lstm"]),
    "encoder.hidden": WIDTHS,
    "encoder.layers": st.sampled_from([1, 2]),
    "encoder.direction": st.sampled_from(["both", "forward", "reversed"]),
    "attention.score": st.sampled_from(["additive", "dot", "general", "concat", "location", "none"]),
    "attention.score.size": WIDTHS,
    "attention.window": st.sampled_from(["global", "local-m", "local-p"]),
    "attention.heads": st.sampled_from([1, 2, 4]),
    "decoder.cell": st.sampled_from(["gru", "lstm"]),
    "decoder.hidden": WIDTHS,
    "decoder.layers": st.sampled_from([1, 2]),
    "decoder.order": st.sampled_from(["attend-then-update", "update-then-attend"]),
    "decoder.readout": st.sampled_from(["maxout", "tanh", "attentional"]),
    "decoder.readout.size": WIDTHS,
    "decoder.bridge": st.sampled_from(["backward", "final", "mean", "copy", "zero"]),
}
"""Keys of a model, with values that get in each other's way."""


@settings(max_examples=100)
@given(draw=st.data())
def test_a_few_keys_make_a_model_or_contradict_each_other(draw: st.DataObject) -> None:
    """What is refused is refused for what its author wrote: the sentence names no other key."""
    keys = draw.draw(st.lists(st.sampled_from(sorted(GIVEN)), min_size=1, max_size=3, unique=True))
    tree = parse_overrides(f"model.{key}={draw.draw(GIVEN[key])}" for key in keys)
    problem = ""
    try:
        recipe = parse_recipe(yaml.safe_load(MINIMAL) | tree, "the test")
    except UsageError as error:
        problem = str(error)
    statement = problem.partition("'model': ")[2].partition(": ")[0]
    named = {key for key in GIVEN if re.search(rf"\b{re.escape(key)}\b(?!\.)", statement)}
    assert named <= {*keys}, problem
    if problem:
        return
    with torch.device("meta"):
        build_model(recipe.model, source_size=9, target_size=9)
    again = parse_yaml(dump_recipe(recipe), "the dumped recipe")
    assert parse_recipe(again, "the dumped recipe") == recipe


# --- for editors ------------------------------------------------------------------------------------------------


def test_the_schema_describes_every_key_for_editors() -> None:
    schema = recipe_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert set(schema["properties"]) == {*Recipe.model_fields, "base"}
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["DataConfig"]["required"] == ["train"]  # corpora may say `from` and `to`
    assert {"from", "to"} < schema["$defs"]["TextConfig"]["properties"].keys()
    assert "Papineni" not in schema["$defs"]["AdditiveScoreConfig"]["description"]
    assert "Bahdanau" in schema["$defs"]["AdditiveScoreConfig"]["description"]
