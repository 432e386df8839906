"""`nmt reproduce`: the reported scores of a recipe beside those of its trained model, from a cold start to the record."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nmt.comparison.measure import HeldOut
from nmt.comparison.reported import measurements
from nmt.comparison.smoke import PAIRS, UPDATES, smoke_recipe
from nmt.data.locators import load_corpus
from nmt.errors import DataError, UsageError
from nmt.evaluation import metrics
from nmt.recipe import EXAMPLE_DATA, Recipe, changed_keys, leaves_data_open, load_recipe, parse_recipe, shipped_recipes
from nmt.training.text import TrainingText
from tests.commands import Running, bad, good, nmt
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
    assert "- Elsewhere was scored in another way or on other text: no difference is taken\n" in printed
    assert "- Beam, 99: table 2\n" in printed
    assert "smoke" not in printed


def test_the_record_has_all_that_is_printed_and_more(reproduced: tuple[Path, str]) -> None:
    path, printed = reproduced
    record = json.loads((path.parent / "run/reproduction.json").read_text())
    assert [f"{score['ours']:.2f}" for score in record["scores"]] == [row["ours"] for row in rows(printed)]
    for score in record["scores"]:
        assert score["signature"] in printed
        assert score["low"] <= score["ours"] <= score["high"] or score["metric"] != "AER"
    assert record["command"].startswith("nmt reproduce ")
    assert record["smoke"] is None
    assert record["training"]["updates"] == 20
    assert record["training"]["processor"] == record["machine"]["processor"]
    assert record["training"]["threads"] == record["machine"]["threads"] == 1
    assert {"nmt", "torch", "sacrebleu", "Python"} == record["versions"].keys()


def test_the_reported_score_is_inside_or_not(corpus: Path, reproduced: tuple[Path, str], tmp_path: Path) -> None:
    path, _ = reproduced
    shutil.copytree(path.parent / "run", tmp_path / "run")
    first = json.loads((path.parent / "run/reproduction.json").read_text())["scores"][0]
    values = [(first["low"] + first["high"]) / 2, first["high"] + 0.5]
    reported = [{**REPORTED[0], "value": value} for value in values]
    write(tmp_path / "other.yaml", tree(corpus, reported=reported))
    printed = good(nmt("reproduce", tmp_path / "other.yaml", "-o", tmp_path / "run", "--json"))
    inside, outside, *_ = json.loads(printed)["scores"]
    assert (inside["inside"], outside["inside"]) == (True, False)
    assert outside["difference"] == pytest.approx(first["ours"] - values[1])


def test_a_finished_run_is_only_scored(reproduced: tuple[Path, str], tmp_path: Path) -> None:
    path, printed = reproduced
    shutil.copytree(path.parent / "run", tmp_path / "run")
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir() if file.is_file()}
    ended = nmt("reproduce", path, "-o", tmp_path / "run", "--threads", "1")
    assert rows(good(ended)) == rows(printed)
    assert b"loss" not in ended.stderr
    changed = {file.name for file in (tmp_path / "run").iterdir() if file.is_file()} - {
        name for name, content in before.items() if (tmp_path / "run" / name).read_bytes() == content
    }
    assert changed == {"reproduction.json"}  # its command


def test_a_run_of_train_is_scored_without_a_machine(corpus: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", tree(corpus, reported=REPORTED[:1], updates=4))
    good(nmt("train", path, "--out", tmp_path / "run", "--threads", "1"))
    printed = good(nmt("reproduce", path, "-o", tmp_path / "run", "--threads", "1"))
    assert "4 updates, " in printed
    assert "on a machine that was not recorded\n" in printed


def test_an_interrupted_run_goes_on_by_the_same_command(corpus: Path, tmp_path: Path) -> None:
    validation = {"every": 60, "metrics": "perplexity"}
    settings = tree(corpus, reported=REPORTED[:1], updates=60, log_every=1, validation=validation)
    path = write(tmp_path / "mine.yaml", settings)
    command = ("reproduce", path, "-o", tmp_path / "run", "--threads", "1")
    running = Running(*command)
    while running.poll() is None and not (tmp_path / "run/metrics.jsonl").is_file():
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGINT)
    ended = running.finish()
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stdout == b""
    assert ended.stderr.decode().endswith("is saved; the same command goes on.\n")
    good(nmt(*command))
    records = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    updates = [record["update"] for record in records if record["kind"] == "train"]
    assert updates == list(range(1, 61))
    assert json.loads((tmp_path / "run/reproduction.json").read_text())["training"]["updates"] == 60


# --- smoke runs ---------------------------------------------------------------------------------------------------


def test_a_smoke_run_does_every_step_and_warns(tmp_path: Path) -> None:
    """From the command line, with gold links for guidance and for the error rate."""
    narrow = [
        "model.embedding=16",
        "model.encoder.hidden=16",
        "model.decoder.hidden=32",
        "model.decoder.readout.size=16",
    ]
    sets = [word for setting in narrow for word in ("--set", setting)]
    ended = nmt("reproduce", "quickstart", "--smoke", "--threads", "1", "-o", tmp_path / "run", *sets)
    printed = good(ended)
    assert f"**A smoke run (400 train, 50 valid, 50 test pairs, {UPDATES} updates): its scores say nothing" in printed
    assert [(row["metric"], row["ours by"]) for row in rows(printed)] == [
        ("BLEU", "beam 5, length penalty 1"),
        ("AER", "posterior"),
        ("AER", "attention"),
    ]
    assert "reported" not in rows(printed)[0]
    steps = [line for line in ended.stderr.decode().splitlines() if line.startswith("== ")]
    assert [step.split()[1] for step in steps] == ["fetch", "train:", "decode", "record:"]
    record = json.loads((tmp_path / "run/reproduction.json").read_text())
    assert record["smoke"] == f"400 train, 50 valid, 50 test pairs, {UPDATES} updates"
    assert record["text"] == "sample:test[0:50] (en → de), 50 sentence pairs"
    [file] = (tmp_path / "run/translations").iterdir()
    assert len(file.read_text(encoding="utf-8").splitlines()) == PAIRS["test"]


def test_a_smoke_run_without_a_folder_leaves_none(corpus: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", tree(corpus))
    ended = nmt("reproduce", path, "--smoke", "--json", "-q", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert json.loads(good(ended))["smoke"]
    assert ended.stderr == b""
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]


def test_a_smoke_recipe_changes_neither_model_nor_rules(corpus: Path) -> None:
    recipe = parse_recipe(tree(corpus), "x")
    small = smoke_recipe(recipe)
    assert set(changed_keys_of(small, recipe)) == {
        *(f"data.{split}" for split in PAIRS),
        *(f"training.{key}" for key in ("epochs", "updates", "log_every")),
        *(f"training.validation.{key}" for key in ("every", "patience")),
        "subwords.size",
    }
    assert small.data.train == f"{corpus}/train.{{src,tgt}}[0:400]"


def changed_keys_of(one: Recipe, other: Recipe) -> list[str]:
    """The dotted keys at which two recipes differ."""

    def flat(value: Any, at: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            return {at: value}
        return {path: leaf for key in value for path, leaf in flat(value[key], f"{at}.{key}".strip(".")).items()}

    first, second = (flat(recipe.model_dump(), "") for recipe in (one, other))
    return [key for key in first if first[key] != second[key]]


@pytest.mark.parametrize(("rows", "expected"), [("", "[0:400]"), ("[:90]", "[0:90]"), ("[100:]", "[100:500]")])
def test_a_smoke_recipe_takes_the_first_of_the_rows(corpus: Path, rows: str, expected: str) -> None:
    own = tree(corpus)
    own["data"]["train"] = f"{corpus}/train{rows}"
    assert smoke_recipe(parse_recipe(own, "x")).data.train == f"{corpus}/train{expected}"


@pytest.mark.parametrize(("rows", "expected"), [("", "[0:400]"), ("[:90]", "[0:90]")])
def test_a_smoke_recipe_streams_the_first_rows_of_a_data_set(
    corpus: Path, tmp_path: Path, rows: str, expected: str
) -> None:
    sides = [(corpus / f"train.{side}").read_text().splitlines() for side in ("src", "tgt")]
    lines = [json.dumps({"src": source, "tgt": target}) for source, target in zip(*sides, strict=True)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    own = tree(corpus)
    own["data"]["train"] = f"hf:{tmp_path}:train{rows}"
    assert smoke_recipe(parse_recipe(own, "x")).data.train == f"hf:{tmp_path}:train{expected}"


def test_a_smoke_recipe_takes_the_first_pairs_of_each_corpus_of_a_mixture(corpus: Path) -> None:
    own = tree(corpus)
    back = {"corpus": own["data"]["train"], "weight": 0.5, "tag": "<BT>"}
    own["data"]["train"] = [f"{corpus}/train[100:]", back]
    small = smoke_recipe(parse_recipe(own, "x"))
    assert [str(item) for item in small.data.corpora] == [
        f"{corpus}/train[100:300]",
        f"<BT> {corpus}/train.{{src,tgt}}[0:200] x 0.5",
    ]
    assert len(TrainingText.load(small).subwords(small)[0]) == small.subwords.size


@pytest.mark.parametrize(("links", "expected"), [("hmm", "hmm"), ("file", "hmm"), ("gold", "gold")])
def test_a_smoke_recipe_is_guided_by_links_of_its_own_text(corpus: Path, links: str, expected: str) -> None:
    own = tree(corpus)
    if links == "gold":
        own["data"] = {"source": "en", "target": "de", "train": "sample:train", "valid": "sample:valid", "test": None}
    own["training"]["guided_alignment"] = {"links": f"{corpus}/train.align" if links == "file" else links}
    guided = smoke_recipe(parse_recipe(own, "x")).training.guided_alignment
    assert guided is not None
    assert guided.links == expected


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_smoke_vocabulary_is_one_that_the_text_allows(kind: str, joint: bool, byte_fallback: bool) -> None:
    from nmt.training.text import TrainingText

    data = {"source": "de", "target": "en", "train": "sample:train", "valid": "sample:valid"}
    subwords = {"kind": kind, "size": 30_000, "joint": joint, "byte_fallback": byte_fallback}
    small = smoke_recipe(parse_recipe({"name": "x", "data": data, "subwords": subwords}, "x"))
    source, target = TrainingText.load(small).subwords(small)
    assert len(source) == len(target) == small.subwords.size


# --- what cannot be done ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["test", "train"])
def test_text_that_is_not_at_hand_is_told_before_any_work(corpus: Path, tmp_path: Path, split: str) -> None:
    own = tree(corpus)
    own["data"][split] = f"{tmp_path}/nosuch"
    path = write(tmp_path / "mine.yaml", own)
    for options in ([], ["--smoke"]):
        ended = nmt("reproduce", path, "-o", tmp_path / "run", "-q", *options)
        sentence = bad(ended, 1)
        assert sentence.startswith(f"There is no file {tmp_path}/nosuch")
        assert sentence.endswith(f"What the recipe needs: `nmt recipe show {path}`.")
    assert not (tmp_path / "run").exists()


def test_a_recipe_without_test_text_is_refused(corpus: Path, tmp_path: Path) -> None:
    own = tree(corpus)
    own["data"]["test"] = None
    sentence = bad(nmt("reproduce", write(tmp_path / "mine.yaml", own), "-o", tmp_path / "run", "-q"), 2)
    assert sentence == "reversal names no data.test, so there is nothing to score: add it with --set data.test=..."


def test_the_run_of_another_recipe_is_refused_but_not_that_of_other_reports(
    reproduced: tuple[Path, str], corpus: Path
) -> None:
    path, _ = reproduced
    run = path.parent / "run"
    sentence = bad(nmt("reproduce", path, "-o", run, "-q", "--set", "training.updates=21"), 2)
    assert sentence.startswith(f"{run} was trained with another training.updates: choose another --out")
    assert changed_keys(parse_recipe(tree(corpus, reported=[]), "x"), run / "recipe.yaml") == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"system": "A", "metric": "aer", "value": 1.0, "source": "B"}, "no gold links are known for its text"),
        ({"system": "A", "value": 1.0, "source": "B", "scoring": "published"}, "no rules for the language 'tgt'"),
    ],
)
def test_what_can_never_be_scored_is_refused_before_training(
    corpus: Path, changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    own = tree(corpus, reported=[changes])
    own["data"]["test"] = f"{corpus}/valid"
    recipe = parse_recipe(own, "x")
    with pytest.raises(UsageError, match=problem):
        measurements(recipe, HeldOut.load(recipe, "test", None))


def test_what_was_reported_can_be_left_out(corpus: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", tree(corpus))
    own = load_recipe(path, ["reported=[]", f"data.test={corpus}/valid"])
    [wanted] = measurements(own, HeldOut.load(own, "test", None))
    assert (wanted.metric, wanted.scoring, wanted.decoding, wanted.reported) == ("bleu", "cased", own.decoding, None)


def test_an_aer_needs_attention_and_so_do_replaced_words(corpus: Path) -> None:
    for reported, problem in (
        (REPORTED[3], "its model has no attention"),
        ({**REPORTED[0], "decoding": {"replace_unknown": True}}, "unknown words cannot be replaced"),
    ):
        own = tree(corpus, reported=[reported])
        own["model"]["attention"]["score"] = {"kind": "none"}
        recipe = parse_recipe(own, "x")
        with pytest.raises(UsageError, match=problem):
            measurements(recipe, HeldOut.load(recipe, "test", None))


# --- recipes ------------------------------------------------------------------------------------------------------


def test_reported_scores_are_not_inherited(corpus: Path, tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", tree(corpus))
    (tmp_path / "mine.yaml").write_text("base: base.yaml\nname: mine\n")
    assert len(load_recipe(tmp_path / "base.yaml").reported) == len(REPORTED)
    assert load_recipe(tmp_path / "mine.yaml").reported == ()


@cache
def reports(name: str) -> Recipe:
    path = shipped_recipes()[name]
    return load_recipe(path, [f"data={EXAMPLE_DATA}"] if leaves_data_open(path) else [], choose=lambda *_: [])


REPORTING = sorted(name for name, path in shipped_recipes().items() if "\nreported:" in path.read_text("utf-8"))
"""By their text, since reading 60 recipes takes seconds; what was reported is not inherited."""


def test_the_shipped_recipes_report_what_was_published() -> None:
    """The figures that NOTES and README of the recipes name, each with its source."""
    reported = {name: {score.value for score in reports(name).reported} for name in REPORTING}
    assert {39.00, 41.02} == reported["multi30k-en-de/bahdanau"]
    assert {59.02} == reported["multi30k-en-fr/bahdanau"]
    assert {25.5, 26.1, 26.5, 27.3} == reported["iwslt15-en-vi/luong"]
    assert {26.68, 27.03} == reported["iwslt14-de-en/word"]
    assert {30.74, 27.34, 30.33} == reported["iwslt14-de-en/bpe"]
    assert {26.75, 34.16} == reported["papers/bahdanau-2015/rnnsearch-50"]
    steps = ("base", "reverse", "dropout", "global-location", "feed", "local-p")
    published = [reported[f"papers/luong-2015/{step}"] for step in steps]
    assert published == [{11.3}, {12.6}, {14.0}, {16.8}, {18.1}, {19.0, 20.9}]  # table 1


@pytest.mark.parametrize("name", REPORTING)
def test_each_reported_score_is_in_the_tables_of_results(name: str) -> None:
    page = (Path(__file__).parents[1] / "recipes/README.md").read_text(encoding="utf-8")
    figures = {float(figure) for figure in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.]*\w)", page)}
    assert reports(name).reported
    assert {score.value for score in reports(name).reported} <= figures
    assert all(score.source for score in reports(name).reported)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_every_shipped_recipe_passes_a_smoke_run(
    name: str, corpora: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On its own text if that is at hand, else on the embedded sample; from random weights, since its parent is not at hand."""
    if leaves_data_open(shipped_recipes()[name]):
        pytest.skip("has no corpus of its own")
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    recipe = load_recipe(shipped_recipes()[name])
    data = recipe.data
    options = [] if recipe.training.pretrained is None else ["--set", "training.pretrained=null"]
    if len(texts := data.texts(data.test)) > 1:  # one of the languages of a model
        first = texts[0].model_dump(mode="json", by_alias=True)
        options += ["--set", f"data.test={json.dumps([first])}"]
    try:
        for text in (*data.corpora, *data.texts(data.valid), *data.texts(data.test)):
            source, target = data.direction(text)
            load_corpus(text.corpus, source=source, target=target, fetch=False)
    except DataError:
        settings = {"source": "en", "target": "de", "train": "sample:train", "valid": "sample:valid"}
        for key, value in {**settings, "test": "sample:test"}.items():
            options += ["--set", f"data.{key}={value}"]
    printed = good(nmt("reproduce", name, "--smoke", "--threads", "1", *options, NMT_CORPORA=str(corpora)))
    assert "A smoke run" in printed
    assert all(row["ours"] != "–" for row in rows(printed))


@pytest.mark.parametrize("option", [[], ["-o", "run"]])
def test_a_smoke_run_that_is_stopped_promises_only_what_it_keeps(
    corpus: Path, tmp_path: Path, option: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmt.cli import app
    from nmt.training import trainer

    def stopped(*_: object, **__: object) -> None:
        raise trainer.Interrupted("The state is saved.", signal.SIGINT)

    path = write(tmp_path / "mine.yaml", tree(corpus))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trainer, "train", stopped)
    printed = io.StringIO()
    monkeypatch.setattr("sys.stderr", printed)
    with pytest.raises(SystemExit) as ending:
        app(["reproduce", str(path), "--smoke", "-q", *option])
    assert ending.value.code == 128 + signal.SIGINT
    assert ("the same command goes on" in printed.getvalue()) == bool(option)


@pytest.mark.slow
def test_several_processes_reproduce_too(corpus: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", tree(corpus))
    printed = good(nmt("reproduce", path, "-o", tmp_path / "run", "--processes", "2"))
    assert "2 processes of " in printed
    assert json.loads((tmp_path / "run/trained.json").read_text())["processes"] == 2
