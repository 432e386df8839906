"""The Python API takes what a user would write, or refuses it in one sentence."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch

import nmt
from nmt.alignment.weights import Alignment
from nmt.decoding.options import DecodingOptions
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from tests.commands import good
from tests.commands import nmt as run_command
from tests.robustness import tiny

LINE = "the dog sees a cat ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder_in(tmp_path_factory.mktemp("api"))


def test_what_a_user_would_write_is_taken(folder: Path) -> None:
    translator = nmt.load(str(folder), device="cpu", n_best=2)
    [wanted] = translator.translate([LINE])
    assert translator.translate(LINE) == wanted
    assert (wanted.source, len(wanted.hypotheses)) == (LINE, 2)
    assert translator.translate("").text == ""
    together = nmt.load([folder, str(folder)]).translate(LINE)  # an ensemble
    assert together.hypotheses[0].ids == wanted.hypotheses[0].ids
    assert together.score == pytest.approx(wanted.score, abs=1e-5)
    [wanted] = translator.score([("a cat", "a dog")])
    assert translator.score(("a cat", "a dog")) == wanted
    ids = tiny.bundle().target.encode("a dog")
    assert translator.score(("a cat", ids)).hypotheses[0].ids == wanted.hypotheses[0].ids


def test_decoding_settings_are_laid_over_those_of_the_model(folder: Path) -> None:
    own = tiny.bundle().recipe.decoding
    assert own.beam_size == 2
    changed = own.model_copy(update={"beam_size": 1, "prune": 2.0})
    for settings in (changed, {"beam_size": 1, "prune": 2}):
        assert nmt.load(folder, decoding=settings).translate(LINE) == Translator(
            [tiny.bundle()], decoding=changed
        ).translate(LINE)
    assert nmt.load(folder, decoding={"beam_size": 4}, n_best=4).translate(LINE).hypotheses[3]


REFUSALS: dict[str, str] = {
    "nmt.load(model, precision='int4')": "precision must be auto, fp32, bf16, fp16 or int8, but is 'int4' (str).",
    "nmt.load(model, nbest=3)": "There is no option 'nbest'; did you mean 'n_best'?",
    "nmt.load(model, n_best='3')": "Options: 'decoding.n_best': input should be a valid integer, but is '3'.",
    "nmt.load(model, shortlist=3)": "shortlist must be a path, as a str or a Path, but is 3 (int).",
    "nmt.load(model, decoding={'beam': 3})": "There is no option 'beam'; did you mean 'beam_size'?",
    "nmt.load(model, 'gpux')": "There is no device 'gpux': use auto, cpu, cuda, cuda:N or mps.",
    "nmt.load(model, device=None)": "device must be auto, cpu, cuda, cuda:N, mps or a torch.device, but is None.",
    "nmt.load([model, 3])": "A model folder must be a path, as a str or a Path, but is 3 (int).",
    "nmt.load([])": "A Translator takes at least one bundle; nmt.load takes folders.",
    "nmt.Translator('runs/mine')": "A Translator takes at least one bundle; nmt.load takes folders.",
    "nmt.load(model, beam_size=2, n_best=3)": "n_best must be between 1 and beam_size, which is 2, but is 3.",
    "nmt.load(model).translate('a', beam=3)": "There is no option 'beam'; did you mean 'beam_size'?",
    "nmt.load(model).translate(None)": "Expected an iterable of lines, but got None.",
    "nmt.load(model).translate(['a cat', None])": "Line 2 must be a str, but is None.",
    "nmt.load(model).translate([['a cat']])": "Line 1 must be a str, but is ['a cat'] (list).",
    "nmt.load(model).score('a cat')": "Expected an iterable of pairs (source, target), but got 'a cat' (str).",
    "nmt.load(model).score(['a cat'])": "Pair 1 must be (source, target), each a str, or the target a list of ids",
    "nmt.load(model).score([('a', 'b'), ('a', None)])": "Pair 2 must be",
    "nmt.load(model).score(('a', 'b'), batch_tokens=0)": "Options: 'decoding.batch_tokens': input should be greater than",
    "nmt.load(model).stream(['a'], precision='int8')": "precision decides how the weights are packed, once: give it to nmt.load.",
    "next(nmt.load(model).stream('a'))": "Expected an iterable of lines, but got 'a' (str).",
    "nmt.Bundle.load(3)": "The model folder must be a path, as a str or a Path, but is 3 (int).",
    "nmt.plot_alignment(None, 'x.png')": "What is drawn must be an Alignment, but is None.",
    "nmt.load_recipe('quickstart', 'seed')": "--set takes a.b=value, but got 'seed'.",
    "nmt.train('quickstart', 3)": "The run folder must be a path, as a str or a Path, but is 3 (int).",
    "nmt.load_corpus(3, source='en', target='de')": "The corpus must be a path, as a str or a Path, but is 3 (int).",
}


@pytest.mark.parametrize("call", REFUSALS)
def test_a_wrong_argument_is_refused_with_one_message(folder: Path, call: str) -> None:
    jaxtyping.config.update("jaxtyping_disable", True)  # annotated types are checked in tests alone
    with pytest.raises(UsageError, match=re.escape(REFUSALS[call])):
        eval(call, {"nmt": nmt, "model": folder})


def test_every_option_is_described() -> None:
    assert DecodingOptions.__doc__
    for name in DecodingOptions.model_fields:
        assert re.search(rf"^        {name}: \S", DecodingOptions.__doc__, re.MULTILINE), name


def test_results_can_be_compared(folder: Path) -> None:
    translator = nmt.load(folder)
    dog, cat = translator.translate(["a dog", "a cat"])
    same, _ = translator.translate(["a dog", "a cat"])  # in another row of a batch, plain PyTorch may round otherwise
    assert dog == same != cat
    assert hash(dog) == hash(same)
    [hypothesis] = dog.hypotheses
    assert hypothesis == replace(hypothesis, alignment=hypothesis.alignment.clone())
    for changed in (hypothesis.alignment + 0.5, torch.zeros(0, 0)):
        assert hypothesis != replace(hypothesis, alignment=changed)
    assert pickle.loads(pickle.dumps(dog)) == dog
    weights = np.array([[0.25, 0.75]])
    alignment = Alignment(weights, ("a", "b"), ("c",))
    assert {alignment, Alignment(weights.copy(), ("a", "b"), ("c",))} == {alignment}
    assert alignment not in (Alignment(weights, ("a", "b"), ("d",)), Alignment(1 - weights, ("a", "b"), ("c",)))


def test_paths_may_be_text(folder: Path, tmp_path: Path) -> None:
    nmt.Bundle.load(str(folder)).save(str(tmp_path / "copy"))
    assert nmt.load(str(tmp_path / "copy")).translate(LINE) == nmt.load(folder).translate(LINE)
    (tmp_path / "text.tsv").write_text("a dog\tein Hund\n")
    assert len(nmt.load_corpus(str(tmp_path / "text.tsv"), source="en", target="de")) == 1
    assert nmt.load_recipe("quickstart", ["seed=7"]) == nmt.load_recipe("quickstart", "seed=7")


def test_a_translator_pickles_by_loading_its_folder_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    translator = nmt.load(folder.name, "cpu", n_best=2, decoding={"beam_size": 3}, precision="bf16")
    for sent in (translator, translator.with_options(beam_size=4).with_options(length_penalty=0.0)):
        monkeypatch.chdir(folder.parent)
        stored = pickle.dumps(sent)
        assert len(stored) < 2000
        monkeypatch.chdir("/")
        again = pickle.loads(stored)
        assert again.translate(LINE) == sent.translate(LINE)
        assert pickle.loads(pickle.dumps(again)).translate(LINE) == sent.translate(LINE)
    with pytest.raises(UsageError, match="models in memory cannot go to another process: save them"):
        pickle.dumps(Translator([tiny.bundle()]))


def test_options_of_a_call_are_those_of_load_for_that_call(folder: Path) -> None:
    translator = nmt.load(folder, "cpu", length_penalty=0.5)
    options: dict[str, Any] = {"beam_size": 4, "n_best": 3, "max_ratio": 0.5, "alignments": False}
    expected = nmt.load(folder, "cpu", **options).with_options(length_penalty=0.5)
    assert translator.translate(LINE, **options) == expected.translate(LINE)
    assert list(translator.stream([LINE], **options)) == expected.translate([LINE])
    assert translator.translate(LINE) == nmt.load(folder, "cpu", length_penalty=0.5).translate(LINE)
    pair = (LINE, "a dog")
    assert translator.score(pair, length_penalty=0.0) == nmt.load(folder, "cpu", length_penalty=0).score(pair)
    assert translator.translate(LINE, decoding={"beam_size": 4}, n_best=3).hypotheses[2]


def test_a_corpus_is_evaluated_as_the_command_does(folder: Path, tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"test.{side}").write_text("".join(f"{line}\n" for line in tiny.TEXT))
    (tmp_path / "test.align").write_text("0-0\n" * len(tiny.TEXT))
    locator = str(tmp_path / "test.{en,de}")
    printed = good(run_command("evaluate", folder, "--split", locator, "--bootstrap", "20", "--beam-size", "3"))
    result = nmt.evaluate(folder, locator, bootstrap=20, beam_size=3, device="cpu")
    assert str(result) + "\n" == printed
    assert "AER" in printed
    corpus = nmt.load_corpus(locator, source="en", target="de")
    translator = nmt.load(folder, "cpu")
    again = nmt.evaluate(translator, corpus, bootstrap=20, beam_size=3, baseline=tiny.TEXT)
    assert again.scores == result.scores
    assert again.translations == [item.text for item in translator.stream(tiny.TEXT, beam_size=3)]
    assert [item.system for item in again.comparisons] == ["baseline", "translator"] * 3
    assert (again.bleu.metric, again.chrf.metric, again.ter.metric) == ("BLEU", "chrF2", "TER")
    assert repr(again).startswith(f"Evaluation('translator', {locator!r}, BLEU ")
    for text, options, words in (
        (corpus, {"baseline": ["a"]}, "baseline: there are 1 translation, but 4 references"),
        ("test", {}, "names no data"),
        (corpus, {"tokenize": "x"}, "There is no tokenizer 'x'"),
        (corpus, {"metrics": ["rouge"]}, "There is no metric 'rouge'"),
        (corpus, {"tokenize": "13a", "published": True}, "published has its own tokenizer"),
    ):
        with pytest.raises(nmt.NmtError, match=words):
            nmt.evaluate(translator, text, **options)
