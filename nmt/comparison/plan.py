"""The recipes of a comparison, and the layout of its folder.

recipes/NAME.yaml       the complete effective recipe
runs/NAME/              the run folder, which is also a model folder
logs/NAME.log           the output of the training process
translations/NAME.txt   the translations
.comparison             the lock of the folder
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from nmt.errors import UsageError
from nmt.recipe import Recipe, changed_keys, find_recipe, shipped_recipes
from nmt.training.auto import load_recipe

TRAINED = "trained"
"""An empty file, written into a run folder when training has ended."""
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
    def log(self) -> Path:
        """The output of the training process."""
        return self.folder / "logs" / f"{self.name}.log"

    @property
    def translations(self) -> Path:
        """The translations, one per line."""
        return self.folder / "translations" / f"{self.name}.txt"


def find_candidates(names: Iterable[str], overrides: Sequence[str], folder: Path) -> list[Candidate]:
    """Load recipes by file, folder, shipped name or pattern, in this order, with the same overrides.

    Raises:
        UsageError: a recipe does not exist, two have the same name, or their data differ.
    """
    candidates: dict[str, Candidate] = {}
    for path in dict.fromkeys(path for name in names for path in _recipe_files(name)):
        candidate = Candidate(load_recipe(path, overrides), folder)
        if candidate.name in candidates:
            raise UsageError(
                f"{path}: another recipe is named '{candidate.name}' too; each row needs a name of its own."
            )
        candidates[candidate.name] = candidate
        first = next(iter(candidates.values())).recipe
        if different := [
            f"data.{key}" for key in _SAME if getattr(first.data, key) != getattr(candidate.recipe.data, key)
        ]:
            raise UsageError(
                f"{first.name} and {candidate.name} differ in {', '.join(different)}, so their figures would not compare: "
                "give recipes of the same data, or set it with --set."
            )
    return list(candidates.values())


def _recipe_files(name: str) -> list[Path]:
    """The recipe files of one argument: a file, a folder, a shipped recipe or a pattern of shipped recipes."""
    if Path(name).is_dir():
        files = sorted(Path(name).glob("*.yaml"))
    else:
        pattern = name.removesuffix(".yaml").removeprefix("recipes/").rstrip("/")
        shipped = sorted(shipped_recipes().items())
        files = [path for recipe, path in shipped if _matches(recipe, pattern) or _matches(recipe, f"{pattern}/*")]
    return files if files and not Path(name).is_file() else [find_recipe(name)]


def _matches(recipe: str, pattern: str) -> bool:
    """Whether a name matches a pattern whose `*` stands for one folder or name."""
    return recipe.count("/") == pattern.count("/") and fnmatch(recipe, pattern)


def check_same_recipe(recipe: Recipe, run: Path) -> None:
    """Raise UsageError if a run folder was made with a different recipe."""
    earlier = run / "recipe.yaml"
    if earlier.is_file() and (changed := changed_keys(recipe, earlier)):
        raise UsageError(
            f"{run} was trained with another {', '.join(changed)}: "
            "choose another --out, or remove that folder to train it again."
        )
