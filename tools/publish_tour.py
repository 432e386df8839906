"""Run the pages of the tour, and write each with its results as Markdown beside its source.

    python tools/publish_tour.py [PAGE.py ...]

Needs the extra `notebook`. Without arguments it runs all pages.
"""

import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

TOUR = Path(__file__).resolve().parents[1] / "recipes/tour"


def main() -> None:
    for page in [Path(name) for name in sys.argv[1:]] or sorted(TOUR.glob("*.py")):
        before = os.times()
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(page, folder)
        spent = os.times()
        seconds = spent.children_user + spent.children_system - before.children_user - before.children_system
        publish(notebook, page.name, f"{math.ceil(seconds / 10) * 10} s")


def execute(page: Path, folder: str) -> Any:
    """The notebook of a page, with what its cells have printed and drawn."""
    import jupytext
    import nbclient

    notebook = jupytext.read(page)
    nbclient.NotebookClient(
        notebook, timeout=1800, coalesce_streams=True, resources={"metadata": {"path": folder}}
    ).execute()
    return notebook


def publish(notebook: Any, source: str, time: str) -> None:
    """Write page and pictures, and the time into the table of the tour."""
    name = source.removesuffix(".py")
    text, pictures = to_markdown(notebook, name)
    for old in TOUR.glob(f"pictures/{name}_*"):
        old.unlink()
    for path, content in pictures.items():
        (TOUR / path).parent.mkdir(exist_ok=True)
        (TOUR / path).write_bytes(content)
    title, rest = text.split("\n", 1)
    note = f"*Processor time: {time}. [Source]({source}), run by `tools/publish_tour.py`.*"
    (TOUR / f"{name}.md").write_text(f"{title}\n\n{note}\n{rest}", encoding="utf-8")
    table = (TOUR / "README.md").read_text(encoding="utf-8")
    table = re.sub(rf"(\({name}\.md\)) \| [^|]* \|", rf"\1 | {time} |", table)
    (TOUR / "README.md").write_text(table, encoding="utf-8")


def to_markdown(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """The text of a notebook, and its pictures by path."""
    from nbconvert import MarkdownExporter

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_fenced_equations(cell.source)
    body, resources = MarkdownExporter().from_notebook_node(
        notebook, {"unique_key": name, "output_files_dir": "pictures"}
    )
    body = re.sub(r"[ \t]+$", "", body, flags=re.MULTILINE)
    body = re.sub(r"\n{4,}", "\n\n", body).replace("![png](", "![what the cell above draws](")
    return body.strip() + "\n", resources["outputs"]


def with_fenced_equations(text: str) -> str:
    """$...$ as $`...`$, which a forge does not read as Markdown before it reads it as an equation; likewise $$...$$."""
    text = re.sub(r"\$\$(.+?)\$\$", r"```math\n\1\n```", text, flags=re.DOTALL)
    return re.sub(r"\$(?!`)([^$]+)\$", r"$`\1`$", text)


if __name__ == "__main__":
    main()
