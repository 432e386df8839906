"""nmt/README.md names code and tests that exist."""

import ast
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from tests.test_documents import to_anchor

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = (ROOT / "nmt/README.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"\[([^\]]+)\]\(\.\./(recipes/tour/\w+\.md)#([\w-]+)\)", DOCUMENT)
ROWS = re.findall(r"^\| (.+) \| `([\w.]+)` \| `(\w+\.py)::(\w+)` \|$", DOCUMENT, re.MULTILINE)


@pytest.mark.parametrize(("equation", "code", "file", "test"), ROWS, ids=[row[0].replace("\\", "") for row in ROWS])
def test_an_equation_of_the_papers_has_code_and_a_test(equation: str, code: str, file: str, test: str) -> None:
    module, _, name = code.partition(".")
    assert attrgetter(name)(import_module(f"nmt.model.{module}"))
    tree = ast.parse((ROOT / "tests/model" / file).read_text(encoding="utf-8"))
    assert test in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_the_map_has_every_numbered_equation() -> None:
    bahdanau, luong = DOCUMENT.split("### Luong", 1)
    numbered: tuple[str, ...] = ("3.1", "eq. 4", "eq. 5", "eq. 6", "eq. 7", "A.1.1", "A.1.2", "A.2.2")
    assert [place for place in numbered if not re.search(rf"^\|[^|]*{re.escape(place)}", bahdanau, re.MULTILINE)] == []
    numbered = ("eq. 3", *(f"eq. {number}" for number in range(5, 11)), "3.1", "3.2", "3.3")
    assert [place for place in numbered if not re.search(rf"^\|[^|]*{re.escape(place)}\b", luong, re.MULTILINE)] == []
    assert len(SECTIONS) >= 20  # which lead to the tour
    files = re.findall(r"`([\w/]+(?:\.py|/))`", DOCUMENT)
    assert [path for path in files if not (ROOT / "nmt" / path).exists() and not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("place", "page", "anchor"), sorted(set(SECTIONS)))
def test_a_place_leads_to_the_section_that_shows_its_equation(place: str, page: str, anchor: str) -> None:
    _, *parts = re.split(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = {to_anchor(heading): text for heading, text in zip(parts[::2], parts[1::2], strict=True)}[anchor]
    numbers = [re.escape(number.removeprefix("eq. ")) for number in place.split(", ")]
    assert re.search(rf"\([^()]*(?<![\d.])({'|'.join(numbers)})(?![\d.]*\d)[^()]*\)", section)
