"""Models as one file: what is in it, that it translates as the folder does, and files from strangers."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

import nmt
from nmt.bundle.folder import RECIPE, WEIGHTS
from nmt.bundle.places import CARD, REQUIRED, find_model, model_name
from nmt.errors import DataError, UsageError
from nmt.runtime.cache import cache_folder
from nmt.serving.engine import Engine
from nmt.sharing.card import SCORES
from nmt.training.data_file import DATA
from nmt.training.log import METRICS
from tests.commands import bad, good
from tests.commands import nmt as run_nmt
from tests.robustness import tiny


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A cache folder of the test's own: of the shared one it has the kernels alone, not the models that others unpacked."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for kernels in cache.glob("native"):
        (folder / kernels.name).symlink_to(kernels)
    monkeypatch.setenv("NMT_CACHE", str(folder))
    return folder


def results(model: Path) -> list[tuple[str, float]]:
    return [(item.text, item.score) for item in nmt.load(model, device="cpu").translate(tiny.TEXT)]


def members(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def write_zip(path: Path, files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
    return path


def test_an_exported_model_translates_as_before(run: Path, tmp_path: Path) -> None:
    archive = nmt.export(run, tmp_path / "mine.zip", license="mit")
    files = members(archive)
    assert sorted(files) == sorted([*REQUIRED, DATA, METRICS, CARD])
    assert all(content == (run / name).read_bytes() for name, content in files.items() if name != CARD)
    assert "nmt translate mine.zip" in files[CARD].decode()
    folder = find_model(archive)
    assert find_model(Path(shutil.copy(archive, tmp_path / "copy.zip"))) == folder  # it is unpacked once
    shutil.move(run, tmp_path / "away")
    assert results(archive) == results(tmp_path / "away")


def test_the_same_model_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first = nmt.export(run, tmp_path / "mine.zip").read_bytes()
    for file in run.iterdir():
        file.touch()
        file.chmod(0o600)
    assert nmt.export(run, tmp_path / "a/mine.zip").read_bytes() == first
    assert nmt.export(tmp_path / "mine.zip", tmp_path / "a/again.zip").read_bytes() == first


def test_commands_take_a_zip_for_a_model(run: Path, tmp_path: Path) -> None:
    archive = tmp_path / "mine.zip"
    assert good(run_nmt("export", run, "-o", archive, "--license", "mit")) == f"{archive}\n"
    text = "".join(f"{line}\n" for line in tiny.TEXT).encode()
    expected = run_nmt("translate", run, "--format", "tsv", stdin=text).stdout
    assert run_nmt("translate", archive, "--format", "tsv", stdin=text).stdout == expected
    assert good(run_nmt("info", archive, "--json")) == good(run_nmt("info", run, "--json"))
    assert model_name(archive) == "mine"
    assert [model.name for model in Engine([archive, run]).models] == ["mine", "mine (2)"]


def test_no_file_is_replaced(run: Path, tmp_path: Path) -> None:
    archive = tmp_path / "mine.zip"
    archive.write_bytes(b"mine")
    expected = f"{archive} already exists: move it, or choose another name with -o."
    assert bad(run_nmt("export", run, "-o", archive), 2) == f"{expected}\n".rstrip()
    assert archive.read_bytes() == b"mine"
    with pytest.raises(UsageError, match=r"mine must end with \.zip, by which commands know"):
        nmt.export(run, tmp_path / "mine")
    with pytest.raises(UsageError, match="'CC BY' is no identifier of a license: write it as the hub does"):
        nmt.export(run, tmp_path / "other.zip", license="CC BY")
    assert not (tmp_path / "other.zip").exists()


# --- zips from strangers ------------------------------------------------------------------------------------------


@pytest.fixture
def files(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in REQUIRED}


def test_a_folder_that_was_zipped_by_hand_is_a_model_too(run: Path, files: dict[str, bytes], tmp_path: Path) -> None:
    others = {"../outside.txt": b"x", "/etc/x": b"x", "mine/../../x": b"x", "mine/state.safetensors": b"x"}
    model = {f"mine/{name}": content for name, content in files.items()}
    archive = write_zip(tmp_path / "hand.ZIP", model | others, zipfile.ZIP_DEFLATED)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert results(archive) == results(run)
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.name for path in written if "/cache/models/" in str(path)} == set(REQUIRED)
    assert {path for path in written if "/cache/" not in str(path)} == set()


def test_a_zip_that_is_no_model_is_a_sentence(files: dict[str, bytes], tmp_path: Path) -> None:
    bomb = {**files, WEIGHTS: bytes(50 * 2**20)}
    lacking = {name: content for name, content in files.items() if name != WEIGHTS}
    two = {**files, "other/recipe.yaml": b""}
    cases: list[tuple[dict[str, bytes], Any, str]] = [
        ({}, None, "is no model: it must hold one recipe.yaml, but has 0"),
        (two, None, "is no model: it must hold one recipe.yaml, but has 2"),
        (lacking, None, "is no model: it lacks weights.safetensors"),
        (bomb, None, "is refused: unpacked it would be over 20 times as large"),
        (files, lambda path: path.write_bytes(path.read_bytes()[:-500]), "Cannot unpack"),
        (
            files,
            lambda path: path.write_bytes(path.read_bytes().replace(b"name: tiny", b"name: tini", 1)),
            "Bad CRC-32",
        ),
    ]
    for number, (content, damage, sentence) in enumerate(cases):
        archive = write_zip(tmp_path / f"{number}.zip", content, zipfile.ZIP_DEFLATED if content is bomb else 0)
        if damage:
            damage(archive)
        with pytest.raises(DataError, match=sentence) as raised:
            nmt.load(archive)
        assert f"{number}.zip" in str(raised.value)
        assert list((cache_folder() / "models").glob("*")) == []


# --- what the card says -------------------------------------------------------------------------------------------


def card(run: Path, tmp_path: Path) -> str:
    (tmp_path / "mine.zip").unlink(missing_ok=True)
    return members(nmt.export(run, tmp_path / "mine.zip"))[CARD].decode()


def test_the_card_holds_what_is_known(run: Path, tmp_path: Path) -> None:
    text = card(run, tmp_path)
    assert "\n# tiny: English to German\n" in text
    assert r"| `multi30k/val` (validation, greedy) | BLEU 31.26 | `nrefs:1\|tok:13a\|version:2.6.0` |" in text
    assert "https://github.com/multi30k/dataset) | non-commercial research and education |" in text
    assert "hash 0123abcd |" in text
    metadata: Any = huggingface_hub.ModelCard(text).data
    assert (metadata.language, metadata.library_name, metadata.license) == (["en", "de"], "nmt", None)
    recipe = run / RECIPE
    yaml = recipe.read_text().replace("multi30k/train", "[hf:ann/talks/en-de:train, sample:train]")
    recipe.write_text(yaml.replace("pretrained: null", "pretrained: {model: hf:bob/base@v1}"))
    head = card(run, tmp_path).partition("\n---\n")[0]
    assert "datasets:\n- ann/talks\n" in head
    assert "base_model: bob/base\n" in head


def test_scores_of_test_texts_come_first(run: Path, tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"test.{side}").write_text("".join(f"{line}\n" for line in tiny.TEXT))
    ended = run_nmt("evaluate", run, "--split", "test.{en,de}", "--json", "--bootstrap", "10", cwd=tmp_path)
    (run / SCORES).write_text(good(ended))
    lines = [line for line in card(run, tmp_path).splitlines() if line.startswith("| `") and "license" not in line]
    assert [line.split("|")[2].split()[0] for line in lines[:4]] == ["BLEU", "chrF2", "TER", "BLEU"]
    assert lines[0].startswith("| `test.{en,de}` | BLEU ")
    for content in ("[]", "{}", '{"text": "x", "scores": [{}]}'):
        (run / SCORES).write_text(content)
        with pytest.raises(DataError, match=r"scores\.json is damaged: it must hold what `nmt evaluate MODEL --json`"):
            nmt.export(run, tmp_path / "other.zip")


def test_a_card_says_nothing_that_is_not_known_and_nothing_that_steers_its_reader(run: Path, tmp_path: Path) -> None:
    (run / DATA).write_text((run / DATA).read_text().replace('"0.1.0"', '"0.1\\u001b[2J\\n# x"'))
    (run / METRICS).unlink()
    recipe = run / RECIPE
    recipe.write_text(recipe.read_text().replace("source: en", "source: src").replace("multi30k/train", "data/a|`b`"))
    text = card(run, tmp_path)
    assert "trained with nmt 0.1\\x1b[2J # x." in text
    assert "\n# x" not in text
    assert "## Scores" not in text
    assert "language:\n- de\n" in text
    assert r"| `data/a\|'b'` | not known |" in text
