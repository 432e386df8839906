"""What the documents say can be run, and what they link to exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.recipe import EXAMPLE_DATA, find_recipe, leaves_data_open, load_recipe, shipped_recipes
from tests.cli.test_help import calls, parse

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    *(path for part in ("nmt", "recipes", "tests", "tools") for path in (ROOT / part).rglob("*.md")),
]
RESULTS = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "recipes").glob("*.md")))
RECIPE_COMMANDS = re.findall(
    r"nmt (?:train|compare|reproduce|recipe show) (?!--)([\w/-]+)((?: --set [\w.]+=[\w./-]+)*)",
    re.sub(r"\s+\\\n\s+", " ", RESULTS),
)
"""The recipe and the `--set` options of each command in the documents of the recipes."""


def test_every_file_that_the_table_of_tests_names_exists() -> None:
    paths = re.findall(r"tests/[\w/.]+", (ROOT / "tests/README.md").read_text(encoding="utf-8"))
    assert len(paths) >= 12
    assert [path for path in paths if not (ROOT / path).exists()] == []


def relative_links(document: str) -> list[str]:
    """Targets of the links and pictures of a Markdown text that lie in this repository."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", document) if not target.startswith("https://")]


def to_anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a document."""
    document = path.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", document, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return set(map(to_anchor, headings))


def broken_links(path: Path) -> list[str]:
    """The relative links of a document to a file or a heading that does not exist."""
    broken = []
    for link in relative_links(path.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


def test_every_relative_link_of_a_document_resolves() -> None:
    assert {path: links for path in DOCUMENTS if (links := broken_links(path))} == {}


def test_every_shipped_recipe_has_a_result() -> None:
    page = (ROOT / "recipes/README.md").read_text(encoding="utf-8")
    rows = [name.removeprefix("attention/") for name in shipped_recipes()]
    assert [row for row in rows if not re.search(rf"(?<![\w/-]){row}(?![\w/-])", page)] == []


GROUPS = {
    "RECIPE": "small",
    "attention": "attention/bahdanau-rnnsearch",
    "attention/normalizers": "attention/normalizers/dot-softmax",
}


@pytest.mark.parametrize(("name", "settings"), RECIPE_COMMANDS)
def test_every_command_of_the_results_names_a_recipe_and_its_settings(name: str, settings: str) -> None:
    path = find_recipe(GROUPS.get(name, name))
    overrides = settings.replace("--set", "").split()
    recipe = load_recipe(path, overrides, choose=lambda *_: [])
    assert bool(overrides) == (
        recipe != load_recipe(path, [f"data={EXAMPLE_DATA}"] if leaves_data_open(path) else [], choose=lambda *_: [])
    )


def documented_calls() -> Iterator[tuple[str, str]]:
    """Each `nmt` command of a shell block or an indented block, with its document."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        shell = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
        indented = "\n".join(re.findall(r"^(?:    |      {4})(.+)$", text, re.MULTILINE))
        for line in re.sub(r"\[.*?\]| {2,}#.*", "", f"{shell}\n{indented}").splitlines():
            if re.match(r"(?:[A-Z_]+=\S+ )?(?:.* \| )?nmt ", line.strip()):
                yield path.relative_to(ROOT).as_posix(), line.strip()


@pytest.mark.parametrize(("path", "line"), sorted(set(documented_calls())))
def test_every_documented_command_parses(path: str, line: str) -> None:
    assert [parse(arguments) for arguments in calls(line)]
