"""A run folder to share, and a hub to share it on."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import CommitOperationAdd

from tests.robustness import tiny

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


@dataclass
class Repository:
    """A model on the hub: its versions, each with all its files."""

    private: bool = False
    commits: list[dict[str, bytes]] = field(default_factory=lambda: [{".gitattributes": b""}])

    def add(self, files: dict[str, bytes]) -> None:
        """Commit more or other files."""
        self.commits.append({**self.commits[-1], **files})


@dataclass
class Hub:
    """What nmt calls of huggingface_hub, over repositories in memory."""

    folder: Path
    repositories: dict[str, Repository] = field(default_factory=dict)
    error: Exception | None = None
    """Raised by every call."""

    endpoint = "https://hub"

    def _find(self, name: str) -> Repository:
        if self.error is not None:
            raise self.error
        if name not in self.repositories:
            raise OSError(f"404 Client Error.\n\nRepository Not Found for {name}.")
        return self.repositories[name]

    def create_repo(self, name: str, *, private: bool | None, exist_ok: bool) -> None:
        assert exist_ok
        if self.error is None:
            self.repositories.setdefault(name, Repository(private=bool(private)))

    def model_info(self, name: str) -> SimpleNamespace:
        repository = self._find(name)
        siblings = [SimpleNamespace(rfilename=path) for path in repository.commits[-1]]
        return SimpleNamespace(sha=f"{len(repository.commits)}", private=repository.private, siblings=siblings)

    def hf_hub_download(self, name: str, path: str, *, revision: str) -> str:
        return f"{self.snapshot_download(name, revision=revision, allow_patterns=[path])}/{path}"

    def create_commit(
        self, name: str, operations: list[CommitOperationAdd], *, commit_message: str, parent_commit: str
    ) -> SimpleNamespace:
        repository, files = self._find(name), {}
        assert commit_message
        assert parent_commit == str(len(repository.commits))
        for operation in operations:
            with operation.as_file() as file:
                files[operation.path_in_repo] = file.read()
        if {**repository.commits[-1], **files} != repository.commits[-1]:
            repository.add(files)
        return SimpleNamespace(oid=str(len(repository.commits)))

    def snapshot_download(self, name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        commits = self._find(name).commits
        version = len(commits) if revision is None else int(revision)
        folder = self.folder / name / str(version)
        folder.mkdir(parents=True, exist_ok=True)
        for path in commits[version - 1].keys() & set(allow_patterns):
            (folder / path).write_bytes(commits[version - 1][path])
        return str(folder)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A hub in memory; what it does not have of the calls' arguments, huggingface_hub refuses too."""
    hub = Hub(tmp_path / "hub-cache")
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda library_name, library_version: hub)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    return hub
