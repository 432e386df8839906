"""What a user would pick instead: other toolkits, set up from the package registry in virtual environments of their own."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from .measuring import Failed, run, tell
from .text import Text


@dataclass(frozen=True)
class Trained:
    """A run of training: the model, target pieces a second in each window, pieces a batch, peak memory in MiB."""

    model: Path
    rates: list[float]
    pieces_per_update: float | None
    peak: float


@dataclass(frozen=True)
class Decoded:
    """A file translated.

    Attributes:
        seconds: without loading the model.
        whole: seconds of the whole program.
        peak: memory in MiB.
        output: the translations.
    """

    seconds: float
    whole: float
    peak: float
    output: Path


class Peer(Protocol):
    """A toolkit that trains and decodes the shared model."""

    name: str
    attentions: dict[str, str]
    """What it calls the attention of each family of variants."""

    batches: str
    """How it counts the tokens of a batch."""

    def set_up(self) -> None: ...
    def model(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Path: ...
    def train(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Trained: ...
    def decode(self, model: Path, family: str, text: Text, source: Path, *, beam: int) -> Decoded: ...


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds one peer."""

    folder: Path
    installs: tuple[tuple[str, ...], ...]
    """Arguments of `pip install`, one after the other; {torch} is the version that nmt runs with."""
    edits: tuple[tuple[str, str, str], ...]
    """File in site-packages, old text, new text: what a release needs to run on a newer torch."""

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def set_up(self) -> None:
        """Install what is not there yet; a setup that was stopped goes on. Raises Failed."""
        torch = version("torch").partition("+")[0]
        steps = [[word.format(torch=torch) for word in step] for step in self.installs]
        wanted = hashlib.sha256(json.dumps([steps, self.edits]).encode()).hexdigest()
        done = self.folder / "set-up"
        if done.is_file() and done.read_text(encoding="utf-8") == wanted:
            return
        tell(f"setting up {self.folder} (once)")
        what = f"Setting up {self.folder}"
        if not self.program("pip").is_file():
            run([sys.executable, "-m", "venv", self.folder], threads=1, what=what)
        for step in steps:
            run([self.program("python"), "-m", "pip", "install", "--quiet", *step], threads=1, what=what)
        for edit in self.edits:
            self._edit(*edit)
        done.write_text(wanted, encoding="utf-8")

    def _edit(self, file: str, old: str, new: str) -> None:
        path = next((self.folder / "lib").glob("python*/site-packages")) / file
        text = path.read_text(encoding="utf-8")
        if old in text:
            path.write_text(text.replace(old, new), encoding="utf-8")
        elif new not in text:
            raise Failed(f"Setting up {self.folder}: {file} has no '{old}' to replace; it is not the release expected.")
