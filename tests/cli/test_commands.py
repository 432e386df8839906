"""The command line as a user meets it: processes, files and pipes, with good input and with bad."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from nmt.bundle.folder import Bundle
from nmt.cli.inspecting import info
from nmt.data.catalogue import entries
from nmt.model.recurrent import RecurrentModel
from nmt.recipe import GuidedAlignmentConfig, load_recipe, shipped_recipes
from nmt.text.subwords import Subwords
from nmt.training.folder import LOCK
from tests.bundle.test_folder import FILES, small_recipe
from tests.cli.word_by_word import write_recipe
from tests.commands import ROOT, Finished, bad, good, nmt

# --- train ------------------------------------------------------------------------------------------------------


def test_training_leaves_a_model_a_record_and_a_picture(trained: tuple[Path, Finished]) -> None:
    folder, ended = trained
    assert good(ended).strip() == str(folder)
    assert {*FILES, "metrics.jsonl", "learning-curve.png", "state.safetensors"} <= {
        path.name for path in folder.iterdir()
    }
    assert (folder / "learning-curve.png").read_bytes().startswith(b"\x89PNG")
    best = max(json.loads(line).get("bleu", 0) for line in (folder / "metrics.jsonl").read_text().splitlines())
    assert best > 60
    report = ended.stderr.decode()
    assert "1 empty" in report
    assert "1 longer than 100 tokens" in report


def test_a_vocabulary_that_is_too_small_and_a_run_folder_that_exists_are_refused(model: Path, corpus: Path) -> None:
    files = [path for path in model.iterdir() if path.name != LOCK]
    recipe, before = write_recipe(corpus), {path: path.stat().st_mtime_ns for path in files}
    message = bad(nmt("train", recipe, "--out", model), 2)
    assert message == f"{model} exists already: go on with --resume, or choose another folder with --out."
    assert {path: path.stat().st_mtime_ns for path in files} == before
    ended = nmt("train", recipe, "--set", "subwords={kind: char, size: 8}", "--out", corpus / "run")
    assert "subwords.size 8 has no room" in bad(ended, 1)


def test_the_effective_recipe_is_printed_and_reads_back(corpus: Path, tmp_path: Path) -> None:
    recipe = write_recipe(corpus)
    dumped = good(nmt("train", recipe, "--set", "model.dropout=0.25", "--dump-recipe"))
    assert yaml.safe_load(dumped)["model"]["dropout"]["embedding"] == 0.25
    (tmp_path / "dumped.yaml").write_text(dumped)
    assert good(nmt("train", tmp_path / "dumped.yaml", "--dump-recipe")) == dumped


# --- evaluate, score, average, info -----------------------------------------------------------------------


def test_figures_come_with_interval_signature_and_comparison(model: Path, corpus: Path, tmp_path: Path) -> None:
    reference = (corpus / "valid.de").read_text().splitlines()
    (tmp_path / "other.de").write_text("".join(f"{line}\n" for line in [*reference[:20], *["Hund heute"] * 20]))
    options = ["--baseline", tmp_path / "other.de", "--bootstrap", "50", "--json", "-o", tmp_path / "out.de"]
    report = json.loads(good(nmt("evaluate", model, "--split", "valid", *options)))
    scores = {score["metric"]: score for score in report["scores"]}
    assert set(scores) == {"BLEU", "chrF2", "TER"}
    assert scores["BLEU"]["score"] > 60
    assert "tok:13a" in scores["BLEU"]["signature"]
    assert (report["sentences"], report["alignment"]) == (40, None)
    baseline, system = (row for row in report["comparison"] if row["score"]["metric"] == "BLEU")
    assert (baseline["system"], system["system"]) == ("baseline", "translator")
    assert baseline["score"]["score"] < system["score"]["score"] == scores["BLEU"]["score"]
    assert baseline["score"]["margin"] > 0
    assert system["p_value"] < 0.05
    assert len((tmp_path / "out.de").read_text().splitlines()) == 40


def test_files_are_scored_without_a_model(corpus: Path, tmp_path: Path) -> None:
    reference = corpus / "valid.de"
    text = good(nmt("evaluate", "--hyp", "-", "--ref", reference, "--bootstrap", "20", stdin=reference.read_bytes()))
    [bleu, chrf, ter] = text.splitlines()
    assert bleu.startswith("BLEU   100.00 ± 0.00  nrefs:1|bs:20|")
    assert chrf.startswith("chrF2  100.00")
    assert ter.startswith("TER      0.00")
    (tmp_path / "hyp").write_text("Ja genau.\nStopp!\n")
    (tmp_path / "ref").write_text("Ja genau.\n\n")
    options = ["--ref", "ref", "--metrics", "bleu,chrf++", "--bootstrap", "20"]
    ended = nmt("evaluate", "--hyp", "hyp", "--hyp", "ref", *options, cwd=tmp_path)
    heading, first, second, blank, *signatures = good(ended).splitlines()
    assert (heading.split(), blank) == (["BLEU", "chrF2++"], "")
    assert first.startswith("hyp    0.00 ± 0.00")
    assert second.startswith("ref ")
    assert first.count("p = ") == 0 < second.count("p = ") == 2
    assert [line.split()[0] for line in signatures] == ["BLEU", "chrF2++"]
    assert "nw:2" in signatures[1]
    [warning] = ended.stderr.decode().splitlines()
    assert "No line has 4 tokens" in warning
    assert good(nmt("evaluate", "--hyp", "ref", "--baseline", "hyp", *options, cwd=tmp_path)) == good(ended)
    (tmp_path / "hyp").write_text("Der Hund be@@ llt im Garten .\n" * 2)
    ended = nmt("evaluate", "--hyp", tmp_path / "hyp", "--ref", tmp_path / "hyp", "--bootstrap", "0")
    assert "100% of the lines of translations and references have marks of subwords" in ended.stderr.decode()


def test_a_model_is_scored_with_the_tokenizer_of_its_recipe(model: Path, corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    recipe = tmp_path / "model/recipe.yaml"
    recipe.write_text(json.dumps(yaml.safe_load(recipe.read_text()) | {"evaluation": {"tokenize": "char"}}))
    arguments = [tmp_path / "model", "--split", f"{corpus}/valid", "--beam-size", "1", "--bootstrap", "0"]
    assert "tok:char" in good(nmt("evaluate", *arguments)).splitlines()[0]
    assert "tok:intl" in good(nmt("evaluate", *arguments, "--tokenize", "intl")).splitlines()[0]


def test_several_models_are_scored_as_an_ensemble(model: Path, corpus: Path, tmp_path: Path) -> None:
    other = Bundle.load(model, torch.device("cpu"))
    assert isinstance(other.model, RecurrentModel)
    other.model.output.weight.data *= 3  # which makes it confident, and wrong
    other.model.output.weight.data[4:] = other.model.output.weight.data[4:].roll(1, 0)
    other.save(tmp_path / "other")
    expected = good(nmt("translate", model, tmp_path / "other", "-i", corpus / "valid.en"))
    arguments = ["--split", f"{corpus}/valid", "--bootstrap", "0", "--json", "-o", tmp_path / "output"]
    report = json.loads(good(nmt("evaluate", model, tmp_path / "other", *arguments)))
    assert report["system"] == f"{model} + {tmp_path / 'other'}"
    assert (tmp_path / "output").read_text() == expected
    assert expected != good(nmt("translate", model, "-i", corpus / "valid.en"))


def test_the_published_form_is_tokenized_and_lowercased(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses")
    (tmp_path / "hyp").write_text("EIN Hund , der „ bellt “ !\n" * 2)
    (tmp_path / "ref").write_text('Ein Hund, der "bellt"!\n' * 2)
    arguments = ["evaluate", "--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref", "--bootstrap", "0"]
    report = json.loads(good(nmt(*arguments, "--published", "--language", "de", "--json")))
    assert "tok:none" in report["scores"][0]["signature"]
    assert report["scores"][0]["score"] == pytest.approx(100)


def test_the_sample_is_evaluated_with_its_gold_links(model: Path) -> None:
    arguments = ["--split", "sample:valid[:40]", "--beam-size", "1", "--bootstrap", "0"]
    last = good(nmt("evaluate", model, *arguments)).splitlines()[-1]
    assert last.startswith("AER ")
    assert last.endswith("40 sentence pairs)")


def test_the_best_checkpoints_are_averaged_into_a_model(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "mean"
    assert good(nmt("average", model, "-o", output)).strip() == str(output)
    assert sorted(path.name for path in output.iterdir()) == sorted([*FILES, "data.json"])
    assert "exists already" in bad(nmt("average", model, "-o", output), 2)
    last = tmp_path / "last"
    assert good(nmt("average", model, "--last", "-o", last)).strip() == str(last)
    assert good(nmt("translate", last, stdin=b"a b\n")).count("\n") == 1


def test_info_is_one_json_object_for_programs(model: Path) -> None:
    described = json.loads(good(nmt("info", model, "--json")))
    assert described["recipe"] == json.loads(load_recipe(model / "recipe.yaml").model_dump_json())
    assert described["vocabulary"] == {"source": 22, "target": 22}
    assert described["parameters"] == sum(weight.numel() for weight in Bundle.load(model).model.parameters())
    assert described["best"]["best"] is True
    assert described["last"]["update"] >= described["best"]["update"]
    listed = dict(line.split(maxsplit=1) for line in good(nmt("info", model)).splitlines())
    assert listed["languages"] == "en -> de"
    assert f"{described['parameters']:,}" in listed["parameters"]
    assert f"BLEU {described['best']['bleu']:.2f}" in listed["best"]


def test_info_names_every_switch_that_leaves_the_plain_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subwords = Subwords.train(["a dog", "a cat"], kind="char", size=10, byte_fallback=False)
    stack = {"cell": "lstm", "layers": 2, "residual": True, "layer_norm": True, "hidden": 8}
    recipe = small_recipe(
        embedding_scale=2.5,
        encoder={**stack, "direction": "reversed"},
        attention={"score": {"kind": "concat", "size": 8}, "window": "local-m", "heads": 2, "coverage": True},
        decoder={**stack, "bridge": "copy", "order": "update-then-attend", "readout": {"kind": "tanh", "size": 8}},
    )
    guidance = GuidedAlignmentConfig(links="hmm", weight=0.25, decay=0.5)
    guided = recipe.model_copy(update={"training": recipe.training.model_copy(update={"guided_alignment": guidance})})
    Bundle.fresh(guided, subwords, subwords).save(tmp_path / "model")
    info(tmp_path / "model")
    text = capsys.readouterr().out
    assert "guided by links  hmm, weight 0.25, times 0.5 every epoch" in text
    described = dict(line.split(maxsplit=1) for line in text.splitlines())
    assert described["encoder"] == "right-to-left LSTM, 2 layers of 8, residual, layer-normed"
    assert described["attention"] == "concat, coverage, 2 heads, local-m, D = 10"
    assert described["embedding"] == "8, times 2.5, tied: target"
    order = "update-then-attend, input feeding"
    assert described["decoder"] == f"LSTM, 2 layers of 8, residual, layer-normed, {order}"


# --- corpora, recipes, usage ------------------------------------------------------------------------------------


def test_a_text_is_exported_with_its_gold_links(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("en\tde\na dog\tein Hund\n", encoding="utf-8")
    export = ["corpora", "export", "a.tsv", "--source", "de", "--target", "en", "-o", "text/b"]
    assert good(nmt(*export, cwd=tmp_path)).splitlines() == ["text/b.de", "text/b.en"]
    (tmp_path / "text/b.align").write_text("0-0 1p1\n")
    export = ["corpora", "export", "text/b", "--source", "de", "--target", "en", "-o", "c"]
    assert good(nmt(*export, cwd=tmp_path)).splitlines() == ["c.de", "c.en", "c.align"]
    texts = [(tmp_path / f"c.{end}").read_text("utf-8") for end in ("de", "en", "align")]
    assert texts == ["ein Hund\n", "a dog\n", "0-0 1p1\n"]
    assert "c.de already exists" in bad(nmt(*export, cwd=tmp_path), 2)


def test_corpora_are_listed_checked_and_described(tmp_path: Path) -> None:
    listed = good(nmt("corpora")).splitlines()
    rows = {entry.name: next(line for line in listed if line.startswith(entry.name)) for entry in entries()}
    assert {name for name, row in rows.items() if "local only" in row} == {"en-nso", "tatoeba-en-de", "hansards-en-fr"}
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "multi30k/val.en").write_text("not what it should be\n")
    ended = nmt("corpora", "check", "multi30k", NMT_CORPORA=str(tmp_path), NMT_CACHE=str(tmp_path / "cache"))
    assert ended.returncode == 1
    lines = ended.stdout.decode().splitlines()
    assert f"different  multi30k/val.en  {tmp_path}/multi30k/val.en" in lines
    assert "missing    multi30k/val.de" in lines
    text = good(nmt("corpora", "info", "multi30k", NMT_CORPORA=str(tmp_path))).splitlines()
    assert {"split      val, 1,014 lines; verified: en de fr", "  source   hf:bentrevett/multi30k:validation"} <= {
        *text
    }
    assert f"  here     {tmp_path}/multi30k" in text
    family = good(nmt("corpora", "info", "wmt14"))
    assert "pairs     de-en, fr-en" in family
    assert "  source  hf:wmt/wmt14/de-en:train" in family


def test_recipes_are_listed_and_shown() -> None:
    lines = good(nmt("recipe", "list", NO_COLOR="1")).splitlines()
    listed = dict(line.split("  ", maxsplit=1) for line in lines)
    assert listed.keys() == shipped_recipes().keys()
    assert all(title.strip() and "yaml" not in title for title in listed.values())
    assert good(nmt("recipe", "show", "quickstart")) == (ROOT / "recipes" / "quickstart.yaml").read_text()
    assert json.loads(good(nmt("recipe", "schema")))["title"] == "Recipe"


def test_a_test_set_of_sacrebleu_is_exported_translated_and_evaluated(model: Path, tmp_path: Path) -> None:
    sets = Path(os.environ["SACREBLEU"]) / "wmt14"
    sets.mkdir(parents=True)
    texts = {"src": "the dog sees\nthe cat sees\n", "ref": "der Hund sieht\ndie Katze sieht\n"}
    for name, text in {**texts, "docid": "", "genre": "", "origlang": ""}.items():
        (sets / f"wmt14.en-de.{name}").write_text(text)
    test_set = "sacrebleu:wmt14/en-de"
    good(nmt("corpora", "export", test_set, "--source", "en", "--target", "de", "-o", tmp_path / "text"))
    assert [(tmp_path / f"text.{side}").read_text() for side in ("en", "de")] == list(texts.values())
    expected = good(nmt("translate", model, "--input", tmp_path / "text.en"))
    assert good(nmt("translate", model, "--input", test_set)) == expected
    report = good(nmt("evaluate", model, "--split", test_set, "--bootstrap", "20", "--json"))
    assert json.loads(report)["sentences"] == 2


def test_without_arguments_the_help_is_shown() -> None:
    assert good(nmt()) == good(nmt("--help"))
    assert good(nmt("--version")).startswith("nmt 0.")
