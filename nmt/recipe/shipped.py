"""Find the recipes that ship with the toolkit."""

from importlib import resources
from pathlib import Path

from nmt.errors import UsageError
from nmt.runtime.wording import nearest

QUOTE_BRACES = " If the shell made it of a pattern with braces, put quotes around the pattern."


def find_recipe(name: str) -> Path:
    """The file of a recipe, given by path or shipped name (`quickstart`, `multi30k-en-de/bahdanau`). Raises UsageError."""
    if Path(name).is_file():
        return Path(name)
    shipped = shipped_recipes()
    stem = name.removesuffix(".yaml").removeprefix("recipes/")
    if stem in shipped:
        return shipped[stem]
    guess = nearest(stem, {*shipped, *(recipe.rpartition("/")[2] for recipe in shipped)})
    similar = [repr(recipe) for recipe in sorted(shipped) if guess in (recipe, recipe.rpartition("/")[2])]
    advice = f"did you mean {' or '.join(similar)}?" if similar else "give a YAML file, or a name of `nmt recipe list`."
    if Path(name).suffix not in ("", ".yaml", ".yml"):
        advice += QUOTE_BRACES
    raise UsageError(f"There is no recipe '{name}': {advice}")


def shipped_recipes() -> dict[str, Path]:
    """Name and file of every recipe that ships with the toolkit."""
    package = Path(str(resources.files("nmt")))
    root = next((folder for folder in (package / "recipes", package.parent / "recipes") if folder.is_dir()), None)
    if root is None:
        return {}
    return {str(path.relative_to(root).with_suffix("")): path for path in root.rglob("*.yaml")}


def recipe_title(path: Path) -> str:
    """The title of a recipe: the first line of its leading comment, up to a colon."""
    with path.open(encoding="utf-8") as file:
        line = file.readline()
    return line.removeprefix("#").partition(": ")[0].strip().rstrip(".") if line.startswith("#") else ""
