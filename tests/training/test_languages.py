"""Many languages in one model: a tag says which one to write, each is validated, and a user never sees the tag."""

from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.data.locators import load_text
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from nmt.recipe import Recipe
from nmt.training.log import read_validations
from nmt.training.preparation import TrainingText
from nmt.training.trainer import train
from tests.commands import good
from tests.commands import nmt as command
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

TARGETS = ("rev", "cpy")


def languages(folder: Path, **sections: Any) -> Recipe:
    """A toy recipe for letters to the reversed letters (rev) and to the letters themselves (cpy)."""
    entries = {
        split: [{"corpus": f"{folder}/{split}", "to": code} for code in TARGETS] for split in ("train", "valid", "test")
    }
    data = {"source": "src", "target": "rev", **entries, **sections.pop("data", {})}
    subwords = {"kind": "word", "size": 14, "byte_fallback": False}
    return toy_recipe(folder, data=data, **{"subwords": subwords, **sections})


def write_languages(folder: Path, pairs: int = 1500) -> None:
    """Write train, valid and test.{src,rev,cpy}."""
    write_reversal(folder, pairs=pairs)
    for split in ("train", "valid"):
        (folder / f"{split}.tgt").rename(folder / f"{split}.rev")
        (folder / f"{split}.cpy").write_text((folder / f"{split}.src").read_text())
    for code in ("src", *TARGETS):
        (folder / f"test.{code}").write_text((folder / f"valid.{code}").read_text())


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("languages")
    write_languages(folder)
    return folder


@pytest.fixture(scope="module")
def run(corpora: Path) -> Path:
    """A model of both languages."""
    recipe = languages(corpora, training={"epochs": 4, "validation": {"metrics": ["chrf"]}})
    return train(recipe, corpora / "run", device="cpu", quiet=True).folder


# --- text -------------------------------------------------------------------------------------------------------


def test_every_text_has_the_tag_of_its_target_language_before_other_tags(corpora: Path) -> None:
    back = {"corpus": f"{corpora}/train", "to": "cpy", "tag": "<BT>"}
    plain = {"corpus": f"{corpora}/train"}
    recipe = languages(corpora, data={"train": [back, plain]})
    text, line = TrainingText.load(recipe), (corpora / "train.src").read_text().splitlines()[0]
    assert text.train.source[0] == f"<2cpy> <BT> {line}"
    assert text.train.source[1500] == f"<2rev> {line}"
    assert text.train.untagged.source[1500] == line
    source, _ = text.subwords(languages(corpora, subwords={"kind": "word", "size": 15, "byte_fallback": False}))
    assert source.tokens(source.encode(text.train.source[0])[:2]) == ["▁<2cpy>", "▁<BT>"]
    one = load_text(recipe.data, f"{corpora}/valid")
    assert one.source[0].startswith("<2rev> ")


# --- training ---------------------------------------------------------------------------------------------------


def test_each_language_is_validated_and_the_mean_selects(run: Path) -> None:
    records = read_validations(run)
    for record in records:
        figures = record["languages"]
        assert list(figures) == ["src-rev", "src-cpy"]
        for name in ("chrf", "loss"):
            assert record[name] == pytest.approx(sum(language[name] for language in figures.values()) / 2)
    best = max(records, key=lambda record: record["chrf"])
    assert next(record["best"] for record in records if record["update"] == best["update"])
    for figures in best["languages"].values():  # without the tag nobody could tell which one is wanted
        assert figures["chrf"] > 60


# --- translation ------------------------------------------------------------------------------------------------

LINE = "a b c d"


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return nmt.load(run, "cpu")


def test_the_language_to_translate_to_is_named(translator: Translator) -> None:
    assert translator.translate(LINE, to="rev").text == "d c b a"
    assert translator.translate([LINE], to="cpy")[0].text == LINE
    assert translator.with_options(to="REV").translate(LINE).text == "d c b a"
    right, wrong = (translator.score((LINE, "d c b a"), to=to).score for to in ("rev", "cpy"))
    assert right > wrong


@pytest.mark.parametrize("call", ["translate", "align"])
def test_one_sentence_names_the_languages_where_none_is_chosen(translator: Translator, call: str) -> None:
    line = LINE if call == "translate" else (LINE, LINE)
    with pytest.raises(UsageError, match="translates to rev and cpy: say to which one, as in --to rev"):
        getattr(translator, call)([line])
    with pytest.raises(UsageError, match="translates to rev and cpy, not to fr"):
        getattr(translator, call)([line], to="fr")


def test_words_links_and_alignments_have_no_tag(translator: Translator) -> None:
    translation = translator.translate(LINE, to="rev", posterior=True, n_best=2, beam_size=2)
    assert translation.source_words == ("a", "b", "c", "d")
    assert translation.token_alignment().source == ("▁a", "▁b", "▁c", "▁d")
    for hypothesis in translation.hypotheses:
        assert hypothesis.alignment.shape == (len(hypothesis.ids) + int(hypothesis.finished), 5)
        assert "<2" not in hypothesis.text
    forced = translator.align((LINE, "d c b a"), to="rev")
    assert forced.alignment.shape == (4, 4)
    assert forced.links == {(0, 3), (1, 2), (2, 1), (3, 0)}


# --- commands ---------------------------------------------------------------------------------------------------


def test_evaluate_prints_a_row_per_language_and_the_mean(run: Path, corpora: Path) -> None:
    output = good(command("evaluate", run, "--bootstrap", "0", "-q"))
    assert [line.split()[0] for line in output.splitlines()[1:4]] == ["src-rev", "src-cpy", "mean"]
    result = nmt.evaluate(run, bootstrap=0, device="cpu")
    rows = [text.chrf.score for text in result.texts]
    assert result.chrf.score == pytest.approx(sum(rows) / 2)
    assert min(rows) > 60
    one = nmt.evaluate(run, bootstrap=0, device="cpu", to="cpy")
    assert one.chrf.score == pytest.approx(rows[1])
    assert not one.texts
    with pytest.raises(UsageError, match="say to which one"):
        nmt.evaluate(run, f"{corpora}/train[:50]", bootstrap=0, device="cpu")
