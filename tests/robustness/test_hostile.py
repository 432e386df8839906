"""Model folders from strangers: nothing in them is run, and what is false, huge or truncated is refused with one message.

That no module calls pickle, eval, `torch.load` or an unsafe YAML loader is checked by ruff (rules S)."""

from __future__ import annotations

import json
import os
import pickle
import resource
import struct
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from nmt.bundle.folder import Bundle, load_tensors, save_tensors
from nmt.errors import DataError
from nmt.recipe import load_recipe
from nmt.text.subwords import Subwords
from tests.commands import good, python
from tests.robustness import tiny

FILES = ("recipe.yaml", "source.model", "target.model", "weights.safetensors")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder_in(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    copied = tmp_path / "copied"
    copied.mkdir()
    for name in FILES:
        (copied / name).write_bytes((model / name).read_bytes())
    return copied


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        Bundle.load(folder)
    assert str(caught.value).isprintable()
    return str(caught.value)


def change_recipe(folder: Path, path: str, value: object) -> None:
    tree = yaml.safe_load((folder / "recipe.yaml").read_text())
    *sections, last = path.split(".")
    reduce(dict.__getitem__, sections, tree)[last] = value
    (folder / "recipe.yaml").write_text(yaml.safe_dump(tree))


# --- nothing is run ---------------------------------------------------------------------------------------------


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path, str]]:
        return Path.write_text, (self.mark, "run")


@pytest.mark.parametrize(("name", "kind"), [*zip(FILES, ["pickle", "torch"] * 2, strict=True)])
def test_a_pickle_in_the_place_of_a_file_is_not_run(folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    mark = tmp_path / "mark"
    if kind == "pickle":
        (folder / name).write_bytes(pickle.dumps(Trap(mark)))
    else:
        torch.save({"weight": Trap(mark)}, folder / name)
    assert str(folder / name) in refusal(folder)
    assert not mark.exists()
    pickle.loads(pickle.dumps(Trap(mark)))
    assert mark.exists(), "the trap does not work"


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system [touch MARK]", "!!python/name:os.system"])
def test_a_tag_in_a_recipe_is_not_followed(folder: Path, tmp_path: Path, tag: str) -> None:
    with (folder / "recipe.yaml").open("a") as file:
        file.write(f"extra: {tag.replace('MARK', str(tmp_path / 'mark'))}\n")
    assert "aliases (*name) and tags (!name) are not read here" in refusal(folder)
    assert not (tmp_path / "mark").exists()


# --- nothing else is opened -------------------------------------------------------------------------------------

_OPENED = """
import os, sys
opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event in ("open", "os.listdir", "os.scandir") else None)
from pathlib import Path
from nmt.bundle.folder import Bundle
from nmt.decoding.translator import Translator
del opened[:]
bundle = Bundle.load(Path(sys.argv[1]))
print([found.text for found in Translator([bundle]).translate(["a cat"])], file=sys.stderr)
print(*{path for path in opened if "/secret/" in path or sys.argv[1] in path}, sep="\\n")
"""


def test_paths_in_a_recipe_are_not_opened(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    secret = str(tmp_path / "secret" / "file")
    Path(secret).write_text("not to be read\n")
    for path in ("data.train", "data.valid", "data.test", "subwords.source_model", "subwords.target_model"):
        change_recipe(folder, path, secret)
    change_recipe(folder, "training.guided_alignment", {"links": secret})
    opened = set(good(python(_OPENED, folder)).split())
    assert opened == {str(folder / name) for name in FILES}


def test_a_base_is_not_followed_in_a_model_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("seed: 7\n")
    with (folder / "recipe.yaml").open("a") as file:
        file.write("base: ../base.yaml\n")
    assert "unknown key 'base'" in refusal(folder)
    assert load_recipe(folder / "recipe.yaml").seed == tiny.bundle().recipe.seed  # but in a recipe to train by


@pytest.mark.parametrize("name", FILES)
def test_a_symbolic_link_is_followed_and_what_is_no_plain_file_not_waited_for(folder: Path, name: str) -> None:
    """Hubs of models lay their folders out by links; what one leads to is checked like any other file."""
    path, moved = folder / name, folder / "moved"
    path.rename(moved)
    path.symlink_to(moved)
    Bundle.load(folder)
    moved.unlink()  # the link leads nowhere
    assert f"lacks {name}" in refusal(folder)
    for make in (lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"), path.mkdir):
        path.unlink()
        make()
        assert f"lacks {name}" in refusal(folder)


# --- nothing is too large ---------------------------------------------------------------------------------------


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A gigabyte more than what is used now; beyond it allocations fail."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**30, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.embedding", 100),
        ("model.encoder.hidden", 2**16),
        ("model.encoder.layers", 10**9),
        ("model.attention.score.size", 10**30),
        ("model.decoder.hidden", -1),
        ("model.decoder.layers", 2.5),
        ("model.decoder.readout.size", "huge"),
        ("model.attention.heads", 10**30),
        ("model.attention.window", {"kind": "local-p", "half_width": 10**30}),
        ("model.attention.window", {"kind": "local-m", "ratio": 1e300}),
        ("decoding.beam_size", 10**9),
        ("decoding.max_ratio", float("inf")),
        ("decoding.length_penalty", 1e300),
        ("decoding.coverage_penalty", float("nan")),
        ("seed", 10**30),
    ],
)
def test_settings_are_checked_before_memory_or_time_is_taken(folder: Path, path: str, value: object) -> None:
    change_recipe(folder, path, value)
    message = refusal(folder)
    assert str(folder) in message
    assert path in message or "does not belong to this recipe" in message


