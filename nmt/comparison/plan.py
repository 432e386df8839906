"""The recipes of a comparison, and the layout of its folder.

recipes/NAME.yaml       the complete effective recipe
runs/NAME/              the run folder, which is also a model folder
logs/NAME.log           the output of the training process
rows/NAME.json          the figures, with a key of what they depend on
translations/NAME.txt   the translations
.comparison             marks the folder as made by `nmt compare`
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.errors import DataError, UsageError
from nmt.recipe import Recipe, changed_keys, dump_recipe, find_recipe, leaves, shipped_recipes
from nmt.runtime.files import write_content
from nmt.training.auto import load_recipe
from nmt.training.lock import lock_file, need_locks

_MARK = ".comparison"
TRAINED = "trained.json"
"""Written into a run folder when training has ended; says on which machine."""
_SAME = ("source", "target", "train", "valid", "test")


@dataclass(frozen=True)
class Candidate:
    """One recipe of a comparison, with the paths of its files."""

    recipe: Recipe
    folder: Path

    @property
    def name(self) -> str:
        """The name of the recipe, unique in a comparison."""
        return self.recipe.name

    @property
    def recipe_file(self) -> Path:
        """The complete effective recipe."""
        return self.folder / "recipes" / f"{self.name}.yaml"

    @property
    def run(self) -> Path:
        """The run folder."""
        return self.folder / "runs" / self.name

    @property
    def marker(self) -> Path:
        """Written when training has ended."""
        return self.run / TRAINED

    @property
    def log(self) -> Path:
        """The output of the training process."""
        return self.folder / "logs" / f"{self.name}.log"

    @property
    def row(self) -> Path:
        """The figures."""
        return self.folder / "rows" / f"{self.name}.json"

    @property
    def translations(self) -> Path:
        """The translations, one per line."""
        return self.folder / "translations" / f"{self.name}.txt"


def find_candidates(names: Iterable[str], overrides: Sequence[str], folder: Path) -> list[Candidate]:
    """Load recipes by file, folder, shipped name or pattern, in this order, with the same overrides.

    Raises:
        UsageError: a recipe does not exist, two have the same name, or their data differ.
    """
    paths = [path for name in names for path in _recipe_files(name)]
    candidates = [Candidate(load_recipe(path, overrides), folder) for path in dict.fromkeys(paths)]
    for number, (candidate, path) in enumerate(zip(candidates, dict.fromkeys(paths), strict=True)):
        if candidate.name in {earlier.name for earlier in candidates[:number]}:
            raise UsageError(
                f"{path}: another recipe is named '{candidate.name}' too; each row needs a name of its own."
            )
        _check_data(candidates[0].recipe, candidate.recipe)
    return candidates


def _recipe_files(name: str) -> list[Path]:
    """The recipe files of one argument: a file, a folder, a shipped recipe or a pattern of shipped recipes."""
    if Path(name).is_dir():
        files = sorted(Path(name).glob("*.yaml"))
    else:
        pattern = name.removesuffix(".yaml").removeprefix("recipes/").rstrip("/")
        shipped = sorted(shipped_recipes().items())
        files = [path for recipe, path in shipped if fnmatch(recipe, pattern) or fnmatch(recipe, f"{pattern}/*")]
    return files if files and not Path(name).is_file() else [find_recipe(name)]


def _check_data(first: Recipe, other: Recipe) -> None:
    """Raise UsageError if two recipes are not for the same text."""
    one, two = first.data.model_dump(), other.data.model_dump()
    if different := [f"data.{key}" for key in _SAME if one[key] != two[key]]:
        raise UsageError(
            f"{first.name} and {other.name} differ in {', '.join(different)}, so their figures would not compare: "
            "give recipes of the same data, or set it with --set."
        )


def check_folder(candidates: Iterable[Candidate]) -> None:
    """Raise UsageError if a run in the folder was made with a different recipe."""
    for candidate in candidates:
        check_same_recipe(candidate.recipe, candidate.run)


def check_same_recipe(recipe: Recipe, run: Path) -> None:
    """Raise UsageError if a run folder was made with a different recipe."""
    earlier = run / "recipe.yaml"
    changed = changed_keys(recipe, earlier) if earlier.is_file() else []
    if changed:
        raise UsageError(
            f"{run} was trained with another {', '.join(changed)}: "
            "choose another --out, or remove that folder to train it again."
        )


def write_recipes(candidates: Iterable[Candidate]) -> None:
    """Save the recipes to train, so that later edits of their files have no effect. Raises DataError."""
    for candidate in candidates:
        write_content(candidate.recipe_file, dump_recipe(candidate.recipe))


def mark_trained(run: Path, machine: Mapping[str, Any]) -> None:
    """Record in a run folder that training has ended, and on which machine. Raises DataError."""
    write_content(run / TRAINED, json.dumps({"nmt": __version__, **machine}, indent=1) + "\n")


def settings(recipe: Recipe) -> dict[str, Any]:
    """The recipe as dotted keys and plain values, without what others reported and why settings were chosen."""
    return dict(leaves(json.loads(recipe.model_dump_json(exclude={"reported", "chosen"}))))


def _check_ours(folder: Path) -> None:
    """Raise UsageError if the folder has files and was not made by `nmt compare`."""
    others = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if others and _MARK not in others:
        raise UsageError(f"{folder} holds {others[0]} and was not made by nmt compare: choose a new folder with --out.")


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Lock the folder; yields the descriptor that holds the lock.

    Training processes inherit it, so that they keep the lock until they end, even if this process is killed.

    Raises:
        UsageError: another comparison, or a training it started, holds the lock, or the folder was not made by `nmt compare`.
        DataError: the folder cannot be created.
    """
    need_locks()
    _check_ours(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _MARK).touch()
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DataError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    try:
        lock_file(descriptor, folder)
        yield descriptor
    except BlockingIOError:
        raise UsageError(f"Another comparison, or a training that it started, is at work in {folder}.") from None
    finally:
        os.close(descriptor)
