"""Comparing recipes: what may be compared, trainings that stop and go on, figures, tables, the command."""

import json
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import pytest
import torch
import yaml
from pydantic import TypeAdapter

from nmt.bundle.folder import Bundle
from nmt.comparison.held_out import HeldOut
from nmt.comparison.measure import SMALLEST, Figures, LengthScore, length_buckets, measure
from nmt.comparison.plan import TRAINED, Candidate, find_candidates
from nmt.comparison.runs import Machine, stoppable, train_all
from nmt.comparison.table import Row, Table
from nmt.errors import UsageError
from nmt.recipe import changed_keys, dump_recipe, load_recipe, parse_recipe
from nmt.training.folder import has_state
from nmt.training.trainer import Interrupted
from tests.commands import good, nmt
from tests.training import toy

LEFT_BEHIND = ".source.model.123.new"
MACHINE = Machine(jobs=2, threads=1, device="cpu", processor="test")
Trained = tuple[list[Candidate], list[str], dict[str, str]]


def tree(folder: Path, name: str, *, score: str = "general", **training: Any) -> dict[str, Any]:
    """A recipe that trains in seconds, on the reversal corpus in `folder`."""
    training = {"epochs": 20, "updates": 8, "batch_tokens": 512, **training}
    settings: dict[str, Any] = json.loads(toy.recipe(folder, training=training).model_dump_json())
    settings["name"] = name
    settings["data"]["test"] = f"{folder}/valid"
    settings["model"]["attention"]["score"] = {"kind": score}
    return settings


def write(folder: Path, name: str, **settings: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(tree(folder, name, **settings)))
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    toy.write_reversal(folder, pairs=500, held_out=40)
    return folder


def unshown(items: Iterable[Any], what: str, total: int) -> Iterator[Any]:
    yield from items


# --- what is compared -------------------------------------------------------------------------------------------


