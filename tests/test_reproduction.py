"""`nmt reproduce`: the reported scores of a recipe beside those of its trained model, from a cold start to the record."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.comparison.held_out import HeldOut
from nmt.comparison.reproduction import measurements
from nmt.data.locators import load_corpus
from nmt.errors import UsageError
from nmt.evaluation import metrics
from nmt.recipe import EXAMPLE_DATA, leaves_data_open, load_recipe, shipped_recipes
from tests.commands import bad, good, nmt
from tests.training import toy

REPORTED: list[dict[str, Any]] = [
    {"system": "Greedy", "value": 0.0, "scoring": "tokens", "decoding": {"beam_size": 1}, "source": "table 1"},
    {"system": "Beam", "value": 99.0, "scoring": "tokens", "decoding": {"beam_size": 3}, "source": "table 2"},
    {"system": "Elsewhere", "value": 50.0, "scoring": "other", "source": "table 3"},
    {"system": "Links", "metric": "aer", "value": 10.0, "weights": "attention", "source": "table 4"},
]


def tree(folder: Path, *, reported: list[dict[str, Any]] | None = None, **training: Any) -> dict[str, Any]:
    """A recipe that trains in seconds, on the reversal corpus in `folder`."""
    settings = {"epochs": 20, "updates": 20, "batch_tokens": 512, **training}
    own: dict[str, Any] = json.loads(toy.recipe(folder, training=settings).model_dump_json())
    own["data"]["test"] = f"{folder}/test"
    own["reported"] = REPORTED if reported is None else reported
    return own


def write(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))  # which is YAML, without aliases
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    toy.write_reversal(folder, pairs=600, held_out=60)
    for side in ("src", "tgt"):
        shutil.copy(folder / f"valid.{side}", folder / f"test.{side}")
    lengths = [len(line.split()) for line in (folder / "test.src").read_text().splitlines()]
    links = (" ".join(f"{i}-{length - 1 - i}" for i in range(length)) for length in lengths)
    (folder / "test.align").write_text("".join(f"{line}\n" for line in links))
    return folder


@pytest.fixture(scope="module")
def reproduced(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The recipe file, in whose folder is the run, and what the command printed."""
    path = write(tmp_path_factory.mktemp("reproduced") / "mine.yaml", tree(corpus))
    return path, good(nmt("reproduce", path, "-o", path.parent / "run", "--threads", "1"))


def rows(markdown: str) -> list[dict[str, str]]:
    """The rows of the table, by heading."""
    lines = [line.strip("|").split("|") for line in markdown.splitlines() if line.startswith("|")]
    headings, _, *cells = [[cell.strip() for cell in line] for line in lines]
    return [dict(zip(headings, line, strict=True)) for line in cells]


# --- scores and record --------------------------------------------------------------------------------------------


def test_reported_scores_stand_beside_ours(reproduced: tuple[Path, str], corpus: Path) -> None:
    path, printed = reproduced
    greedy, beam, elsewhere, links, posterior = rows(printed)
    assert [row["reported by"] for row in (greedy, beam, elsewhere, links, posterior)] == [
        *(item["system"] for item in REPORTED),
        "–",
    ]
    assert (greedy["ours by"], beam["ours by"]) == ("greedy", "beam 3, length penalty 1")
    assert elsewhere["ours by"] == "beam 2, length penalty 1", "the recipe's own"
    assert (links["ours by"], posterior["ours by"]) == ("attention", "posterior")
    references = list(load_corpus(f"{corpus}/test", source="src", target="tgt").target)
    for row, file in ((greedy, "greedy"), (beam, "beam-3-length-penalty-1")):
        lines = (path.parent / f"run/translations/{file}.txt").read_text().splitlines()
        assert float(row["ours"]) == pytest.approx(metrics.bleu(lines, references, tokenize="none"), abs=0.005)
    assert float(beam["difference"]) == pytest.approx(float(beam["ours"]) - 99, abs=0.011)
    assert beam["reported inside"] == "no"
    assert (elsewhere["difference"], elsewhere["reported inside"]) == ("–", "–")
    assert "- Elsewhere, 50: table 3; scored in another way or on other text, so no difference is taken\n" in printed
    assert "- Beam, 99: table 2\n" in printed
    record = json.loads((path.parent / "run/reproduction.json").read_text())
    assert [f"{score['ours']:.2f}" for score in record["scores"]] == [row["ours"] for row in rows(printed)]
    assert all(score["signature"] in printed for score in record["scores"])
    assert record["command"].startswith("nmt reproduce ")
    assert record["training"]["updates"] == 20
    assert f"- Scored on: {record['machine']}\n" in printed
    assert {"nmt", "torch", "sacrebleu", "Python"} == record["versions"].keys()


