"""`nmt train` without a recipe: settings follow from the text, are written with the run, and stay when it is resumed."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from nmt.recipe import LENGTH_PENALTY
from nmt.recipe import load_recipe as read_recipe
from nmt.training.auto import load_recipe
from nmt.training.preparation import TrainingText
from tests.commands import bad, good, nmt
from tests.training.toy import write_reversal

SETTINGS = "{embedding: 16, encoder: {hidden: 8}, attention: {score: {size: 8}}}"
SHORT = [
    *("--quiet", "--set", f"model={SETTINGS}", "--set", "decoding.mbr_samples=null"),
    *("--set", "subwords.kind=word", "--set", "training.updates=2"),
]
TEXT = ["--source", "src", "--target", "tgt", "--train", "train.{src,tgt}", "--valid", "valid.{src,tgt}"]


@pytest.fixture(scope="module")
def run(small: Path) -> Path:
    return small / good(nmt("train", *TEXT, *SHORT, cwd=small)).strip()


def test_a_run_is_named_after_its_languages_and_says_what_was_chosen(run: Path) -> None:
    assert (run.parent.name, run.name) == ("runs", "src-tgt")
    recipe = read_recipe(run / "recipe.yaml")
    assert (recipe.training.updates, recipe.model.embedding, recipe.data.filters.duplicates) == (2, 16, False)
    keys = [key for choice in recipe.chosen for key in choice.settings]
    assert "subwords.size" in keys
    assert not {"training.updates", "subwords.kind", "model.embedding"} & {*keys}
    assert any("tokens" in choice.reason for choice in recipe.chosen)


def test_without_valid_a_part_of_the_training_text_is_kept_back(small: Path) -> None:
    command = ["train", *TEXT[:6], *(word for word in SHORT if word != "--quiet"), "-o", "kept-back"]
    ended = nmt(*command, cwd=small)
    good(ended)
    said = "Kept back for validation: 20 of the 200 pairs of train.{src,tgt}, the same in every run."
    assert said in ended.stderr.decode()
    good(nmt(*command, "--resume", "-q", cwd=small))
    report = good(nmt("evaluate", "kept-back", "--split", "valid", "--json", "--bootstrap", "0", cwd=small))
    assert json.loads(report)["sentences"] == 20


def test_text_options_give_a_fixed_recipe_its_text(small: Path) -> None:
    dumped = good(nmt("train", "small", *TEXT, "--dump-recipe", cwd=small))
    assert "updates: 3000" in dumped
    assert "name: src-tgt" in dumped
    assert "valid: valid.{src,tgt}" in dumped


HAN = "字" * 3 + "".join(map(chr, range(0x4E00, 0x4E60)))
TINY = ("ab", HAN, "กขคง", ".,!", "🙂🎉", "a b", "abcabcabcabcabcabcabc")


@pytest.mark.parametrize("kind", ["bpe", "word"])
@pytest.mark.parametrize(("source", "target"), [*product(TINY, TINY[:3]), ("same", "same")])
def test_a_text_of_a_few_lines_gets_a_vocabulary_that_it_allows(
    tmp_path: Path, source: str, target: str, kind: str
) -> None:
    """As many tokens as its letters, tags and a word mark need, on both sides."""
    for name, line in (("src", source), ("tgt", target)):
        (tmp_path / f"train.{name}").write_text(f"{line}\n{line[::-1]}\n" * 3, encoding="utf-8")
        (tmp_path / f"valid.{name}").write_text(f"{line}\n", encoding="utf-8")
    for train in (f"{tmp_path}/train", f"[{{corpus: {tmp_path}/train, tag: <X>}}]"):
        data = f"data={{source: src, target: tgt, train: {train}, valid: {tmp_path}/valid}}"
        recipe = load_recipe("auto", [data, f"subwords.kind={kind}"])
        for model in TrainingText.load(recipe).subwords(recipe):
            assert 260 < len(model) <= recipe.subwords.size


def test_a_run_is_resumed_by_its_folder_alone_with_the_settings_it_has(small: Path, run: Path) -> None:
    before = (run / "recipe.yaml").read_text()
    good(nmt("train", "--resume", "-o", run, "--quiet", cwd=small))
    assert (run / "recipe.yaml").read_text() == before
    good(nmt("train", *TEXT, *SHORT, "--resume", "-o", run, cwd=small))
    assert (run / "recipe.yaml").read_text() == before


def test_choices_stay_when_a_run_is_resumed_though_its_text_would_now_give_others(
    small: Path, run: Path, tmp_path: Path
) -> None:
    write_reversal(tmp_path, pairs=5000, held_out=10, longest=40)
    data = f"data={{source: src, target: tgt, train: {tmp_path}/train, valid: {tmp_path}/valid}}"
    fresh, resumed = (load_recipe("auto", [data, "subwords.kind=word"], run=folder) for folder in (None, run))
    before = read_recipe(run / "recipe.yaml")
    assert resumed.chosen == before.chosen
    assert resumed.data.filters == before.data.filters != fresh.data.filters
    assert resumed.training.schedule == before.training.schedule


def test_the_length_penalty_is_chosen_on_the_validation_text_once_training_ends(run: Path) -> None:
    recipe = read_recipe(run / "recipe.yaml")
    [reason] = [choice.reason for choice in recipe.chosen if LENGTH_PENALTY in choice.settings]
    best = float(re.match(r"Search: length penalty (\S+), the (best|shortest)", reason)[1])  # type: ignore[index]
    outcomes = re.findall(r"([\d.]+): chrF ([\d.]+), length ([\d.]+)", reason)
    scores = {float(penalty): float(score) for penalty, score, length in outcomes if float(length) <= 1.1}
    assert recipe.decoding.length_penalty == best
    assert best == 1.0 or best in scores
    assert 1.0 in {float(penalty) for penalty, *_ in outcomes}


def test_a_model_to_start_from_gives_its_shapes_and_subwords(small: Path, run: Path) -> None:
    data = f"data={{source: src, target: tgt, train: {small}/train, valid: {small}/valid}}"
    start = read_recipe(run / "recipe.yaml")
    same = load_recipe("auto", [data, f"training.pretrained={run}"])
    assert same.model.model_copy(update={"dropout": start.model.dropout}) == start.model
    assert same.subwords == start.subwords
    new = load_recipe("auto", [data, f"training.pretrained={{model: {run}, subwords: new}}", "subwords.size=500"])
    assert (new.model.embedding, new.subwords.kind, new.subwords.size) == (16, "bpe", 500)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--source", "src", "--train", "train"], "Give a recipe, or the text to train on: --target missing"),
        (["--resume", "-o", "nowhere"], "There is no run folder nowhere to resume."),
    ],
)
def test_what_is_missing_or_too_much_is_said(arguments: list[str], sentence: str, small: Path) -> None:
    assert sentence in bad(nmt("train", *arguments, cwd=small), 2)
