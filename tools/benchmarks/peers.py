"""Other toolkits for comparison, each installed from the package index into its own virtual environment."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from .measuring import MeasurementError, run, tell
from .text import Text


@dataclass(frozen=True)
class Trained:
    """A training run: the model, target tokens per second of each window, target tokens per update, peak memory in MiB."""

    model: Path
    rates: list[float]
    tokens_per_update: float | None
    peak: float


@dataclass(frozen=True)
class Decoded:
    """A translated file.

    Attributes:
        seconds: time without loading the model.
        total_seconds: time of the whole program.
        peak: peak memory in MiB.
        output: the file of translations.
    """

    seconds: float
    total_seconds: float
    peak: float
    output: Path


class Peer(Protocol):
    """A toolkit that trains and decodes the shared model."""

    name: str
    attentions: dict[str, str]
    """Its name for the attention of each family of variants."""

    batches: str
    """How it counts the tokens of a batch, as a phrase for the report."""

    def set_up(self) -> None: ...
    def model(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Path: ...
    def train(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Trained: ...
    def decode(self, model: Path, family: str, text: Text, source: Path, *, beam: int) -> Decoded: ...


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds one peer."""

    folder: Path
    installs: tuple[tuple[str, ...], ...]
    """Arguments of each `pip install`, in order; {torch} stands for the version that nmt runs with."""
    edits: tuple[tuple[str, str, str], ...]
    """File in site-packages, old text, new text: changes that the release needs to run on a newer torch."""

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def set_up(self) -> None:
        """Install the peer, unless an earlier call has finished doing so. Raises MeasurementError."""
        torch = version("torch").partition("+")[0]
        steps = [[word.format(torch=torch) for word in step] for step in self.installs]
        fingerprint = hashlib.sha256(json.dumps([steps, self.edits]).encode()).hexdigest()
        marker = self.folder / "set-up"
        if marker.is_file() and marker.read_text(encoding="utf-8") == fingerprint:
            return
        tell(f"setting up {self.folder} (once)")
        what = f"Setting up {self.folder}"
        if not self.program("pip").is_file():
            run([sys.executable, "-m", "venv", self.folder], threads=1, what=what)
        for step in steps:
            run([self.program("python"), "-m", "pip", "install", "--quiet", *step], threads=1, what=what)
        for edit in self.edits:
            self._edit(*edit)
        marker.write_text(fingerprint, encoding="utf-8")

    def _edit(self, file: str, old: str, new: str) -> None:
        path = next((self.folder / "lib").glob("python*/site-packages")) / file
        text = path.read_text(encoding="utf-8")
        if old in text:
            path.write_text(text.replace(old, new), encoding="utf-8")
        elif new not in text:
            raise MeasurementError(
                f"Setting up {self.folder}: {file} has no '{old}' to replace, so it is not the expected release: "
                "delete the folder and try again."
            )
