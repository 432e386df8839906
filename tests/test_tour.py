"""The pages of the tour run from top to bottom, as programs and as notebooks, and are published as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import ROOT, good, python
from tools.publish_tour import execute, to_markdown, with_fenced_equations

TOUR = ROOT / "recipes/tour"
PAGES = sorted(TOUR.glob("*.py"))
NOTE = re.compile(r"^\*Processor time: (.+?)\. .*\n\n", re.MULTILINE)
SHORT = """
import os, runpy, sys, warnings
os.environ.update(NMT_TOUR_SHORT="1", MPLBACKEND="Agg")
warnings.simplefilter("error")
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_table_4_repeats_the_measured_scores() -> None:
    page = (TOUR / "3_luong_et_al_2015.py").read_text(encoding="utf-8")
    results = (ROOT / "recipes/README.md").read_text(encoding="utf-8")
    rows = re.findall(r'"(global|local-[mp]), (\w+)": \([\d.]+, ([\d.]+)\)', page)
    assert len(rows) == 6
    for window, score, bleu in rows:
        assert re.search(rf"^\| `luong-{window}-{score}-feed` .*\| {bleu} ± ", results, re.MULTILINE)


def cells(page: Path) -> Iterator[tuple[str, str]]:
    """The kind of each cell, and its text as a published page has it."""
    source = page.read_text(encoding="utf-8")
    for mark, text in re.findall(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", source, re.MULTILINE | re.DOTALL):
        if mark:
            yield "text", with_fenced_equations(re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE))
        else:
            yield "code", f"```python\n{text.strip()}\n```"


def published(page: Path) -> str:
    return page.with_suffix(".md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_published_page_has_the_cells_of_its_source_and_its_pictures(page: Path) -> None:
    text = published(page)
    time = NOTE.search(text)
    assert time
    assert f"({page.stem}.md) | {time[1]} |" in (TOUR / "README.md").read_text(encoding="utf-8")
    text = NOTE.sub("", text)
    assert [cell for _, cell in cells(page) if cell not in text] == []
    assert text.count("```python\n") == [kind for kind, _ in cells(page)].count("code")
    pictures = re.findall(r"!\[.+?\]\((.+?)\)", text)
    assert pictures
    assert sorted(pictures) == sorted(f"pictures/{path.name}" for path in TOUR.glob(f"pictures/{page.stem}_*"))


def test_the_pictures_are_small() -> None:
    assert sum(path.stat().st_size for path in TOUR.glob("pictures/*")) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_a_program(page: Path, tmp_path: Path) -> None:
    """With little training."""
    ended = python(SHORT, page, cwd=tmp_path)
    assert good(ended)
    assert ended.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_a_notebook_whose_text_says_what_its_cells_print_and_which_is_published(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("jupytext", "nbclient", "nbconvert"):
        pytest.importorskip(name, reason="needs the extra notebook")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = execute(page, str(tmp_path))
    printed = " ".join(texts_of(notebook))
    said = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    own = re.sub(r"\(http.*?\)|(section|equation|Figure|Table) [\d.]+|A\.[\d.]+", "", said)
    assert [number for number in re.findall(r"\d+\.\d+", own) if number not in printed] == []
    assert outline(to_markdown(notebook, page.stem)[0]) == outline(NOTE.sub("", published(page)))


def outline(text: str) -> list[str]:
    """The lines of a published page but for what the cells print, which is indented and varies by processor."""
    return [line for line in text.splitlines() if line and not line.startswith("    ")]


def texts_of(notebook: Any) -> list[str]:
    """What the cells have printed."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
