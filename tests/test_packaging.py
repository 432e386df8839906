"""What is published: a wheel with what the program needs, and a page for the index without dead links."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tools.readme import without_relative_links

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], check=True, cwd=ROOT)
    return folder


def wheel(folder: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def metadata(folder: Path) -> Message:
    with wheel(folder) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_holds_what_the_program_reads_and_no_pictures(distributions: Path) -> None:
    with wheel(distributions) as archive:
        names = set(archive.namelist())
    assert not [name for name in names if name.endswith(".png")]
    [path] = distributions.glob("*.whl")
    assert re.fullmatch(r"attentional_nmt-[\d.]+-py3-none-any\.whl", path.name)
    recipes = {f"nmt/{path.relative_to(ROOT)}" for path in (ROOT / "recipes").rglob("*.yaml")}
    corpora = {f"{path.relative_to(ROOT)}" for path in (ROOT / "nmt/data/catalogue").glob("*.yaml")}
    sample = {f"{path.relative_to(ROOT)}" for path in (ROOT / "nmt/data/sample").glob("*.bz2")}
    assert (
        recipes | corpora | sample | {"nmt/py.typed", "nmt/fast/kernels/search.c", "nmt/plotting/page/page.html"}
        <= names
    )


def test_the_description_leads_nowhere_that_an_index_does_not_have(distributions: Path) -> None:
    description = str(metadata(distributions).get_payload())
    assert not re.findall(r"\]\((?!https?://|#)", description)
    assert "[Bahdanau et al. 2015](https://arxiv.org/abs/1409.0473)" in description
    assert "![" not in description
    markdown = "a ([b](c/d.md))\n\n![e](f.png)\n\n[g](https://h) ![i](https://j.png) [k](#l)\n"
    assert without_relative_links(markdown) == "a (b)\n\n[g](https://h) ![i](https://j.png) [k](#l)\n"


def test_every_install_command_names_this_distribution_and_its_extras() -> None:
    """`nmt` alone would install somebody else's package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folders = ("nmt", "recipes", "tools", "tests")
    paths = [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".yaml")
    ]
    programs = [path for path in (ROOT / "tools").iterdir() if path.is_file() and not path.suffix]
    pages = [path.read_text(encoding="utf-8") for path in (*paths, *programs, *ROOT.glob("*.md"))]
    pattern = re.compile(r"""pip install ["'\\]*([\w-]*nmt)\b(?:\\?\[(\w+))?""")
    commands = [found for page in pages for found in pattern.findall(page)]
    assert len(commands) > 15
    assert {name for name, _ in commands} == {project["name"]}
    assert {extra for _, extra in commands} - {""} <= set(project["optional-dependencies"])
    assert not [page for page in pages if re.search(r"(?<![\w-])nmt\[", page)]


@pytest.mark.slow
def test_the_source_distribution_installs_and_knows_its_recipes(distributions: Path, tmp_path: Path) -> None:
    source = next(distributions.glob("*.tar.gz"))
    with tarfile.open(source) as archive:
        assert not [name for name in archive.getnames() if "venv" in name]
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target", str(tmp_path)]
    subprocess.run([*command, str(source)], check=True)
    program = f"import nmt; assert nmt.__file__.startswith({str(tmp_path)!r}); from nmt.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "recipe", "list"],
        capture_output=True, text=True, check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert "attention/rnnenc" in ended.stdout
