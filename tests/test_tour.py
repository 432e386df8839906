"""The pages of the tour run from top to bottom, as programs and as notebooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands import ROOT, good, python

TOUR = ROOT / "recipes/tour"
PAGES = sorted(TOUR.glob("*.py"))
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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_a_program(page: Path, tmp_path: Path) -> None:
    """With little training."""
    ended = python(SHORT, page, cwd=tmp_path)
    assert good(ended)
    assert ended.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_a_notebook_whose_text_says_what_its_cells_print(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jupytext = pytest.importorskip("jupytext", reason="needs the extra notebook")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra notebook")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = jupytext.read(page)
    nbclient.NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = " ".join(texts_of(notebook))
    said = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    own = re.sub(r"\(http.*?\)|(section|equation|Figure|Table) [\d.]+|A\.[\d.]+", "", said)
    assert [number for number in re.findall(r"\d+\.\d+", own) if number not in printed] == []
    pictures = [
        output for cell in notebook.cells for output in cell.get("outputs", ()) if "image/png" in output.get("data", {})
    ]
    assert pictures


def texts_of(notebook: Any) -> list[str]:
    """What the cells have printed."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
