"""`nmt train --monolingual`: in stages, resumed anywhere, without held-out text, and never a worse model."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.bundle.folder import WEIGHTS
from nmt.decoding.loading import load
from nmt.decoding.translator import Translator
from nmt.errors import DataError, UsageError
from nmt.recipe import dump_yaml, load_recipe, parse_recipe
from nmt.runtime.files import write_content
from nmt.training import back_translation, trainer
from nmt.training.back_translation import _BackTranslation, train_with_monolingual
from nmt.training.trainer import Interrupted, Trainer, train
from tests.commands import bad, good, nmt
from tests.training.toy import LETTERS, MODEL, write_reversal

HELD_OUT = "a b c d e f g h a b"
"""A line of the monolingual text that is also in the test text."""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 40 pairs, and 90 lines of the target language, 83 of which are new."""
    folder = tmp_path_factory.mktemp("text")
    write_reversal(folder, pairs=40, held_out=10)
    sides = [(folder / f"train.{side}").read_text().splitlines() for side in ("src", "tgt")]
    (folder / "train.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True)))
    (folder / "test.tgt").write_text(f"{HELD_OUT}\n")
    (folder / "test.src").write_text("h\n")
    draw = random.Random(1)
    lines = [
        f"{' '.join(draw.choices(LETTERS, k=5))} {LETTERS[number % 8]} {'abcdefghab'[number // 9]}"
        for number in range(83)
    ]
    valid = (folder / "valid.tgt").read_text().splitlines()
    (folder / "mono.txt").write_text(
        "\n".join([*lines, "", " ", lines[3], lines[3], HELD_OUT, f" {HELD_OUT}", valid[4]]) + "\n"
    )
    return folder


@pytest.fixture(autouse=True)
def beside_the_text(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(text)


def tree(**data: Any) -> dict[str, Any]:
    """The sections of a small recipe with monolingual text."""
    text = {"train": "train.{src,tgt}", "valid": "valid.{src,tgt}", "test": "test.{src,tgt}", "monolingual": "mono.txt"}
    return {
        "name": "reversal",
        "data": {"source": "src", "target": "tgt", **text, **data},
        "subwords": {"kind": "word", "size": 14, "byte_fallback": False},
        "model": MODEL,
        "training": {
            "epochs": 4,
            "batch_tokens": 64,
            "precision": "fp32",
            "compile": False,
            "validation": {"metrics": "chrf"},
        },
    }


def begin(folder: Path, given: dict[str, Any] | None = None, **options: Any) -> None:
    given = given or tree()
    train_with_monolingual(
        parse_recipe(given, "test"), folder, given=given, **{"device": "cpu", "quiet": True, **options}
    )


@pytest.fixture(scope="module")
def run(text: Path) -> Path:
    """A run that nothing has interrupted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(text)
        begin(Path("run"))
    return text / "run"


def contents(run: Path) -> dict[str, bytes]:
    """What a run is judged by: its text, and the weights of the run folder and of each stage."""
    names = [WEIGHTS, "recipe.yaml", "back-translated.src", "back-translated.tgt"]
    return {
        name: (run / name).read_bytes()
        for name in [*names, *(f"{stage}/{WEIGHTS}" for stage in ("alone", "reverse", "mixed"))]
    }


def test_one_command_trains_on_monolingual_text(text: Path, tmp_path: Path) -> None:
    """With settings that follow from the text of each stage, and a table, which does not name its languages."""
    settings = [
        "model={embedding: 16, encoder: {hidden: 8}, attention: {score: {size: 8}}}",
        "subwords.kind=word",
        "training.updates=2",
        "decoding.mbr_samples=null",
        "decoding.length_penalty=1",
    ]
    options = "--source src --target tgt --train train.tsv --valid valid.{src,tgt} --monolingual mono.txt".split()
    set_up = [word for setting in settings for word in ("--set", setting)]
    command = ["train", *options, *set_up, "-o", tmp_path / "run"]
    ended = nmt(*command, cwd=text)
    assert good(ended).strip() == str(tmp_path / "run")
    said = ended.stderr.decode()
    assert "mono.txt: 84 lines to translate back; left out: 2 blank, 3 repeated, 1 of validation or test text." in said
    for stage in ("1 of 4, alone", "2 of 4, reverse", "3 of 4, translation", "4 of 4, mixed"):
        assert f"Stage {stage}, took 0:00:" in said
    assert "Back-translation: chrF " in said
    assert said.rstrip().endswith(" it is kept.")
    reverse, mixed = (load_recipe(tmp_path / "run" / stage / "recipe.yaml") for stage in ("reverse", "mixed"))
    assert (reverse.data.source, reverse.data.target) == ("tgt", "src")
    assert (tmp_path / "run/reverse/train.tgt").read_text() == (text / "train.tgt").read_text()
    assert [(corpus.weight, corpus.tag) for corpus in mixed.data.corpora] == [(2, None), (1, "<BT>")]
    assert any("for about" in choice.reason for choice in mixed.chosen)
    assert good(nmt("translate", tmp_path / "run", stdin=b"a b\n")).count("\n") == 1
    again = nmt("train", "--resume", "-o", tmp_path / "run", cwd=text)
    good(again)
    assert again.stderr.decode().strip() == said.splitlines()[-1]


def test_what_is_held_out_is_not_trained_on(run: Path, text: Path) -> None:
    lines = (run / "back-translated.tgt").read_text().splitlines()
    valid = (text / "valid.tgt").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 83
    assert not {"", HELD_OUT, valid[4]} & {*lines}
    assert len((run / "back-translated.src").read_text().splitlines()) == 83


def test_epochs_of_the_mixture_show_at_most_twice_as_many_pairs(run: Path) -> None:
    recipes = [load_recipe(run / stage / "recipe.yaml") for stage in ("alone", "mixed")]
    assert [recipe.training.epochs for recipe in recipes] == [4, 2]  # of 40 pairs, and of 2 * 40 + 83


def test_the_length_of_training_is_chosen_anew_for_a_mixture(text: Path, tmp_path: Path) -> None:
    given = tree()
    given["training"] |= {"updates": 7, "epochs": 1000}
    given["chosen"] = [{"settings": ["training.epochs", "training.updates"], "reason": "Training."}]
    (tmp_path / "back-translated.tgt").write_text("a\n" * 100)
    training = _BackTranslation(parse_recipe(given, "test"), tmp_path, force=False)
    settings = training._mixture()
    assert not {"training.updates", "training.epochs"} & settings.keys()


class Killed(BaseException):
    """The death of the process."""


def test_a_run_that_is_killed_and_resumed_again_and_again_gives_the_same_model(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, begun = 0, []

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            result = real(*arguments, **options)
            left -= 1
            if left == 0:
                raise Killed
            return result

        return call

    def counted_train(recipe: Any, folder: Path, **options: Any) -> Any:
        begun.append(folder.name)
        return train(recipe, folder, **options)

    monkeypatch.setattr(back_translation, "write_content", dying(write_content))
    monkeypatch.setattr(back_translation, "train", counted_train)
    monkeypatch.setattr(Trainer, "save", dying(Trainer.save))
    kills = 0
    while True:
        left = 8  # the recipe and the six files of the model take 7
        try:
            begin(tmp_path / "run", resume=kills > 0)
        except Killed:
            kills += 1
            continue
        break
    assert kills >= 3
    assert begun == sorted(begun, key=["alone", "reverse", "mixed"].index)
    expected, found = contents(run), contents(tmp_path / "run")
    assert found.pop("recipe.yaml").decode().replace(str(tmp_path), "") == expected.pop("recipe.yaml").decode().replace(
        "run/back", "/run/back"
    )
    assert found == expected


def test_an_interrupted_translation_goes_on_at_the_next_line(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, tmp_path / "run")
    stages = json.loads((run / "stages.json").read_text())
    (tmp_path / "run/stages.json").write_text(json.dumps({name: stages[name] for name in ("alone", "reverse")}))
    (tmp_path / "run/back-translated.src").unlink()
    (tmp_path / "run" / WEIGHTS).unlink()
    real = Translator.stream

    def interrupted(self: Translator, lines: Any, **options: Any) -> Iterator[Any]:
        for number, translation in enumerate(real(self, lines, **options)):
            if number == 30:
                raise KeyboardInterrupt
            yield translation

    read: list[int] = []

    def watched(self: Translator, lines: Any, **options: Any) -> Iterator[Any]:
        read.append(len(lines))
        return real(self, lines, **options)

    monkeypatch.setattr(Translator, "stream", interrupted)
    with pytest.raises(Interrupted, match="go on with --resume") as ending:
        begin(tmp_path / "run", resume=True)
    assert ending.value.exit_status == 130
    with (tmp_path / "run/back-translated.src.part").open("a") as part:
        part.write("a line that was cut")
    monkeypatch.setattr(Translator, "stream", watched)
    with pytest.raises(UsageError, match=r"data\.train"):  # the mixture was trained under another name
        begin(tmp_path / "run", resume=True)
    assert read == [53]
    assert (tmp_path / "run/back-translated.src").read_bytes() == (run / "back-translated.src").read_bytes()


@pytest.mark.parametrize(
    ("best", "kept", "says"), [(9.5, "mixed", "with"), (9.4, "alone", "without"), (0.1, "alone", "without")]
)
def test_the_better_model_is_kept_and_no_finished_stage_repeated(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    best: float,
    kept: str,
    says: str,
) -> None:
    shutil.copytree(run, tmp_path / "run")
    stages = json.loads((run / "stages.json").read_text())
    stages["alone"]["best"], stages["mixed"]["best"] = 9.4, best
    (tmp_path / "run/stages.json").write_text(json.dumps(stages))
    (tmp_path / "run" / WEIGHTS).unlink()
    monkeypatch.setattr(back_translation, "train", None)
    begin(tmp_path / "run", resume=True, quiet=False)
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == (run / kept / WEIGHTS).read_bytes()
    said = f"Back-translation: chrF 9.40 -> {best:.2f} on the validation text; the model {says} it is kept."
    assert said in capsys.readouterr().err
    load(tmp_path / "run", "cpu").translate("a b")


def test_a_run_is_resumed_with_its_own_recipe_and_command(
    run: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text / "recipe.yaml").write_text(dump_yaml(tree()))
    refused = nmt("train", "recipe.yaml", "--monolingual", "other.txt", "--resume", "-o", run, cwd=text)
    assert "differs from" in bad(refused, 2)
    assert "data.monolingual" in bad(refused, 2)
    good(nmt("train", "recipe.yaml", "--resume", "-o", run, "-q", cwd=text))
    assert "exists already" in bad(nmt("train", "recipe.yaml", "-o", run, cwd=text), 2)
    (text / "begun").mkdir(exist_ok=True)
    shutil.copy(run / "given.yaml", text / "begun")
    plain = parse_recipe(tree(monolingual=None), "test")
    with pytest.raises(UsageError, match="was begun with --monolingual"):
        trainer.train(plain, text / "begun", device="cpu", resume=True, quiet=True)


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"data": {"train": ["train.{src,tgt}"]}}, "data.train is a list"),
        ({"data": {"target": "src"}}, "data.source, which is data.target"),
        ({"training": {"guided_alignment": {"links": "train.align"}}}, "set training.guided_alignment.links to hmm"),
        ({"training": {"validation": {"metrics": "perplexity"}}}, "begin with bleu or chrf"),
    ],
)
def test_what_has_no_way_back_is_refused(sections: dict[str, dict[str, Any]], problem: str) -> None:
    given = tree()
    for name, section in sections.items():
        given[name] |= section
    with pytest.raises(UsageError, match=problem):
        parse_recipe(given, "test")


def test_several_processes_and_the_function_for_one_stage_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="in stages"):
        train(parse_recipe(tree(), "test"), tmp_path / "run", device="cpu")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="without torchrun"):
        begin(tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "There is no file"), ("", "0 lines"), (f"\n{HELD_OUT}\n", "1 blank, 1 of")]
)
def test_monolingual_text_without_a_line_to_learn_from_is_an_error_that_leaves_nothing(
    tmp_path: Path, content: str | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "mono.txt").write_text(content)
    for _ in range(2):
        with pytest.raises(DataError, match=problem):
            begin(tmp_path / "run", tree(monolingual=str(tmp_path / "mono.txt")))
