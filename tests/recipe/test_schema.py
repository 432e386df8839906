"""A recipe means what it says: nothing in it is ignored, guessed or silently another type."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import UsageError
from nmt.model.build import build_model
from nmt.recipe import (
    AdditiveScoreConfig,
    AttentionConfig,
    CorpusConfig,
    Recipe,
    RecurrentModelConfig,
    Tokenizer,
    ValidationConfig,
    dump_recipe,
    load_recipe,
    parse_recipe,
    parse_yaml,
    recipe_schema,
)
from tests.recipe.minimal import MINIMAL, refusal

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


def test_a_base_may_give_the_temperature_of_a_mixture(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(MINIMAL)
    (tmp_path / "mixed.yaml").write_text("base: base.yaml\nname: mixed\ndata: {train: [a, b], temperature: 5}\n")
    recipe = load_recipe(tmp_path / "mixed.yaml")
    assert recipe.data.temperature == 5
    assert "temperature: 5.0" in dump_recipe(recipe)
    sentence = refusal(tmp_path / "mixed.yaml", "data.train=[a, {corpus: b, weight: 2}]")
    assert "temperature 5 and the weight 2 of b both say how often pairs are shown: leave one out" in sentence


# --- strictness -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.dropuot=0.2", "unknown key 'model.dropuot'; did you mean 'dropout'?"),
        ("modle.dropout=0.2", "unknown key 'modle'; did you mean 'model'?"),
        ("model.attention.score.sizes=3", "unknown key 'model.attention.score.sizes'; did you mean 'size'?"),
        ("training.xyxyxy=3", "unknown key 'training.xyxyxy'. Known keys: epochs, updates, batch_tokens, "),
        (
            "training.scheduled_sampling=liner",
            "'training.scheduled_sampling' cannot be 'liner'; did you mean 'linear'?",
        ),
        ("model.attention.score=aditive", "'model.attention.score' cannot be 'aditive'; did you mean 'additive'?"),
        ("model.attention.heads=0", "'model.attention.heads': input should be greater than or equal to 1, but is 0."),
        ("model.embedding=big", "'model.embedding': input should be a valid integer, but is 'big'."),
        ("model.attention=3", "'model.attention' is a section with keys of its own, but is 3."),
        ("training.validation.metrics=blue", "'training.validation.metrics.0' cannot be 'blue'; did you mean 'bleu'?"),
        (
            "training.validation.metrics=[bleu, ter]",
            "metrics.1' cannot be 'ter'; it is 'bleu', 'chrf' or 'perplexity'.",
        ),
        ("training.validation.metrics=[]", "'training.validation.metrics': value should have at least 1 item"),
        ("evaluation.tokenize=flores20", "'evaluation.tokenize' cannot be 'flores20'; did you mean 'flores200'?"),
        (
            "data.train=7",
            "'data.train': it is a locator, or a list of locators and sections {corpus, from, to, weight, tag}, but is 7",
        ),
        ("data.train=[a, 3]", "'data.train.1' is a section with keys of its own, but is 3"),
        ("data.train=[a, {corpus: b, wieght: 2}]", "unknown key 'data.train.1.wieght'; did you mean 'weight'?"),
        ("data.train=[{corpus: a, tag: BT}]", "'data.train.0.tag': string should match pattern"),
        ("data.train=[{corpus: a, tag: <s>}]", "'data.train.0': tag <s> is the name of another token"),
        ("data.temperature=2", "'data': temperature 2 has nothing to mix, because train is one corpus"),
        ("name=../elsewhere", "'name'"),
        ('data.source="de\\e[2J"', "'data.source': it has a character that cannot be seen, U+001B: remove it."),
        ('data.train=[{corpus: "a\\u202eb"}]', "'data.train.0.corpus': it has a character that cannot be seen, U+202E"),
        ('training.pretrained="a\\x9b"', "'training.pretrained.model': it has a character that cannot be seen, U+009B"),
    ],
)
def test_wrong_keys_and_values_are_named_with_their_dotted_path(minimal: Path, override: str, sentence: str) -> None:
    message = refusal(minimal, override)
    assert sentence in message
    assert message.startswith(f"{minimal}: ")
    assert "\n" not in message


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


def test_every_wrong_key_is_named_at_once(minimal: Path) -> None:
    message = refusal(minimal, "model.embeding=1", "training.epoch=2")
    assert "model.embeding" in message
    assert "training.epoch" in message


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["model.attention.score=none", "model.attention.window=local-p"], "window local-p has nothing to act on"),
        (
            ["model.attention.score=dot", "model.decoder.hidden=300", "model.encoder.hidden=256"],
            "decoder.hidden = 2 x encoder.hidden, but they are 300 and 512",
        ),
        (
            [
                "model.attention.score=dot",
                "model.encoder={direction: forward, hidden: 256}",
                "model.decoder.hidden=512",
            ],
            "attention.score dot needs decoder.hidden = encoder.hidden, but they are 512 and 256",
        ),
        (["model.attention.score=dot", "model.decoder.hidden=301"], "needs an even decoder.hidden"),
        (["model.attention.score=dot", "model.encoder.hidden=40000"], "which is 80000, more than the 65536 it can be"),
        (
            ["model.attention.heads=3", "model.encoder.hidden=256"],
            "heads must divide 2 x encoder.hidden, but they are 3 and 512",
        ),
        (["model.lexical=true", "model.attention.score=dot"], "lexical attends to tokens beside states"),
        (["model.lexical=true", "model.attention.heads=2"], "but attention.heads is 2: leave one out"),
        (["data.copying=0.3", "training.guided_alignment={links: hmm}"], "data.copying makes new pairs"),
        (
            ["model.attention.heads=2", "model.decoder.hidden=511"],
            "heads must divide decoder.hidden, but they are 2 and 511",
        ),
        (["model.attention={heads: 3, score: {size: 256}}"], "heads must divide score.size, but they are 3 and 256"),
        (["model.attention.heads=2", "model.attention.score=none"], "heads 2 have nothing to attend with"),
        (
            ["model.encoder.direction=forward", "model.decoder.bridge=backward"],
            "bridge backward needs an encoder that reads backwards: use bridge: final",
        ),
        (
            ["model.decoder={bridge: copy, layers: 2}", "model.encoder.layers=1"],
            "decoder.bridge copy needs decoder.layers = encoder.layers, but they are 2 and 1",
        ),
        (
            ["model.decoder={bridge: copy, cell: gru}", "model.encoder.cell=lstm"],
            "decoder.bridge copy needs decoder.cell = encoder.cell, but they are gru and lstm",
        ),
        (
            ["model.decoder={bridge: copy, hidden: 512}", "model.encoder={direction: reversed, hidden: 256}"],
            "decoder.bridge copy needs decoder.hidden = encoder.hidden, but they are 512 and 256",
        ),
        (
            ["model.embedding=128", "model.decoder.readout.size=256"],
            "embedding and decoder.readout.size are 128 and 256",
        ),
        (
            ["model.decoder={hidden: 512, readout: {kind: state, size: 256}}", "model.tie=none"],
            "its size is decoder.hidden, but they are 256 and 512: leave decoder.readout.size out",
        ),
        (["model.decoder={hidden: 512, readout: state}"], "embedding and decoder.readout.size are 256 and 512"),
        (["training.sort_within=20"], "set batch_sentences or leave sort_within out"),
        (["model.tie=all", "subwords.joint=false"], "needs subwords.joint: true"),
        (["subwords.kind=char", "subwords.sampling=0.1"], "sampling needs kind unigram or bpe"),
        (
            ["subwords.kind=bpe", "subwords.sampling=2"],
            "sampling is the rate of dropped merges of bpe, at most 1, but is 2",
        ),
        (["subwords.source_model=x.model"], "source_model and target_model go together"),
        (["subwords.size=270"], "leaves no room beside the 256 byte tokens"),
        (
            ["training.guided_alignment.links=gold", "model.attention.score=none"],
            "training.guided_alignment has no attention to guide",
        ),
        (["training.guided_alignment.links=gold", "data.train=a/train"], "links: gold needs a corpus that has links"),
    ],
)
def test_impossible_combinations_say_what_to_change(minimal: Path, overrides: list[str], sentence: str) -> None:
    assert sentence in refusal(minimal, *overrides)


# --- what is not given follows from what is ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "follows"),
    [
        ([], {}),
        (["embedding=128"], {"decoder.readout.size": 128}),
        (["embedding=128", "tie=none"], {"decoder.readout.size": 128}),
        (["decoder.readout.size=96"], {"embedding": 96}),
        (["decoder.readout=attentional", "decoder.readout.size=96"], {"embedding": 96}),
        (["decoder.readout.size=96", "tie=none"], {"embedding": 256}),
        (["encoder.hidden=100"], {"decoder.hidden": 200}),
        (["decoder.hidden=300", "attention.score=dot"], {"encoder.hidden": 150}),
        (["decoder.hidden=301"], {"encoder.hidden": 151}),
        (["encoder.direction=forward"], {"decoder.hidden": 256, "decoder.bridge": "final"}),
        (["encoder.direction=reversed"], {"decoder.hidden": 256, "decoder.bridge": "backward"}),
        (["attention.heads=3"], {"attention.score.size": 258, "encoder.hidden": 258, "decoder.hidden": 516}),
        (["attention.heads=3", "decoder.hidden=9"], {"attention.score.size": 258, "encoder.hidden": 6}),
        (["attention.heads=4", "decoder.hidden=12", "attention.score=dot"], {"encoder.hidden": 6}),
        (["decoder.bridge=copy", "decoder.layers=2"], {"encoder.layers": 2}),
        (["decoder.bridge=copy", "encoder.cell=lstm"], {"decoder.cell": "lstm"}),
    ],
)
def test_defaults_follow_from_what_is_given(minimal: Path, overrides: list[str], follows: dict[str, object]) -> None:
    plain = flat(load_recipe(minimal).model.model_dump())
    recipe = load_recipe(minimal, [f"model.{override}" for override in overrides])
    given = {override.split("=")[0] for override in overrides}
    model = flat(recipe.model.model_dump())
    changed = {key for key in model if model[key] != plain.get(key)} - given - {f"{key}.kind" for key in given}
    assert {key: model[key] for key in follows} == follows
    assert changed <= follows.keys()


def flat(tree: dict[str, Any], at: str = "") -> dict[str, Any]:
    """The values of a tree by their dotted paths."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{at}{key}.") if isinstance(value, dict) else {f"{at}{key}": value}
    return leaves


