"""The command line as a user meets it: processes, files and pipes, with good input and with bad."""

import gzip
import io
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import yaml

from nmt.bundle.folder import Bundle
from nmt.cli.inspecting import info
from nmt.data.catalogue import entries
from nmt.decoding.translator import Translator
from nmt.model.recurrent import RecurrentModel
from nmt.recipe import GuidedAlignmentConfig, load_recipe, shipped_recipes
from nmt.runtime import progress
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import FILES, small_recipe
from tests.cli.word_by_word import write_corpus, write_recipe
from tests.commands import ROOT, Finished, Running, bad, good, nmt

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


def test_training_reports_what_it_left_out(trained: tuple[Path, Finished]) -> None:
    report = trained[1].stderr.decode()
    assert "1 empty" in report
    assert "1 longer than 100 tokens" in report


def test_the_effective_recipe_is_printed_and_reads_back(corpus: Path, tmp_path: Path) -> None:
    recipe = write_recipe(corpus)
    dumped = good(nmt("train", recipe, "--set", "model.dropout=0.25", "--dump-recipe"))
    assert yaml.safe_load(dumped)["model"]["dropout"]["embedding"] == 0.25
    (tmp_path / "dumped.yaml").write_text(dumped)
    assert good(nmt("train", tmp_path / "dumped.yaml", "--dump-recipe")) == dumped


