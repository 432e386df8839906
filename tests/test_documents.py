"""What the documents say can be run, and selects something."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = [
    command
    for span in re.findall(r"`([^`]+)`", (ROOT / "tests/README.md").read_text(encoding="utf-8"))
    for command in [span.removeprefix("NMT_TEST_EFFORT=12 ")]
    if command.startswith("pytest ")
]


def selected(command: str) -> Iterator[str]:
    """The tests that a `pytest` command of the documents runs, by reading their files."""
    words = shlex.split(command)[1:]
    keywords = re.split(r" or ", words[words.index("-k") + 1]) if "-k" in words else [""]
    marks = words[words.index("-m") + 1] if "-m" in words else "not slow"
    for path in (ROOT / word for word in words if word.startswith("tests/")):
        for file in [path] if path.is_file() else path.rglob("test_*.py"):
            for name, is_slow in read_tests(file):
                runs = "not slow" in marks if not is_slow else marks in ("slow", "slow or not slow")
                if runs and any(keyword in name for keyword in keywords):
                    yield name


def read_tests(file: Path) -> Iterator[tuple[str, bool]]:
    """Each test of a file, and whether it is slow; one whose parameters alone are slow is not."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, any(ast.unparse(mark) == "pytest.mark.slow" for mark in node.decorator_list)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_table_of_tests_runs_some(command: str) -> None:
    paths = [word for word in shlex.split(command) if word.startswith("tests/")]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert list(selected(command))


def test_the_table_of_tests_has_commands() -> None:
    assert len(COMMANDS) >= 20


@pytest.mark.parametrize("path", sorted((ROOT / "recipes/attention").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_preset_lists_what_it_does_otherwise_than_its_paper(path: Path) -> None:
    header = re.match(r"(?:#.*\n)+", path.read_text(encoding="utf-8"))
    assert header
    listed = header[0].partition("# Deviates from the paper in ")[2]
    for subject in ("text", "embeddings", "first weights", "training", "search"):
        assert f"\n# - {subject}: " in listed
