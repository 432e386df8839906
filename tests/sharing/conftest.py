"""A run folder to share, and a hub to share it on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants, file_download

from tests.robustness import tiny
from tests.sharing.hub import TOKEN, Hub, serving

DATA = """{"nmt": "0.1.0",
"train": {"locator": "multi30k/train", "lines": 29000, "fingerprint": "0123abcd", "kept": 28990, "removed": {"duplicates": 10}},
"valid": {"locator": "multi30k/val", "lines": 1014, "fingerprint": "4567cdef", "kept": 1014, "removed": {}}}
"""
VALIDATION = (
    '{"kind": "valid", "epoch": 3, "update": 9, "seconds": 7.5, "loss": 1.5, "perplexity": 4.5, "bleu": 31.256, '
    '"signatures": {"bleu": "nrefs:1|tok:13a|version:2.6.0"}, "best": true}\n'
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder as `nmt train` leaves it: a model, its log, the state of its training and more."""
    folder = tmp_path / "runs/mine"
    tiny.bundle().save(folder)
    recipe = folder / "recipe.yaml"
    text = (
        recipe.read_text().replace("train: '-'", "train: multi30k/train").replace("valid: '-'", "valid: multi30k/val")
    )
    recipe.write_text(text)
    (folder / "data.json").write_text(DATA)
    (folder / "metrics.jsonl").write_text(VALIDATION)
    (folder / "state.safetensors").write_bytes(b"the state of the optimizer")
    (folder / "learning-curve.png").write_bytes(b"a picture")
    (folder / "notes.txt").write_text("mine")
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub on this machine, which huggingface_hub uses with a cache of its own."""
    with serving() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
        for module in (constants, file_download):  # early versions have a copy
            monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # the stand-in speaks the protocol without it
        monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server
