"""A recipe means what it says: nothing in it is ignored, guessed or silently another type."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.errors import UsageError
from nmt.model.seq2seq import build_model
from nmt.recipe import (
    AdditiveScore,
    Attention,
    Model,
    Recipe,
    Tokenizer,
    Validation,
    changed_keys,
    dump_recipe,
    find_recipe,
    load_recipe,
    parse_recipe,
    parse_yaml,
    recipe_schema,
    recipe_title,
    shipped_recipes,
)

ROOT = Path(__file__).resolve().parents[1]
MINIMAL = 'name: small\ndata: {source: en, target: de, train: "sample:train", valid: "sample:valid"}\n'


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    path = tmp_path / "minimal.yaml"
    path.write_text(MINIMAL)
    return path


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_recipe(path, overrides)
    return str(caught.value)


# --- strictness -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.dropuot=0.2", "unknown key 'model.dropuot'; did you mean 'dropout'?"),
        ("modle.dropout=0.2", "unknown key 'modle'; did you mean 'model'?"),
        ("model.attention.score.sizes=3", "unknown key 'model.attention.score.sizes'; did you mean 'size'?"),
        ("training.xyxyxy=3", "unknown key 'training.xyxyxy'."),
        (
            "training.guided_alignment={links: gold, wieght: 1}",
            "'training.guided_alignment.wieght'; did you mean 'weight'?",
        ),
        ("training.guided_alignment.weight=1", "'training.guided_alignment.links' is missing."),
        (
            "training.guided_alignment.decay=1.5",
            "'training.guided_alignment.decay': input should be less than or equal to 1",
        ),
        (
            "training.scheduled_sampling=liner",
            "'training.scheduled_sampling' cannot be 'liner'; did you mean 'linear'?",
        ),
        (
            "training.scheduled_sampling={kind: linear, slop: 1}",
            "unknown key 'training.scheduled_sampling.slop'; did you mean 'slope'?",
        ),
        ("training.scheduled_sampling.scale=0.5", "'training.scheduled_sampling.scale'"),
        ("model.attention.score=aditive", "'model.attention.score' cannot be 'aditive'; did you mean 'additive'?"),
        ("training.optimizer.kind=adamm", "'training.optimizer' cannot be 'adamm'; did you mean 'adam'?"),
        ("model.attention.heads=0", "'model.attention.heads': input should be greater than or equal to 1, but is 0."),
        ("model.attention.score={kind: dot, coverage: true}", "unknown key 'model.attention.score.coverage'"),
        ("model.attention.window={kind: local-m, ratio: 0}", "'model.attention.window.ratio'"),
        ("model.encoder.direction=backward", "'model.encoder.direction'"),
        ("model.dropout.layer=0.2", "unknown key 'model.dropout.layer'; did you mean 'layers'?"),
        ("model.embedding=big", "'model.embedding': input should be a valid integer, but is 'big'."),
        ("model.embedding=2.5", "'model.embedding'"),
        ("model.embedding=true", "'model.embedding'"),
        ("model.embedding=0", "'model.embedding': input should be greater than or equal to 1, but is 0."),
        ("model.dropout.embedding=1.0", "'model.dropout.embedding'"),
        ("model.attention=3", "'model.attention' is a section with keys of its own, but is 3."),
        ("training.validation.metrics=blue", "'training.validation.metrics.0' cannot be 'blue'; did you mean 'bleu'?"),
        (
            "training.validation.metrics=[bleu, ter]",
            "metrics.1' cannot be 'ter'; it is 'bleu', 'chrf' or 'perplexity'.",
        ),
        ("training.validation.metrics=[]", "'training.validation.metrics': value should have at least 1 item"),
        ("evaluation.tokenize=flores20", "'evaluation.tokenize' cannot be 'flores20'; did you mean 'flores200'?"),
        ("data.train=null", "'data.train'"),
        ("data.train=7", "'data.train'"),
        ("name=../elsewhere", "'name'"),
        ("seed=1e3", "'seed'"),
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
    assert Validation(metrics="chrf") == Validation(metrics=["chrf"])


def test_every_tokeniser_of_sacrebleu_can_be_named(minimal: Path) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    assert set(get_args(Tokenizer)) == set(sacrebleu.BLEU.TOKENIZERS)
    assert load_recipe(minimal, ["evaluation.tokenize=flores200"]).evaluation.tokenize == "flores200"


def test_every_wrong_key_is_named_at_once(minimal: Path) -> None:
    message = refusal(minimal, "model.embeding=1", "training.epoch=2")
    assert "model.embeding" in message
    assert "training.epoch" in message


def test_missing_sections_are_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("name: x\ndata: {source: en}\n")
    message = refusal(path)
    for key in ("data.target", "data.train", "data.valid"):
        assert f"'{key}' is missing." in message


def test_a_recipe_cannot_be_changed(minimal: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_recipe(minimal).seed = 2  # type: ignore[misc]


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
        (
            ["model.attention.heads=2", "model.decoder.hidden=511"],
            "heads must divide decoder.hidden, but they are 2 and 511",
        ),
        (
            ["model.attention={heads: 3, score: {size: 256}}"],
            "heads must divide score.size, but they are 3 and 256",
        ),
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
            [
                "model.decoder={bridge: copy, hidden: 512}",
                "model.encoder={direction: reversed, hidden: 256}",
            ],
            "decoder.bridge copy needs decoder.hidden = encoder.hidden, but they are 512 and 256",
        ),
        (
            ["model.embedding=128", "model.decoder.readout.size=256"],
            "embedding and decoder.readout.size are 128 and 256",
        ),
        (["model.tie=all", "subwords.joint=false"], "needs subwords.joint: true"),
        (["subwords.kind=char", "subwords.sampling=0.1"], "sampling needs kind unigram or bpe"),
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
    assert Model(embedding=64).decoder.readout.size == 64
    assert Model.model_validate(Model(embedding=64)) == Model(embedding=64)
    assert Attention(heads=3).score == AdditiveScore(size=258)


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


@settings(max_examples=100, deadline=None)
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


def test_a_contradiction_of_the_base_is_called_one(minimal: Path, tmp_path: Path) -> None:
    minimal.write_text(MINIMAL + "model: {decoder: {readout: {size: 96}}}\n")
    child, grandchild = tmp_path / "child.yaml", tmp_path / "grandchild.yaml"
    child.write_text("base: minimal.yaml\nname: child\n")
    grandchild.write_text("base: child.yaml\nmodel: {embedding: 64}\n")
    assert load_recipe(child).model.embedding == 96
    origin = f" (model.decoder.readout.size comes from the base {minimal})."
    for path, overrides in ((child, ["model.embedding=64"]), (grandchild, [])):
        message = refusal(path, *overrides)
        assert message.startswith(f"{path}: 'model': embedding and decoder.readout.size are 64 and 96")
        assert message.endswith(origin)
    assert "comes from" not in refusal(grandchild, "model.decoder.readout={kind: tanh, size: 32}")
    assert load_recipe(grandchild, ["model.decoder.readout=tanh"]).model.decoder.readout.size == 64


# --- YAML -------------------------------------------------------------------------------------------------------


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


def test_norwegian_is_a_language(minimal: Path) -> None:
    assert load_recipe(minimal, ["data.target=no"]).data.target == "no"


def test_a_rate_in_scientific_notation_is_a_number(minimal: Path) -> None:
    assert load_recipe(minimal, ["training.optimizer.rate=5e-4"]).training.optimizer.rate == 5e-4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: a\nname: b\n", "line 2: the key 'name' occurs twice."),
        ("name: a\ndata:\n  source: en\n  source: de\n", "line 4: the key 'source' occurs twice."),
        ("name: [a\n", "line 2"),
        ("name: a\n\tseed: 1\n", "line 2"),
        ("- a\n- b\n", "a recipe is a mapping of sections (name, data, model, ...), but this is a list."),
        ("", "but this is nothing."),
        ("name: !!python/object:os.system x\n", "line 1"),
        ("name: a\n---\nname: b\n", "line 2"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    message = refusal(path)
    assert message.startswith(str(path))
    assert sentence in message


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("name: Ä".encode("latin-1"))
    assert "Cannot read the recipe" in refusal(tmp_path / "latin.yaml")
    assert "Cannot read the recipe" in refusal(tmp_path / "nowhere.yaml")
    assert "Cannot read the recipe" in refusal(tmp_path)


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
    dropout = recipe.model.dropout
    assert (dropout.embedding, dropout.annotations, dropout.recurrent, dropout.readout) == (0.3, 0.3, 0.0, 0.3)
    assert recipe.model.attention.model_dump() == {
        "score": {"kind": "concat", "size": 64, "coverage": False},
        "window": {"kind": "local-p", "half_width": 4},
        "heads": 1,
    }
    assert recipe.training.optimizer.kind == "adamw"
    assert recipe.data.test == "a=b"


@pytest.mark.parametrize("override", ["model.dropout", "=1", "model..dropout=1", ".a=1", ""])
def test_an_override_needs_key_and_value(minimal: Path, override: str) -> None:
    assert refusal(minimal, override) == f"--set takes a.b=value, but got '{override}'."


def test_an_override_cannot_reach_into_a_value(minimal: Path) -> None:
    message = refusal(minimal, "model.embedding=8", "model.embedding.size=9")
    assert message == "--set model.embedding.size=9: 'embedding' is a whole number, so it has no key 'size'."
    assert "--set model.tie=[" in refusal(minimal, "model.tie=[")


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


@example(sections={}, train="\x85", language="no")
@example(sections={}, train="a \u2028 b\u2029", language="no")
@given(sections=SETTINGS, train=st.text(min_size=1, max_size=20), language=st.sampled_from(["no", "on", "en", "1e3"]))
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
        "model.attention.score.size",
        "model.attention.score.coverage",
        "training.epochs",
    ]


def test_the_schema_describes_every_key_for_editors() -> None:
    schema = recipe_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert set(schema["properties"]) == {*Recipe.model_fields, "base"}
    assert schema["additionalProperties"] is False
    assert "Papineni" not in schema["$defs"]["AdditiveScore"]["description"]
    assert "Bahdanau" in schema["$defs"]["AdditiveScore"]["description"]


# --- what ships -------------------------------------------------------------------------------------------------


def test_the_shipped_recipes_are_found_by_path_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {path.relative_to(ROOT / "recipes") for path in (ROOT / "recipes").rglob("*.yaml")}
    assert {Path(f"{name}.yaml") for name in shipped_recipes()} == files
    assert find_recipe("quickstart") == find_recipe("quickstart.yaml") == find_recipe("recipes/quickstart.yaml")


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("quikstart", "did you mean 'quickstart'?"),
        ("multi30k-en-de/bahdanaau.yaml", "did you mean 'multi30k-en-de/bahdanau'?"),
        ("word_level", "did you mean 'multi30k-en-de/word-level'?"),
        ("bahdanau", "'multi30k-en-de/bahdanau' or 'multi30k-en-fr/bahdanau'?"),
        ("xyz", "give a YAML file, or a name of `nmt recipe list`."),
    ],
)
def test_the_name_of_no_recipe_is_answered_with_the_nearest(name: str, guess: str) -> None:
    with pytest.raises(UsageError, match=f"There is no recipe '{name}'") as caught:
        find_recipe(name)
    assert str(caught.value).endswith(guess)


def test_a_title_is_what_stands_before_the_colon(tmp_path: Path) -> None:
    path = tmp_path / "titled.yaml"
    for text, title in (
        ("# Ours, small: of 2024.\n# More.\n", "Ours, small"),
        ("#  Ours. \n", "Ours"),
        (MINIMAL, ""),
        ("", ""),
    ):
        path.write_text(text)
        assert recipe_title(path) == title


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_every_recipe_parses_and_builds_its_model(name: str) -> None:
    recipe = load_recipe(shipped_recipes()[name])
    model = build_model(recipe.model, source_size=recipe.subwords.size, target_size=recipe.subwords.size)
    assert sum(parameter.numel() for parameter in model.parameters()) > 0
    assert recipe.data.test is not None


# --- recipes laid over others -----------------------------------------------------------------------------------


def test_a_recipe_says_only_what_differs_from_its_base(minimal: Path, tmp_path: Path) -> None:
    minimal.write_text(MINIMAL + "model: {attention: {score: {kind: additive, size: 64}}, decoder: {hidden: 32}}\n")
    child = tmp_path / "child.yaml"
    child.write_text(
        "base: minimal.yaml\nname: child\nmodel: {attention: {score: {coverage: true}, window: local-m}}\n"
    )
    recipe = load_recipe(child, ["training.epochs=2"])
    score = recipe.model.attention.score
    assert (recipe.name, recipe.training.epochs, recipe.model.decoder.hidden) == ("child", 2, 32)
    assert (score.kind, getattr(score, "size", None), getattr(score, "coverage", None)) == ("additive", 64, True)
    assert recipe.model.attention.window.kind == "local-m"
    assert "base" not in dump_recipe(recipe)


def test_a_section_of_another_kind_replaces_that_of_the_base(minimal: Path, tmp_path: Path) -> None:
    minimal.write_text(MINIMAL + "model: {attention: {score: {kind: additive, size: 64}}}\n")
    child = tmp_path / "child.yaml"
    child.write_text("base: minimal.yaml\nmodel: {attention: {score: {kind: concat, coverage: true}}}\n")
    score = load_recipe(child).model.attention.score
    assert (score.kind, getattr(score, "size", None)) == ("concat", 256)


def test_a_base_may_be_a_recipe_that_ships(tmp_path: Path) -> None:
    child = tmp_path / "child.yaml"
    child.write_text("base: quickstart\nname: child\n")
    shipped = load_recipe(find_recipe("quickstart"))
    assert load_recipe(child) == shipped.model_copy(update={"name": "child"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("base: child.yaml", "child.yaml: the recipe is its own base"),
        ("base: nowhere.yaml", "There is no recipe 'nowhere.yaml'"),
        ("base: [a]", "child.yaml: 'base' is the file or the name of a recipe, but is a list."),
        ("base: minimal.yaml\nmodle: {}", "unknown key 'modle'"),
    ],
)
def test_a_base_that_cannot_be_used_is_named(minimal: Path, text: str, sentence: str) -> None:
    child = minimal.parent / "child.yaml"
    child.write_text(text + "\n")
    assert sentence in refusal(child)


def test_every_preset_differs_from_the_first_in_attention_order_readout_and_bridge_alone() -> None:
    presets = {name: load_recipe(path) for name, path in shipped_recipes().items() if name.startswith("attention/")}
    assert len(presets) == 18
    first = presets["attention/bahdanau-rnnsearch"]
    for name, preset in presets.items():
        assert name == f"attention/{preset.name}"
        decoder = preset.model.decoder.model_copy(
            update={key: getattr(first.model.decoder, key) for key in ("order", "readout", "bridge")}
        )
        model = preset.model.model_copy(update={"attention": first.model.attention, "decoder": decoder})
        assert preset.model_copy(update={"name": first.name, "model": model}) == first
