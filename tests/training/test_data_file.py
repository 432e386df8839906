"""data.json says which text a model was trained on, and a folder without one is none the worse."""

import json
from pathlib import Path

import pytest

from nmt import __version__
from nmt.cli.inspecting import info
from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_corpus
from nmt.recipe import DecodingConfig, load_recipe
from nmt.training.preparation import TrainingText
from nmt.training.trainer import train
from tests.training.toy import recipe


@pytest.fixture(scope="module")
def run(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder whose text lost pairs to two rules."""
    data = recipe(small).data.model_dump() | {"filters": {"max_length": 6, "copies": False}}
    toy = recipe(small, training={"epochs": 1, "validation": {"keep_best": 2}}, data=data)
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(toy, folder, device="cpu", quiet=True)
    return folder


def test_a_run_describes_its_text(small: Path, run: Path) -> None:
    text, valid = (load_corpus(f"{small}/{name}", source="src", target="tgt") for name in ("train", "valid"))
    lengths = [len(line.split()) for line in text.source]
    copies = sum(source == target and len(source.split()) <= 6 for source, target in text.pairs())
    too_long = sum(length > 6 for length in lengths)
    assert min(copies, too_long) > 0
    assert json.loads((run / "data.json").read_text()) == {
        "nmt": __version__,
        "train": {
            "locator": f"{small}/train.{{src,tgt}}",
            "lines": 200,
            "fingerprint": text.fingerprint,
            "kept": 200 - too_long - copies,
            "removed": {"too_long": too_long, "copy": copies},
        },
        "valid": {
            "locator": f"{small}/valid",
            "lines": 10,
            "fingerprint": valid.fingerprint,
            "kept": 10,
            "removed": {},
        },
    }


def test_decoding_is_as_the_lines_of_the_text_are(run: Path) -> None:
    decoding = load_recipe(run / "recipe.yaml").decoding
    assert (decoding.split_sentences, decoding.keep_numbers) == (True, True)
    for line, others, expected in (
        ("A dog barks. It runs.", 9, (False, True)),
        ("A dog barks. It runs.", 10, (True, True)),
        ("12 7 9", 2, (True, True)),
        ("12 7 9", 1, (True, False)),
    ):
        source, target = collect([[[line] + ["A dog runs."] * others] * 2], 2)
        text = ParallelCorpus(source, target, "text", ("en", "de"))
        found = TrainingText(text, text).decoding(DecodingConfig(), "en")
        assert (found.split_sentences, found.keep_numbers) == expected
        given = DecodingConfig(split_sentences=True, keep_numbers=True)
        assert TrainingText(text, text).decoding(given, "en") == given


def test_info_shows_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info(run)
    shown = " ".join(capsys.readouterr().out.split())
    assert "longer than 6 tokens" in shown
    assert "validation text 10 pairs; hash " in shown
    info(run, as_json=True)
    assert json.loads(capsys.readouterr().out)["data"] == json.loads((run / "data.json").read_text())