def safetensors(header: object, body: bytes = b"") -> bytes:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + body


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 8,
        struct.pack("<Q", 2**40) + b"{}",
        safetensors(b"[" * 100_000),
        safetensors({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}, b"1234"),
        safetensors({"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}, b"1234"),
        safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"1234"),
        safetensors({"a": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}}, b"12345678"),
        safetensors({"__metadata__": {"nmt_format": "9" * 5000}}),
    ],
)
def test_tensor_files_that_lie_are_refused(folder: Path, content: bytes) -> None:
    (folder / "weights.safetensors").write_bytes(content)
    assert str(folder / "weights.safetensors") in refusal(folder)
    with pytest.raises(DataError):
        load_tensors(folder / "weights.safetensors")


@pytest.mark.usefixtures("little_memory")
def test_a_file_larger_than_the_memory_is_not_read(folder: Path) -> None:
    """Holes take no disk, but would take memory."""
    header = {"a": {"dtype": "F32", "shape": [2**38], "data_offsets": [0, 2**40]}}
    for name, start in (
        ("weights.safetensors", safetensors(header)),
        ("source.model", b""),
        ("recipe.yaml", b"a: b\n"),
    ):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(start)
        os.truncate(folder / name, len(start) + 2**40)
        assert str(folder) in refusal(folder)
        (folder / name).write_bytes(whole)
    Bundle.load(folder)


# --- nothing contradicts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_weights_that_are_no_numbers_are_refused(folder: Path, value: float) -> None:
    path = folder / "weights.safetensors"
    weights = load_file(path)
    weights["output.bias"][3] = value
    save_tensors(weights, path)
    assert refusal(folder) == f"{path} is damaged: output.bias holds values that are infinite or not numbers."


@pytest.mark.parametrize("kind", [torch.int32, torch.bool, torch.float8_e4m3fn])
def test_weights_of_another_type_are_refused(folder: Path, kind: torch.dtype) -> None:
    path = folder / "weights.safetensors"
    weights = load_file(path)
    save_tensors({**weights, "output.bias": weights["output.bias"].to(kind)}, path)
    assert "weights are F64, F32, F16, BF16" in refusal(folder)


def test_a_vocabulary_of_another_size_is_refused(folder: Path) -> None:
    Subwords.train(tiny.TEXT, kind="char", size=18, byte_fallback=False).save(folder / "target.model")
    assert "does not belong to this recipe: " in refusal(folder)
    change_recipe(folder, "model.tie", "all")  # target tokens would be looked up beyond the end of the embeddings
    assert "source.model and target.model must be the same" in refusal(folder)


# --- SentencePiece models that are valid protocol buffers, but not of this world ---------------------------------


def field(number: int, value: bytes | float) -> bytes:
    match value:
        case bytes():
            return varint(number << 3 | 2) + varint(len(value)) + value
        case int():
            return varint(number << 3) + varint(value)
        case float():
            return varint(number << 3 | 5) + struct.pack("<f", value)


def varint(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])


def subword_model(*tokens: tuple[bytes, float, int], trainer: bytes = b"", normalizer: bytes = b"") -> bytes:
    control = [(b"<pad>", 0.0, 3), (b"<unk>", 0.0, 2), (b"<s>", 0.0, 3), (b"</s>", 0.0, 3)]
    special = [*control, ("▁".encode(), -1.0, 1), (b"a", -2.0, 1)]
    listed = (
        field(1, field(1, token) + field(2, score) + field(3, kind)) for token, score, kind in [*special, *tokens]
    )
    ids = b"".join(field(number, value) for number, value in ((3, 1), (40, 1), (41, 2), (42, 3), (43, 0)))
    return b"".join(listed) + field(2, ids + trainer) + field(3, normalizer)


STRANGE = {
    "nulls": b"\0" * 100,
    "a piece longer than the file": b"\x0a\xff\xff\xff\xff\x0f" + b"x" * 50,
    "empty pieces alone": b"\x0a\x02\x0a\x00" * 1000,
    "a piece of half a megabyte": subword_model((b"x" * 500_000, -1.0, 1)),
    "an empty piece": subword_model((b"", -1.0, 1)),
    "a piece twice": subword_model((b"a", -1.0, 1)),
    "a piece with a null": subword_model((b"a\0", -1.0, 1)),
    "a piece that is no UTF-8": subword_model((b"\xff\xfe", -1.0, 1)),
    "a control piece that is no UTF-8": subword_model((b"\xff\xfe", -1.0, 3)),
    "a score that is no number": subword_model((b"ab", float("nan"), 1)),
    "a byte that is none": subword_model((b"<0xZZ>", -1.0, 6)),
    "some bytes": subword_model((b"<0x41>", -1.0, 6)),
    "byte fallback without bytes": subword_model(trainer=field(35, 1)),
    "an unknown mark that is no UTF-8": subword_model(trainer=field(44, b"\xff\xfe")),
    "a character map that leads outside": subword_model(normalizer=field(2, struct.pack("<I", 1024) + b"\x7f" * 1024)),
    "a character map longer than itself": subword_model(normalizer=field(2, struct.pack("<I", 2**31) + b"\0" * 8)),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_subword_models_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "model").write_bytes(STRANGE[name])
    with pytest.raises(DataError, match=f"^{tmp_path}/model is not a SentencePiece model"):
        Subwords.load(tmp_path / "model")
