"""Settings that follow from a text make a valid recipe, whatever the text; what the recipe says itself stays."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import UsageError
from nmt.recipe import (
    EXAMPLE_DATA,
    Choice,
    Recipe,
    RecurrentModelConfig,
    SideProfile,
    TextProfile,
    choose_settings,
    dump_recipe,
    load_recipe,
    recorded_choices,
    value_at,
)
from tests.recipe.minimal import MINIMAL

AUTO = f"chosen: auto\n{MINIMAL}"


def text(pairs: int, *, unseen: float = 0.1, **changes: Any) -> TextProfile:
    """The profile of a text with ten words per line on both sides."""
    words = 10 * pairs
    side = SideProfile(
        words, types=words // 4, characters=5 * words, alphabet=60, bits=2.1, is_spaced=True, unseen=unseen
    )
    profile = TextProfile(
        pairs, 0, side, side, types=words // 3, alphabet=70, shared_letters=1.0, valid_length=10, longest=30
    )
    return replace(profile, **changes)


def chosen(path: Path, profile: TextProfile, *overrides: str) -> Recipe:
    return load_recipe(path, overrides, choose=lambda _, own: choose_settings(profile, own))


@pytest.fixture
def auto(tmp_path: Path) -> Path:
    path = tmp_path / "auto.yaml"
    path.write_text(AUTO)
    return path


SIDES = st.builds(
    SideProfile,
    words=st.integers(1, 10**9),
    types=st.integers(1, 10**7),
    characters=st.integers(1, 10**10),
    alphabet=st.integers(1, 10**4),
    bits=st.floats(0.01, 16),
    is_spaced=st.booleans(),
    unseen=st.floats(0, 1),
)
PROFILES = st.builds(
    TextProfile,
    pairs=st.integers(1, 10**8),
    duplicates=st.integers(0, 10**8),
    source=SIDES,
    target=SIDES,
    types=st.integers(1, 10**7),
    alphabet=st.integers(1, 10**4),
    shared_letters=st.floats(0, 1),
    valid_length=st.floats(0, 1000),
    longest=st.integers(0, 10**5),
)


@given(PROFILES)
def test_every_text_gets_a_recipe_that_is_valid(profile: TextProfile) -> None:
    choices = choose_settings(profile, {})
    assert all(choice.settings and choice.reason.endswith(".") for choice in choices)
    path = Path(__file__).parents[2] / "recipes/auto.yaml"
    recipe = load_recipe(path, [f"data={EXAMPLE_DATA}"], choose=lambda *_: choices)
    assert len(recipe.chosen) == len(choices)
    updates, batch = recipe.training.updates or 0, recipe.training.batch_tokens
    shown = profile.target.tokens * (1 + 2 * recipe.data.concatenation)
    assert updates == 500 or (updates - 50) * batch <= 150 * shown
    assert recipe.training.schedule.warmup < recipe.training.updates  # type: ignore[operator]


def test_documents_do_not_train_longer_than_long_sentences(auto: Path) -> None:
    sentences, paragraphs, documents = (
        chosen(auto, replace(text(100_000), pairs=pairs)).training.updates or 0 for pairs in (50_000, 10_000, 100)
    )
    assert sentences < paragraphs == documents


def test_more_text_gets_more_of_everything_but_dropout_and_epochs(auto: Path) -> None:
    recipes = [chosen(auto, text(pairs)) for pairs in (2_000, 10_000, 50_000, 250_000)]
    models = [recipe.model for recipe in recipes if isinstance(recipe.model, RecurrentModelConfig)]
    assert len(models) == len(recipes)
    for values, grows in (
        ([recipe.subwords.size for recipe in recipes], True),
        ([model.encoder.hidden for model in models], True),
        ([(recipe.training.updates or 0) * recipe.training.batch_tokens for recipe in recipes], True),
        ([model.dropout.readout for model in models], False),
    ):
        assert values == sorted(values, reverse=not grows)
        assert len({*values}) > 1


def test_letters_and_new_words_decide_on_vocabularies_and_metrics(auto: Path) -> None:
    same, apart = (chosen(auto, text(10_000, shared_letters=share)) for share in (0.9, 0.1))
    assert (same.subwords.joint, same.model.tie) == (True, "all")
    assert (apart.subwords.joint, apart.model.tie) == (False, "target")
    for profile, metric in ((text(200_000), "bleu"), (text(200_000, unseen=0.4), "chrf"), (text(5_000), "chrf")):
        assert chosen(auto, profile).training.validation.metrics == (metric,)


def test_pairs_are_joined_where_lines_to_translate_are_longer(auto: Path) -> None:
    assert chosen(auto, text(5_000)).data.concatenation == 0
    assert chosen(auto, text(5_000, valid_length=20)).data.concatenation == 1


def test_little_text_guides_attention_if_there_is_any(auto: Path) -> None:
    guided = chosen(auto, text(5_000)).training.guided_alignment
    assert guided is not None
    assert guided.links == "hmm"
    assert chosen(auto, text(10_000_000)).training.guided_alignment is None
    for own in ("training.guided_alignment=null", "model.attention.score=none"):
        assert chosen(auto, text(5_000), own).training.guided_alignment is None


def test_words_are_copied_where_many_are_new_and_both_sides_have_the_same_letters(auto: Path) -> None:
    assert chosen(auto, text(5_000, unseen=0.15)).data.copying > 0
    assert chosen(auto, text(5_000, unseen=0.05)).data.copying == 0
    assert chosen(auto, text(5_000, unseen=0.15, shared_letters=0.1)).data.copying == 0
    side = replace(text(5_000, unseen=0.15).source, is_spaced=False)
    assert chosen(auto, text(5_000, source=side, target=side)).data.copying == 0, "its words are characters"


@pytest.mark.parametrize(
    ("overrides", "said", "unsaid"),
    [
        ([], "at most 500 updates, in batches of up to 1,024 tokens", "epochs"),
        (["training.updates=12"], "at most 12 updates", "epochs"),
        (["training.updates=null"], "at most 1,000 epochs", "updates"),
        (["subwords.size=700"], "of up to 700 tokens", "of up to 500"),
        (["model.lexical=false"], "Model: an encoder", "also reads"),
        (["model.kind=transformer"], "Validation:", "an encoder of"),
        (["training.pretrained=runs/a"], "Model: dropout for about", "an encoder of"),
        (["data.concatenation=0"], "to copy", "joined"),
        (["data.copying=0"], "joined", "to copy"),
        (["data.filters.duplicates=true"], "Text: 20 pairs, ", "left out"),
    ],
)
def test_what_is_said_of_choices_is_true(auto: Path, overrides: list[str], said: str, unsaid: str) -> None:
    profile = text(20, unseen=0.15, valid_length=20, duplicates=3)
    reasons = " ".join(choice.reason for choice in chosen(auto, profile, *overrides).chosen)
    assert said in reasons
    assert unsaid not in reasons


@pytest.mark.parametrize(
    "override",
    [
        "model.encoder.hidden=40",
        "model.attention.score=dot",
        "model.attention.heads=2",
        "model.lexical=false",
        "model.kind=transformer",
        "training.epochs=2",
        "training.optimizer={kind: sgd, rate: 0.5}",
        "data.filters.max_length=17",
    ],
)
def test_what_the_recipe_says_itself_stays_and_the_rest_fits_it(auto: Path, override: str) -> None:
    recipe, key = chosen(auto, text(10_000), override), override.partition("=")[0]
    plain = load_recipe(auto, [override, "chosen=[]"])
    assert value_at(recipe.model_dump(), key) == value_at(plain.model_dump(), key)
    if override == "training.epochs=2":
        assert recipe.training.updates is None


@pytest.mark.parametrize("override", ["training.updates=abc", "model.encoder.hidden=[]", "training.batch_tokens=null"])
def test_a_wrong_value_is_named_before_others_are_chosen_by_it(auto: Path, override: str) -> None:
    with pytest.raises(UsageError, match=override.partition("=")[0].rpartition(".")[2]):
        chosen(auto, text(10_000), override)


def test_choices_are_recorded_with_their_reasons_and_read_back(auto: Path, tmp_path: Path) -> None:
    recipe = chosen(auto, text(10_000), "subwords.size=700")
    assert recipe.subwords.size == 700
    settings = [key for choice in recipe.chosen for key in choice.settings]
    assert "subwords.size" not in settings
    assert "subwords.joint" in settings
    run = tmp_path / "recipe.yaml"
    run.write_text(dump_recipe(recipe))
    assert load_recipe(run) == recipe
    again = load_recipe(auto, ["subwords.size=700"], choose=lambda *_: recorded_choices(run))
    assert again == recipe


def test_a_model_folder_may_have_settings_that_no_longer_exist(auto: Path, tmp_path: Path) -> None:
    recipe = chosen(auto, text(10_000), "data.train=[a, {corpus: b, weight: 2}]")
    run = tmp_path / "recipe.yaml"
    run.write_text(
        dump_recipe(recipe)
        .replace("  valid:", "  stream: 5\n  similarity: 1.0\n  valid:")
        .replace("weight: 2.0", "weight: 2.0\n    similarity: null")
        .replace("data.copying", "data.copying, data.similarity")
    )
    with pytest.raises(UsageError, match=r"unknown key 'data\.(stream|similarity)'"):
        load_recipe(run)
    (tmp_path / "source.model").touch()
    assert load_recipe(run).data == load_recipe(run, based=False).data == recipe.data
    assert "data.similarity" not in recorded_choices(run)[0].settings


def test_a_chosen_section_does_not_replace_one_of_another_kind(auto: Path) -> None:
    choice = Choice({"model.kind": "recurrent", "model.encoder.hidden": 32}, "Narrow.")
    recipe = load_recipe(auto, ["model.kind=transformer"], choose=lambda *_: [choice])
    assert recipe.model.kind == "transformer"
    assert not recipe.chosen