def test_recipes_are_found_by_file_folder_and_shipped_name(corpus: Path, tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(corpus, name).rename(tmp_path / f"{name}.yaml")
    named = find_candidates([str(tmp_path / "b.yaml"), str(tmp_path)], ["training.epochs=7"], tmp_path)
    assert [(candidate.name, candidate.recipe.training.epochs) for candidate in named] == [("b", 7), ("a", 7)]
    assert [candidate.name for candidate in find_candidates(["quick*"], (), tmp_path)] == ["quickstart"]


def test_what_cannot_be_compared_is_refused(corpus: Path, tmp_path: Path) -> None:
    one = write(corpus, "one")
    same, different = tmp_path / "same.yaml", tmp_path / "different.yaml"
    same.write_text(yaml.safe_dump(tree(corpus, "one", epochs=1)))
    different.write_text(yaml.safe_dump(tree(tmp_path, "two")))
    for names, words in (
        (["nosuch"], "There is no recipe 'nosuch'"),
        ([one, same], "another recipe is named 'one' too"),
        ([one, different], "one and two differ in data.train, data.valid, data.test, so"),
    ):
        with pytest.raises(UsageError, match=words):
            find_candidates(map(str, names), (), tmp_path)


# --- training, measuring ----------------------------------------------------------------------------------------


class Ended:
    """Stands for `subprocess.Popen([python, "-m", "nmt", ...])`: a command that has ended, without importing torch."""

    def __init__(self, command: Sequence[str], *, stdout: IO[bytes], **_: object) -> None:
        ended = nmt(*command[3:])
        stdout.write(ended.stderr)
        self.returncode = ended.returncode

    def poll(self) -> int:
        return self.returncode


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Three trained recipes, what was shown, and problems: one is good, one diverges, one has no attention.

    The last one was stopped before: it had a run folder with a recipe and a file that it was writing, but no state.
    """
    write(corpus, "good")
    write(corpus, "blind", score="none")
    write(corpus, "bad", optimizer={"kind": "sgd", "rate": 1e30}, clip_norm=None)
    names = [str(corpus / f"{name}.yaml") for name in ("good", "bad", "blind")]
    candidates = find_candidates(names, (), tmp_path_factory.mktemp("table"))
    stopped, shown = candidates[2], list[str]()
    stopped.run.mkdir(parents=True)
    (stopped.run / "recipe.yaml").write_text(dump_recipe(stopped.recipe))
    (stopped.run / LEFT_BEHIND).touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nmt.comparison.runs.subprocess", SimpleNamespace(Popen=Ended, DEVNULL=None))
        return candidates, shown, train_all(candidates, MACHINE, shown.append)


def test_a_failing_training_leaves_the_others_alone(trained: Trained) -> None:
    candidates, shown, problems = trained
    assert list(problems) == ["bad"]
    assert problems["bad"].startswith("Training diverged at update")
    assert {line.partition("  (")[0].partition("; see ")[0] for line in shown} == {
        *("good: training", "bad: training", "blind: training", "good: trained", "blind: trained"),
        f"bad: failed: {problems['bad']} See {candidates[1].log}.",
    }
    assert shown[-1].endswith("  (3 of 3)")
    for candidate in (candidates[0], candidates[2]):
        assert changed_keys(candidate.recipe, candidate.run / "recipe.yaml") == []
        assert load_recipe(candidate.recipe_file) == candidate.recipe
        assert (candidate.run / TRAINED).exists()
    assert not (candidates[2].run / LEFT_BEHIND).exists()
    assert not train_all([candidates[0], candidates[2]], MACHINE, shown.append)
    assert shown[-1].endswith("  (3 of 3)"), "what is trained is not trained again"


@pytest.mark.slow
def test_a_stopped_training_goes_on_where_it_was(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(corpus, "long", updates=40, log_every=2, validation={"every": 20, "metrics": "perplexity"})
    [candidate] = find_candidates([str(path)], (), tmp_path)
    wait = time.sleep

    def stop(seconds: float) -> None:
        wait(seconds)
        if (candidate.run / "metrics.jsonl").exists():
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("nmt.comparison.runs.time.sleep", stop)
    with pytest.raises(Interrupted, match="the same command goes on"), stoppable():
        train_all([candidate], MACHINE, lambda _: None)
    monkeypatch.undo()
    assert has_state(candidate.run)
    assert not (candidate.run / TRAINED).exists()
    assert not train_all([candidate], MACHINE, lambda _: None)
    updates = [json.loads(line)["update"] for line in (candidate.run / "metrics.jsonl").read_text().splitlines()]
    assert updates == sorted(updates)
    assert updates[-1] == 40
    assert "saved" in candidate.log.read_text()  # the first sitting ended as Ctrl-C ends it


def test_figures_are_those_of_the_model(trained: Trained) -> None:
    good, _, blind = trained[0]
    text = HeldOut.load(good.recipe, "test")
    figures = measure(good, text, device=torch.device("cpu"), progress=unshown)
    log = [json.loads(line) for line in (good.run / "metrics.jsonl").read_text().splitlines()]
    # The test text is the validation text, so the trainer has measured the same before.
    best = next(record for record in reversed(log) if record.get("best"))
    assert figures.perplexity == pytest.approx(best["perplexity"], rel=1e-3)
    assert figures.parameters == sum(value.numel() for value in Bundle.load(good.run).model.parameters())
    assert figures.entropy is not None
    assert 0 < figures.entropy < np.log(8)
    assert figures.zeros == 0
    assert (figures.updates, figures.aer) == (8, None)
    assert figures.sentences_per_second > 0
    assert sum(score.sentences for score in figures.by_length) == 40
    assert measure(blind, text, device=torch.device("cpu"), progress=unshown).entropy is None


def test_links_beside_the_text_give_an_alignment_error_rate(trained: Trained, corpus: Path, tmp_path: Path) -> None:
    good = trained[0][0]
    toy.write_reversal(tmp_path, pairs=20, held_out=0)
    for end in ("src", "tgt", "align"):
        (tmp_path / f"train.{end}").rename(tmp_path / f"links.{end}")
    figures = measure(
        good, HeldOut.load(good.recipe, "test", f"{tmp_path}/links"), device=torch.device("cpu"), progress=unshown
    )
    assert figures.aer is not None
    assert 0 <= figures.aer <= 1
    (tmp_path / "links.align").unlink()
    with pytest.raises(UsageError, match="no gold links are known for this text"):
        HeldOut.load(good.recipe, "test", f"{tmp_path}/links")


# --- buckets and tables -----------------------------------------------------------------------------------------


def test_buckets_hold_every_sentence_once_and_enough_of_them() -> None:
    lengths = np.random.default_rng(1).poisson(12, size=1000)
    buckets = length_buckets(lengths)
    assert sorted(np.concatenate(buckets)) == list(range(1000))
    assert all(len(rows) >= SMALLEST for rows in buckets)
    assert 4 <= len(buckets) <= 10
    assert all(lengths[one].max() < lengths[two].min() for one, two in pairwise(buckets))


MEASURED = Figures(
    parameters=1_234_567,
    vocabulary="v",
    perplexity=8.0,
    bleu=30.0,
    bleu_margin=1.0,
    chrf=50.0,
    chrf_margin=1.0,
    aer=0.25,
    posterior_aer=0.125,
    entropy=1.0,
    zeros=0.5,
    by_length=(LengthScore(1, 9, 40, 31.0), LengthScore(10, 10, 60, 29.0)),
    epochs=5,
    updates=100,
    training_seconds=90.0,
    tokens_per_second=5000.0,
    sentences_per_second=10.0,
    signatures={"BLEU": "nrefs:1"},
)


def row(folder: Path, name: str, figures: Figures | None = MEASURED, **settings: Any) -> Row:
    """A row of a recipe with these settings."""
    return Row(Candidate(parse_recipe(tree(folder, name, **settings), "x"), folder), figures)


def table_of(*rows: Row, **settings: Any) -> Table:
    return Table(rows, "text", "links", "machine", "nmt compare", **settings)


def test_the_table_lines_up_marks_the_best_and_tells_of_failures(corpus: Path) -> None:
    one, two = row(corpus, "one"), row(corpus, "two", replace(MEASURED, bleu=31.5, perplexity=7.0), score="additive")
    failed = replace(row(corpus, "three", None), problem="It diverged.")
    table = table_of(one, replace(two, p_values={"BLEU": 0.01}), failed, baseline="one")
    text = table.markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    first, second = rows[:5], rows[5:]
    assert len({len(line) for line in first}) == len({len(line) for line in second}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in first]
    assert cells[0][:5] == ["model", "score", "parameters", "perplexity", "BLEU"]  # all windows and orders are alike
    assert cells[2][:5] == ["one", "general", "1.23 M", "8.00", "30.00 ± 1.00"]
    assert cells[3][:5] == ["two", "additive", "1.23 M", "**7.00**", "**31.50** ± 1.00*"]
    assert cells[4] == ["three", "general", *["–"] * (len(cells[0]) - 2)]
    assert "- All: window global, order attend-then-update, most epochs 20, most updates 8.\n" in text
    assert "- The recipes differ in name, model.attention.score.kind, " in text
    assert "**three** has no figures: It diverged." in text
    assert "- Baseline: one.\n" in text
    assert "| model | 1–9 (40) | 10 (60) |" in text
    content = json.loads(table.json())
    assert [row["name"] for row in content["rows"]] == ["one", "two", "three"]
    assert TypeAdapter(Figures).validate_python(content["rows"][0]["figures"]) == MEASURED
    assert content["rows"][0]["settings"]["model.attention.score.kind"] == "general"
    assert asdict(MEASURED)["by_length"][0] == content["rows"][0]["figures"]["by_length"][0]


def test_what_does_not_compare_is_not_called_the_best(corpus: Path) -> None:
    assert "**" not in table_of(row(corpus, "one"), row(corpus, "two")).markdown()  # what several share
    other_vocabulary = replace(MEASURED, vocabulary="w", perplexity=1.0)
    varied = table_of(row(corpus, "one", epochs=2), row(corpus, "two", other_vocabulary)).markdown()
    within = [row(corpus, "one"), row(corpus, "two", replace(MEASURED, bleu=30.9, chrf=50.9, chrf_margin=0.5))]
    assert "**" not in table_of(*within).markdown()  # the interval of the one holds the other
    assert "**" not in varied
    assert "| model | most epochs |" in varied


def test_every_attention_recipe_is_described(corpus: Path) -> None:
    folder = Path(__file__).parents[1] / "recipes/attention"
    described = [str(load_recipe(path).model.attention_in_words) for path in sorted(folder.glob("*.yaml"))]
    assert len(set(described)) == len(described)
    transformer = {**tree(corpus, "x"), "model": {"kind": "transformer", "embedding": 16, "heads": 2}}
    assert parse_recipe(transformer, "x").model.attention_in_words["score"] == "scaled dot, 2 heads"


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command_finishes_an_earlier_comparison(trained: Trained, corpus: Path) -> None:
    candidate = trained[0][0]
    before = time.time()
    files = [corpus / "good.yaml", corpus / "blind.yaml"]
    ended = nmt("compare", *files, "--out", candidate.folder, "--baseline", "blind", "--threads", 1)
    text = good(ended)
    assert text == (candidate.folder / "table.md").read_text()
    assert text.startswith("# 2 recipes under one budget")
    assert b"measuring" in ended.stderr
    assert (candidate.folder / "by-length.png").read_bytes().startswith(b"\x89PNG")
    assert (candidate.run / TRAINED).stat().st_mtime < before
    rows = json.loads((candidate.folder / "table.json").read_text())["rows"]
    assert [row["name"] for row in rows] == ["good", "blind"]
    assert [{*row["p_values"]} for row in rows] == [{"BLEU", "chrF2"}, set()]