def test_a_finished_run_is_only_scored_and_the_reported_score_is_inside_or_not(
    corpus: Path, reproduced: tuple[Path, str], tmp_path: Path
) -> None:
    run = reproduced[0].parent / "run"
    first = json.loads((run / "reproduction.json").read_text())["scores"][0]
    values = [(first["low"] + first["high"]) / 2, first["high"] + 0.5]
    reported = [{**REPORTED[0], "value": value} for value in values]
    path = write(tmp_path / "other.yaml", tree(corpus, reported=reported))
    before = (run / "metrics.jsonl").read_bytes()
    inside, outside, *_ = json.loads(good(nmt("reproduce", path, "-o", run, "--json", "--threads", "1")))["scores"]
    assert (inside["inside"], outside["inside"]) == (True, False)
    assert inside["ours"] == first["ours"]
    assert outside["difference"] == pytest.approx(first["ours"] - values[1])
    assert (run / "metrics.jsonl").read_bytes() == before
    sentence = bad(nmt("reproduce", path, "-o", run, "-q", "--set", "training.updates=21"), 2)
    assert sentence.startswith(f"{run} was trained with another training.updates: choose another --out")


# --- what cannot be done ------------------------------------------------------------------------------------------


def test_text_that_is_not_there_is_refused(corpus: Path, tmp_path: Path) -> None:
    settings = tree(corpus)
    settings["data"]["test"] = f"{tmp_path}/nosuch"
    path = write(tmp_path / "mine.yaml", settings)
    message = bad(nmt("reproduce", path, "-o", tmp_path / "run", "-q"), 1)
    assert message.startswith(f"There is no file {tmp_path}/nosuch")
    assert "names no data.test" in bad(nmt("reproduce", path, "-q", "--set", "data.test=null"), 2)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("reported", "changes", "problem"),
    [
        ({"metric": "aer"}, "data.test={}/valid", "no gold links are known for its text"),
        ({"metric": "aer"}, "model.attention.score=none", "its model has no attention"),
        ({"decoding": {"replace_unknown": True}}, "model.attention.score=none", "its model has no attention"),
        ({"scoring": "published"}, "seed=2", "no rules for the language 'tgt'"),
    ],
)
def test_what_can_never_be_scored_is_refused_before_training(
    corpus: Path, tmp_path: Path, reported: dict[str, Any], changes: str, problem: str
) -> None:
    path = write(tmp_path / "mine.yaml", tree(corpus, reported=[{**REPORTED[0], **reported}]))
    recipe = load_recipe(path, changes.format(corpus))
    with pytest.raises(UsageError, match=problem):
        measurements(recipe, HeldOut.load(recipe, "test"))


# --- recipes ------------------------------------------------------------------------------------------------------


def test_reported_scores_are_not_inherited_and_bleu_is_measured_without_any(corpus: Path, tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", tree(corpus))
    (tmp_path / "mine.yaml").write_text("base: base.yaml\nname: mine\n")
    assert len(load_recipe(tmp_path / "base.yaml").reported) == len(REPORTED)
    recipe = load_recipe(tmp_path / "mine.yaml", f"data.test={corpus}/valid")
    assert recipe.reported == ()
    [wanted] = measurements(recipe, HeldOut.load(recipe, "test"))
    assert (wanted.metric, wanted.scoring, wanted.decoding, wanted.reported) == ("bleu", "cased", recipe.decoding, None)


def test_each_reported_score_is_in_the_tables_of_results() -> None:
    """Of the recipes whose text has some, since what was reported is not inherited."""
    page = (Path(__file__).parents[1] / "recipes/README.md").read_text(encoding="utf-8")
    figures = {float(figure) for figure in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.]*\w)", page)}
    paths = [path for path in shipped_recipes().values() if "\nreported:" in path.read_text("utf-8")]
    assert len(paths) > 10
    for path in paths:
        recipe = load_recipe(path, [f"data={EXAMPLE_DATA}"] if leaves_data_open(path) else [], choose=lambda *_: [])
        assert {score.value for score in recipe.reported} <= figures
        assert all(score.source for score in recipe.reported)


ONE_OF_EACH = {name.rpartition("/")[0]: name for name in sorted(shipped_recipes())}
"""One recipe of each folder: the models of all are built by tests/recipe."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted({*ONE_OF_EACH.values(), "multi30k-en-de/transformer", "papers/multi30k/local-p"})
)
def test_a_shipped_recipe_trains_and_is_scored(name: str, tmp_path: Path) -> None:
    """Its model and its rules, for three updates on the embedded sample."""
    texts = {"train": "sample:train[:1000]", "valid": "sample:valid[:20]", "test": "sample:test[:20]"}
    changes = {
        "data": {"source": "en", "target": "de", **texts},
        "subwords.size": 400,
        "subwords.kind": "bpe",
        "training.pretrained": None,
        "training.updates": 3,
        "training.epochs": 1,
        "training.validation.every": 3,
        "reported": [{**REPORTED[0], "scoring": "cased"}],
    }
    options = [word for key, value in changes.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    printed = good(nmt("reproduce", name, "--threads", "1", "-o", tmp_path / "run", *options))
    assert rows(printed)[0]["reported by"] == "Greedy"
    assert all(row["ours"] != "–" for row in rows(printed))
