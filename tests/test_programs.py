"""The programs among the recipes are short, and use of `nmt` only what is public: a student may copy them.

The pages of the tour are no programs: they look into the modules.
"""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = sorted(path for path in (ROOT / "recipes").rglob("*.py") if path.parent.name != "tour")


def public_names(package: ModuleType) -> set[str]:
    """The names in the `__all__` of a package, and those that it imports `as` themselves; none of a module."""
    if not hasattr(package, "__path__"):
        return set()
    imports = [node for node in ast.parse(inspect.getsource(package)).body if isinstance(node, ast.ImportFrom)]
    aliases = {name.name for node in imports for name in node.names if name.asname == name.name}
    return aliases | set(getattr(package, "__all__", ()))


def private_imports(program: str) -> Iterator[str]:
    """What a program imports of `nmt` that neither `nmt` nor one of its packages makes public."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("nmt."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nmt":
            public = public_names(import_module(str(node.module)))
            yield from (f"{node.module}.{name.name}" for name in node.names if name.name not in public)


def test_the_programs_are_short_and_import_public_names() -> None:
    assert PROGRAMS
    for path in PROGRAMS:
        program = path.read_text(encoding="utf-8")
        assert len(program.splitlines()) <= 150, path
        assert list(private_imports(program)) == [], path