def test_a_model_is_completed_wherever_it_is_made() -> None:
    assert RecurrentModelConfig(embedding=64).decoder.readout.size == 64
    assert RecurrentModelConfig.model_validate(RecurrentModelConfig(embedding=64)) == RecurrentModelConfig(embedding=64)
    assert AttentionConfig(heads=3).score == AdditiveScoreConfig(size=258)


WIDTHS = st.sampled_from([1, 2, 3, 4, 7, 12, 48, 65536])
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
    "attention.heads": st.sampled_from([1, 2, 3, 5, 1024]),
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
    tree: dict[str, Any] = {}
    for key in keys:
        *parents, last = key.split(".")
        section = tree
        for parent in parents:
            child = section.setdefault(parent, {})
            section = section[parent] = {"kind": child} if isinstance(child, str) else child
        value = draw.draw(GIVEN[key])
        section[last] = {"kind": value, **section[last]} if isinstance(section.get(last), dict) else value
    problem = ""
    try:
        recipe = parse_recipe(yaml.safe_load(MINIMAL) | {"model": tree}, "the test")
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
    assert schema["$defs"]["DataConfig"]["required"] == ["train", "valid"]  # corpora may say `from` and `to`
    assert {"from", "to"} < schema["$defs"]["TextConfig"]["properties"].keys()
    assert "Papineni" not in schema["$defs"]["AdditiveScoreConfig"]["description"]
    assert "Bahdanau" in schema["$defs"]["AdditiveScoreConfig"]["description"]
