"""A model folder: what was saved is what is loaded, and what is wrong with one is said in a sentence."""

import hashlib
import random
import re
import resource
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from nmt.bundle.folder import Bundle, load_tensors, save_tensors, weights_of
from nmt.data.batching import make_batch
from nmt.errors import DataError
from nmt.recipe import Recipe, parse_recipe
from nmt.text.subwords import Subwords

TEXT = ["the dog sees a cat", "a cat sleeps", "the old dog sleeps here", "a dog and a cat"] * 3
FILES = ("recipe.yaml", "source.model", "target.model", "weights.safetensors")


def small_recipe(**model: object) -> Recipe:
    tree = {
        "name": "small",
        "data": {"source": "en", "target": "de", "train": "x", "valid": "x"},
        "model": {
            "embedding": 8,
            "encoder": {"hidden": 8},
            "attention": {"score": {"kind": "additive", "size": 8}},
            "decoder": {"hidden": 12, "readout": {"kind": "maxout", "size": 8}},
            **model,
        },
    }
    return parse_recipe(tree, "the test's recipe")


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)


@pytest.fixture(scope="module")
def bundle(subwords: Subwords) -> Bundle:
    return Bundle.fresh(small_recipe(), subwords, subwords)


@pytest.fixture
def folder(bundle: Bundle, tmp_path: Path) -> Path:
    bundle.save(tmp_path / "model")
    return tmp_path / "model"


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        Bundle.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_loaded_model_computes_the_same_logits(bundle: Bundle, folder: Path, subwords: Subwords) -> None:
    loaded = Bundle.load(folder)
    batch = make_batch([(subwords.encode(line), subwords.encode(line)) for line in TEXT[:3]])
    bundle.model.eval()
    with torch.inference_mode():
        assert torch.equal(loaded.model(batch).token_log_probs, bundle.model(batch).token_log_probs)
    assert not loaded.model.training
    assert loaded.recipe == bundle.recipe
    assert loaded.source.fingerprint == subwords.fingerprint
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_first_weights_depend_on_the_seed_alone(subwords: Subwords) -> None:
    torch.rand(3)
    one, other = (Bundle.fresh(small_recipe(), subwords, subwords) for _ in range(2))
    assert all(map(torch.equal, weights_of(one.model).values(), weights_of(other.model).values()))


def test_a_missing_folder_and_one_that_is_no_model(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere") == f"There is no model folder {tmp_path / 'nowhere'}."
    assert refusal(tmp_path).startswith(f"{tmp_path} is no model folder: it lacks {', '.join(FILES)}")
    (tmp_path / "file").write_text("x")
    assert refusal(tmp_path / "file") == f"There is no model folder {tmp_path / 'file'}."


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_damaged_file_is_named(folder: Path, name: str) -> None:
    path = folder / name
    whole, middle = path.read_bytes(), path.stat().st_size // 2
    changed = bytearray(whole)
    changed[middle : middle + 200] = random.Random(1).randbytes(200)
    half = whole[:middle] + (b"\n{" if name == "recipe.yaml" else b"")
    for content in (b"", b"{garbage", half, changed):
        path.write_bytes(content)
        assert str(folder) in refusal(folder)
    path.unlink()
    assert f"{folder} is no model folder: it lacks {name}" in refusal(folder)


def test_weights_of_another_shape_are_refused(folder: Path, subwords: Subwords, tmp_path: Path) -> None:
    wider = small_recipe(encoder={"hidden": 16})
    Bundle.fresh(wider, subwords, subwords).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "weights.safetensors", folder)
    assert "does not belong to this recipe" in refusal(folder)
    assert "but should be" in refusal(folder)


def test_weights_with_other_names_are_refused(folder: Path) -> None:
    tensors = load_tensors(folder / "weights.safetensors")
    save_tensors({**tensors, "extra": torch.zeros(1)}, folder / "weights.safetensors")
    assert "extra is in only one of them" in refusal(folder)


def test_weights_under_the_names_of_earlier_versions_are_read(subwords: Subwords, tmp_path: Path) -> None:
    attention = {"score": {"kind": "general"}, "heads": 2}
    decoder = {"order": {"kind": "attend-then-update", "conditional": True}}
    bundle = Bundle.fresh(small_recipe(attention=attention, decoder=decoder), subwords, subwords)
    bundle.save(tmp_path)
    weights = weights_of(bundle.model)
    earlier = {
        name.replace("query_recurrence", "asking").replace("head_attention", "each"): value
        for name, value in weights.items()
    }
    assert len(earlier.keys() - weights.keys()) > 4
    save_tensors(earlier, tmp_path / "weights.safetensors")
    again = weights_of(Bundle.load(tmp_path).model)
    assert all(torch.equal(value, again[name]) for name, value in weights.items())


def test_two_tensors_that_changed_places_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_tensors({"one": torch.ones(3), "two": torch.zeros(3)}, path)
    path.write_bytes(
        path.read_bytes().replace(b'"one"', b'"six"').replace(b'"two"', b'"one"').replace(b'"six"', b'"two"')
    )
    with pytest.raises(DataError, match="is damaged"):
        load_tensors(path)


def test_the_digest_is_that_of_the_file_and_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors = {"one": torch.arange(3), "two": torch.ones(2, 2, dtype=torch.bfloat16)}
    save_tensors(tensors, path)
    content = path.read_bytes()
    [stamp] = re.findall(rb'"2 ([0-9a-f]{64})"', content)
    assert hashlib.sha256(content.replace(stamp, b"0" * 64)).hexdigest().encode() == stamp
    assert all(torch.equal(value, tensors[name]) for name, value in load_tensors(path).items())
    save_file(tensors, path, {"nmt_format": "2"})
    with pytest.raises(DataError, match="is damaged"):
        load_tensors(path)


def test_a_full_disk_while_saving_leaves_the_old_model(bundle: Bundle, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limits[1]))  # the nearest thing to a full disk without one
    try:
        with pytest.raises(DataError, match=r"Cannot write .*weights\.safetensors"):
            bundle.save(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