def test_ctrl_c_saves_and_resume_goes_on(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = Running("train", write_recipe(corpus), "--out", run, "--set", "training.log_every=1", "--threads", "1")
    until = time.monotonic() + 60
    while not (run / "metrics.jsonl").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    stopped = process.finish()
    assert stopped.returncode == 128 + signal.SIGINT
    last = stopped.stderr.decode().splitlines()[-1]
    goes_on = f"nmt train {run}/recipe.yaml --out {run} --resume --device cpu --threads 1"
    assert last == f"nmt: Stopped. The state is saved; go on with: {goes_on}"
    changed = nmt("train", run / "recipe.yaml", "--out", run, "--resume", "--set", "training.clip_norm=2")
    assert "differs from that of the run" in bad(changed, 2)
    again = ["--resume", "-q", "--set", "training.epochs=1"]
    ended = nmt("train", run / "recipe.yaml", "--out", run, *again)
    assert good(ended).strip() == str(run)
    assert ended.stderr == b""


def _lacks_a_side(folder: Path) -> str:
    (folder / "train.de").unlink()
    return f"no file {folder}/train.de"


def _lacks_a_line(folder: Path) -> str:
    with (folder / "train.de").open("a") as file:
        file.write("noch eine\n")
    return f"{folder}/train.en has 660 lines, but {folder}/train.de has 661"


def _is_no_utf8(folder: Path) -> str:
    lines = (folder / "train.de").read_bytes().split(b"\n")
    lines[6] = b"sch\xf6n"
    (folder / "train.de").write_bytes(b"\n".join(lines))
    return f"{folder}/train.de, line 7: not valid UTF-8 (byte 0xF6)."


def _is_empty(folder: Path) -> str:
    for side in ("en", "de"):
        (folder / f"train.{side}").write_bytes(b"")
    return "is empty: it has no line."


def _is_a_damaged_archive(folder: Path) -> str:
    packed = gzip.compress((folder / "train.de").read_bytes())
    (folder / "train.de").unlink()
    (folder / "train.de.gz").write_bytes(packed[: len(packed) // 2])
    return f"{folder}/train.de.gz is damaged"


@pytest.mark.parametrize("spoil", [_lacks_a_side, _lacks_a_line, _is_no_utf8, _is_empty, _is_a_damaged_archive])
def test_a_corpus_that_cannot_be_used_is_a_sentence(tmp_path: Path, spoil: Callable[[Path], str]) -> None:
    write_corpus(tmp_path)
    recipe = write_recipe(tmp_path)
    sentence = spoil(tmp_path)
    assert sentence in bad(nmt("train", recipe, "--out", tmp_path / "run", "-q"), 1)
    assert not (tmp_path / "run").exists()


def test_a_vocabulary_larger_than_the_text_allows_says_how_large_it_may_be(corpus: Path, tmp_path: Path) -> None:
    ended = nmt("train", write_recipe(corpus), "--set", "subwords.size=500", "--out", tmp_path / "run")
    assert "subwords.size 500 is larger than the training text allows: set it to at most" in bad(ended, 1)


def test_a_hub_corpus_without_network_says_what_to_do(corpus: Path, tmp_path: Path) -> None:
    recipe = write_recipe(corpus)
    arguments = ["--set", "data.train=hf:nobody/nothing:train", "--out", tmp_path / "run"]
    ended = nmt("train", recipe, *arguments, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(tmp_path))
    sentence = bad(ended, 1)
    assert sentence.startswith("Cannot load hf:nobody/nothing:train: ")
    assert "copy its cache" in sentence


def test_a_run_folder_that_exists_is_left_alone(model: Path, corpus: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in model.iterdir()}
    sentence = bad(nmt("train", write_recipe(corpus), "--out", model), 2)
    assert sentence == f"{model} exists already: go on with --resume, or choose another folder with --out."
    assert {path: path.stat().st_mtime_ns for path in model.iterdir()} == before


@pytest.mark.usefixtures("model")  # the encoded text is in the cache, so that the weights are the first to be too large
def test_a_full_disk_while_saving_is_a_sentence(corpus: Path, tmp_path: Path) -> None:
    process = Running("train", write_recipe(corpus), "--out", tmp_path / "run", "-q", "--set", "training.epochs=1")
    _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, most))
    assert f"Cannot write {tmp_path}/run/" in bad(process.finish(), 1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_a_bar_appears_only_before_a_person_who_waits(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    def slowly() -> Iterator[int]:
        for item in range(3):
            time.sleep(0.1)
            yield item

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "DELAY", 0.05)
    quick = list(progress.with_progress(range(3), "translating", total=3, quiet=quiet))
    assert screen.getvalue() == ""
    slow = list(progress.with_progress(slowly(), "translating", total=3, quiet=quiet))
    assert quick == slow == [0, 1, 2]
    assert ("translating" in screen.getvalue()) is not quiet


# --- evaluate, score, plot, average, info -----------------------------------------------------------------------


def test_figures_come_with_interval_signature_and_comparison(model: Path, corpus: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "out.de", tmp_path / "other.de"
    reference = (corpus / "valid.de").read_text().splitlines()
    other.write_text("".join(f"{line}\n" for line in [*reference[:20], *["Hund Katze heute"] * 20]))
    beam = ["--set", "decoding.horizon=null", "--set", "decoding.prune=null"]
    arguments = ["--split", "valid", "--baseline", other, "--bootstrap", "50", "--json", "-o", output, *beam]
    report = json.loads(good(nmt("evaluate", model, *arguments)))
    scores = {score["metric"]: score for score in report["scores"]}
    assert set(scores) == {"BLEU", "chrF2", "TER"}
    assert scores["BLEU"]["score"] > 60
    assert scores["BLEU"]["margin"] is not None
    assert "tok:13a" in scores["BLEU"]["signature"]
    assert report["sentences"] == 40
    assert report["alignment"] is None
    baseline, system = (item for item in report["comparison"] if item["score"]["metric"] == "BLEU")
    assert (baseline["system"], system["system"]) == ("baseline", "system")
    assert baseline["score"]["score"] < system["score"]["score"] == scores["BLEU"]["score"]
    assert baseline["score"]["margin"] > 0
    assert system["p_value"] < 0.05
    assert len(output.read_text().splitlines()) == 40


def test_files_are_scored_without_a_model(corpus: Path, tmp_path: Path) -> None:
    reference = corpus / "valid.de"
    text = good(nmt("evaluate", "--hyp", "-", "--ref", reference, "--bootstrap", "20", stdin=reference.read_bytes()))
    [bleu, chrf, ter] = text.splitlines()
    assert bleu.startswith("BLEU   100.00 ± 0.00  nrefs:1|bs:20|")
    assert chrf.startswith("chrF2  100.00")
    assert ter.startswith("TER      0.00")
    (tmp_path / "short.de").write_text("ein Hund\n")
    sentence = bad(nmt("evaluate", "--hyp", tmp_path / "short.de", "--ref", reference), 1)
    assert sentence == f"{reference} has 40 lines, but {tmp_path}/short.de has 1: the lines do not correspond."


def test_text_without_spaces_is_scored_by_its_language(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_text("小猫在家里睡觉。\n狗在外面跑。\n", encoding="utf-8")
    (tmp_path / "ref").write_text("小猫在家里睡。\n狗在外面跑步。\n", encoding="utf-8")
    arguments = ["evaluate", "--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref", "--bootstrap", "0"]
    blind = nmt(*arguments)
    assert good(blind).startswith("BLEU     0.00  nrefs:1|case:mixed|eff:no|tok:13a|")
    [warning] = blind.stderr.decode().splitlines()
    assert "The text is written without spaces, but the tokenizer 13a splits at spaces" in warning
    assert "--tokenize" in warning
    seen = nmt(*arguments, "--language", "zh")
    assert "tok:zh" in good(seen).splitlines()[0]
    assert seen.stderr == b""
    assert good(nmt(*arguments, "--language", "zh", "--tokenize", "char")).startswith("BLEU    7")


def test_blank_references_and_short_lines_are_scored(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_text("Ja genau.\nStopp!\n")
    (tmp_path / "ref").write_text("Ja genau.\n\n")
    ended = nmt("evaluate", "--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref", "--baseline", tmp_path / "ref")
    assert good(ended).startswith("BLEU     0.00 ± 0.00")
    [warning] = ended.stderr.decode().splitlines()
    assert "No line has 4 tokens" in warning


def test_a_model_is_scored_with_the_tokenizer_of_its_recipe(model: Path, corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    recipe = tmp_path / "model" / "recipe.yaml"
    tree = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    recipe.write_text(yaml.safe_dump({**tree, "evaluation": {"tokenize": "char"}}), encoding="utf-8")
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
    assert "give --language" in bad(nmt(*arguments, "--published"), 2)


def test_the_sample_is_evaluated_with_its_gold_links(model: Path) -> None:
    arguments = ["--split", "sample:valid[:40]", "--beam-size", "1", "--bootstrap", "0"]
    last = good(nmt("evaluate", model, *arguments)).splitlines()[-1]
    assert last.startswith("AER ")
    assert last.endswith("40 sentence pairs)")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "There is nothing to evaluate"),
        (["--hyp", "a"], "There is nothing to evaluate"),
        (["somewhere", "--hyp", "a", "--ref", "b"], "not both"),
        (["somewhere", "--published", "--tokenize", "intl"], "leave out --tokenize"),
        (["somewhere", "--tokenize", "nonsense"], "There is no tokenizer 'nonsense'"),
        (["somewhere", "--baseline", "x", "--bootstrap", "0"], "needs --bootstrap 2 or more, but it is 0"),
    ],
)
def test_evaluation_that_cannot_be_is_refused_at_once(arguments: list[str], sentence: str) -> None:
    assert sentence in bad(nmt("evaluate", *arguments), 2)


def test_known_translations_are_scored_line_by_line(model: Path, corpus: Path, tmp_path: Path) -> None:
    ended = nmt("score", model, "-s", corpus / "valid.en", "-t", corpus / "valid.de")
    scores = [float(line) for line in good(ended).splitlines()]
    assert len(scores) == 40
    assert max(scores) <= 0
    assert b"40 lines" in ended.stderr
    assert b"perplexity" in ended.stderr
    (tmp_path / "short").write_text("ein Hund\n")
    ended = nmt("score", model, "-s", corpus / "valid.en", "-t", tmp_path / "short", "-q")
    assert ended.returncode == 1
    assert f"valid.en has 40 lines, but {tmp_path}/short has 1".encode() in ended.stderr


def test_alignments_are_drawn_for_found_and_given_translations(model: Path, tmp_path: Path) -> None:
    ended = nmt("plot", model, "the old dog sees", "-o", tmp_path / "found.png", "-q")
    assert good(ended).strip() == str(tmp_path / "found.png")
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    good(nmt("plot", model, "the old dog sees", "--target", "der alte Hund", "-o", tmp_path / "given.svg"))
    drawn = (tmp_path / "given.svg").read_text()
    assert all(f">{word}<" in drawn for word in ["the", "old", "dog", "sees", "der", "alte", "Hund"])


def test_any_of_the_best_translations_is_drawn_alone_or_beside_the_others(model: Path, tmp_path: Path) -> None:
    [found] = Translator([Bundle.load(model)], n_best=2).translate(["the old dog sees"])
    titles = [
        f"translation {rank}, score {item.score:.2f}".replace("-", "−") for rank, item in enumerate(found.hypotheses, 1)
    ]
    assert len(set(titles)) == 2
    for options, shown in ((["--n-best", "2"], found.hypotheses), (["--rank", "2"], found.hypotheses[1:])):
        ended = nmt("plot", model, "the old dog sees", *options, "-o", tmp_path / "best.svg", PYTHONUTF8="1")
        good(ended)
        assert ended.stderr.decode().splitlines() == [item.text for item in shown]
        drawn = (tmp_path / "best.svg").read_text(encoding="utf-8")
        assert [title for title in titles if title in drawn] == titles[-len(shown) :]


def test_several_sentences_are_drawn_with_how_good_their_translations_are(model: Path, tmp_path: Path) -> None:
    (tmp_path / "some.en").write_text("dog sees the old\n\nthe dog\n")
    (tmp_path / "some.de").write_text("Hund sieht der alte\n\nnichts davon\n")
    files = ["-i", tmp_path / "some.en", "-r", tmp_path / "some.de"]
    good(nmt("plot", model, *files, "-o", tmp_path / "some.svg", "-q"))
    drawn = (tmp_path / "some.svg").read_text(encoding="utf-8")
    assert "line 1 · BLEU 100.0" in drawn
    assert "line 3 · BLEU 0.0" in drawn
    assert "line 2" not in drawn


@pytest.mark.parametrize(
    ("sentence", "options", "status", "message"),
    [
        ("", [], 1, "The sentence to plot is empty."),
        ("\x01", [], 1, "The sentence to plot is empty."),
        ("the dog", ["--target", ""], 1, "There is nothing to draw"),
        ("the dog", ["-o", "picture.bmp"], 2, "picture.bmp"),
    ],
)
def test_what_cannot_be_drawn(
    model: Path, tmp_path: Path, sentence: str, options: list[str], status: int, message: str
) -> None:
    assert message in bad(nmt("plot", model, sentence, "-q", *options, cwd=tmp_path), status)
    assert not list(tmp_path.iterdir())


def test_the_best_checkpoints_are_averaged_into_a_model(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "mean"
    assert good(nmt("average", model, "-o", output)).strip() == str(output)
    assert sorted(path.name for path in output.iterdir()) == sorted([*FILES, "data.json"])
    assert "exists already" in bad(nmt("average", model, "-o", output), 2)
    last = tmp_path / "last"
    assert good(nmt("average", model, "--last", "-o", last)).strip() == str(last)
    assert good(nmt("translate", last, stdin=b"a b\n")).count("\n") == 1
    assert "exclude each other" in bad(nmt("average", model, "--last", "--best", "1"), 2)


def test_info_says_what_a_model_is(model: Path) -> None:
    with (model / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "tra')  # a crash may leave half a line
    described = dict(line.split(maxsplit=1) for line in good(nmt("info", model)).splitlines())
    assert described["languages"] == "en -> de"
    assert described["encoder"] == "bidirectional GRU, 1 layer of 2 x 32"
    assert described["attention"] == "additive, global"
    assert described["decoder"] == "GRU, 1 layer of 48, attend-then-update"
    assert described["embedding"].startswith("32, tied: ")
    assert "best valid" not in described
    assert "BLEU" in described["best"]


def test_info_is_one_json_object_for_programs(model: Path) -> None:
    described = json.loads(good(nmt("info", model, "--json")))
    assert described["recipe"] == json.loads(load_recipe(model / "recipe.yaml").model_dump_json())
    assert described["vocabulary"] == {"source": 22, "target": 22}
    assert described["parameters"] == sum(weight.numel() for weight in Bundle.load(model).model.parameters())
    assert described["best"]["best"] is True
    assert described["last"]["update"] >= described["best"]["update"]
    listed = good(nmt("info", model))
    assert f"{described['parameters']:,}" in listed
    assert f"BLEU {described['best']['bleu']:.2f}" in listed


def test_info_tells_what_the_attention_was_guided_by(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subwords = Subwords.train(["a dog", "a cat"], kind="char", size=10, byte_fallback=False)
    recipe = small_recipe()
    guidance = GuidedAlignmentConfig(links="hmm", weight=0.25, decay=0.5)
    guided = recipe.model_copy(update={"training": recipe.training.model_copy(update={"guided_alignment": guidance})})
    Bundle.fresh(recipe, subwords, subwords).save(tmp_path / "plain")
    Bundle.fresh(guided, subwords, subwords).save(tmp_path / "guided")
    info(tmp_path / "plain")
    assert "guided" not in capsys.readouterr().out
    info(tmp_path / "guided")
    assert "guided by links  hmm, weight 0.25, times 0.5 every epoch" in capsys.readouterr().out
    info(tmp_path / "guided", as_json=True)
    described = json.loads(capsys.readouterr().out)
    assert described["recipe"]["training"]["guided_alignment"] == {"links": "hmm", "weight": 0.25, "decay": 0.5}
    assert described["best"] is described["last"] is None


def test_info_names_every_switch_that_leaves_the_plain_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subwords = Subwords.train(["a dog", "a cat"], kind="char", size=10, byte_fallback=False)
    stack = {"cell": "lstm", "layers": 2, "residual": True, "layer_norm": True, "hidden": 8}
    score = {"kind": "concat", "size": 8, "coverage": True}
    made = small_recipe(
        embedding_scale=2.5,
        encoder={**stack, "direction": "reversed"},
        attention={"score": score, "window": "local-m", "heads": 2},
        decoder={**stack, "bridge": "copy", "order": "update-then-attend", "readout": {"kind": "tanh", "size": 8}},
    )
    Bundle.fresh(made, subwords, subwords).save(tmp_path / "model")
    info(tmp_path / "model")
    described = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert described["encoder"] == "right-to-left LSTM, 2 layers of 8, residual, layer-normed"
    assert described["attention"] == "concat, local-m, 2 heads, coverage"
    assert described["embedding"] == "8, times 2.5, tied: target"
    conditional = small_recipe(
        decoder={"order": {"kind": "attend-then-update", "conditional": True}, "readout": {"kind": "tanh", "size": 8}}
    )
    Bundle.fresh(conditional, subwords, subwords).save(tmp_path / "conditional")
    info(tmp_path / "conditional")
    assert "conditional attend-then-update" in capsys.readouterr().out
    assert described["decoder"] == (
        "LSTM, 2 layers of 8, residual, layer-normed, update-then-attend with input feeding"
    )


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


def test_corpora_are_listed_and_checked(tmp_path: Path) -> None:
    listed = good(nmt("corpora"))
    assert good(nmt("corpora", "list")) == listed
    sources = {
        item.name: next(line for line in listed.splitlines() if line.startswith(item.name)) for item in entries()
    }
    assert listed.startswith("sample:")
    assert {name for name, line in sources.items() if "local only" in line} == {"tatoeba-en-de", "hansards-en-fr"}
    assert max(map(len, listed.splitlines())) <= 100
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "multi30k" / "val.en").write_text("not what it should be\n")
    for arguments in (["multi30k"], []):
        ended = nmt("corpora", "check", *arguments, NMT_CORPORA=str(tmp_path), NMT_CACHE=str(tmp_path / "cache"))
        assert ended.returncode == 1
        lines = ended.stdout.decode().splitlines()
        assert f"different  multi30k/val.en  {tmp_path}/multi30k/val.en" in lines
        assert "missing    multi30k/val.de" in lines
        assert not [line for line in lines if "multi30k" not in line]
    assert "did you mean 'multi30k'?" in bad(nmt("corpora", "fetch", "multi30"), 1)
    assert "did you mean 'val'?" in bad(nmt("corpora", "fetch", "multi30k/vall"), 1)


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
    assert "sacreBLEU has no test set 'wmt1'" in bad(nmt("translate", model, "--input", "sacrebleu:wmt1/en-de"), 1)


def test_a_corpus_is_described(tmp_path: Path) -> None:
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "multi30k" / "val.en").write_text("a\n")
    text = good(nmt("corpora", "info", "multi30k", NMT_CORPORA=str(tmp_path)))
    for line in (
        "languages  en de fr cs",
        "split      val, 1,014 lines; verified: en de fr",
        "split      test_2017_mscoco, 461 lines; not verified",
        "  source   hf:bentrevett/multi30k:validation",
        f"  here     {tmp_path}/multi30k",
        "license    non-commercial research and education",
    ):
        assert line in text.splitlines()
    assert "derivation  168,655 pairs" in good(nmt("corpora", "info", "tatoeba-en-de"))
    assert "  source   hf:wmt/wmt14/de-en:train" in good(nmt("corpora", "info", "wmt14-de-en"))
    for name in ("sacrebleu:wmt14", "sacrebleu:wmt14/en-de"):
        assert "pairs     cs-en, en-cs, de-en" in good(nmt("corpora", "info", name))
    assert "sacreBLEU has no test set 'wmt4'" in bad(nmt("corpora", "info", "sacrebleu:wmt4/en-de"), 1)
    family = good(nmt("corpora", "info", "wmt14"))
    assert "pairs     de-en, fr-en" in family
    assert "  source  hf:wmt/wmt14/de-en:train" in family
    assert "did you mean 'wmt14-de-en'?" in bad(nmt("corpora", "info", "wmt14-en-de"), 1)


def test_recipes_are_listed_shown_and_described() -> None:
    lines = good(nmt("recipe", "list", NO_COLOR="1")).splitlines()
    listed = dict(line.split("  ", maxsplit=1) for line in lines)
    assert listed.keys() == shipped_recipes().keys()
    assert all(title.strip() and "yaml" not in title for title in listed.values())
    assert max(map(len, lines)) <= 80
    assert len({len(line) - len(title.lstrip()) for line, title in zip(lines, listed.values(), strict=True)}) == 1
    assert good(nmt("recipe", "show", "quickstart")) == (ROOT / "recipes" / "quickstart.yaml").read_text()
    assert json.loads(good(nmt("recipe", "schema")))["title"] == "Recipe"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trian"], "No such command 'trian'. Did you mean 'train'"),
        (["--frobnicate"], "No such option"),
        (["train"], "Give a recipe, or the text to train on: --source, --target, --train, --valid missing"),
        (["compare", "-o", "x"], "Missing argument 'RECIPE'. See `nmt compare --help`."),
        (["train", "nothing"], "There is no recipe 'nothing': give a YAML file, or a name of `nmt recipe list`."),
        (["train", "quickstart", "--set", "model.dropuot=1"], "did you mean 'dropout'?"),
        (["train", "quickstart", "--set", "model.attention={score: none, window: local-p}"], "has nothing to act on"),
        (["train", "quickstart", "--threads", "0"], "'--threads'"),
        (["translate", "x", "--beam-size", "few"], "'--beam-size'"),
        (["translate", "x", "--device", "abacus"], "There is no device 'abacus'"),
    ],
)
def test_a_command_that_makes_no_sense_is_a_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in bad(nmt(*arguments), 2)


def test_without_arguments_the_help_is_shown() -> None:
    assert good(nmt()) == good(nmt("--help"))
    assert good(nmt("--version")).startswith("nmt 0.")


def test_more_threads_than_cores_are_not_started(model: Path) -> None:
    ended = nmt("translate", model, "--threads", 10_000, stdin=b"A dog.\n")
    good(ended)
    assert b"10000 threads become" in ended.stderr
