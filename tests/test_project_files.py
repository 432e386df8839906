"""The files beside the code: changelog, citation, and the checks before a commit."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import nmt

ROOT = Path(__file__).parent.parent


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    result: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return result


def test_the_citation_is_that_of_this_version(project: dict[str, Any]) -> None:
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == nmt.__version__
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]
    assert citation["keywords"] == project["keywords"]
    references = citation["references"]
    cited = {f"{paper['authors'][0]['family-names']} et al. {paper['year']}": paper["url"] for paper in references}
    assert cited == project["urls"]


def test_the_checks_before_a_commit_are_those_of_the_tests() -> None:
    lines = (ROOT / "tools/test").read_text(encoding="utf-8").split("\n. tools/browser\n")[1].split("\n")
    expected = [line for line in lines if line and not line.startswith("pytest ")]
    [repository] = read_yaml(".pre-commit-config.yaml")["repos"]
    hooks = repository["hooks"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in hooks] == expected
    assert len(expected) == 4
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in hooks)
    assert len({hook["id"] for hook in hooks}) == len(hooks)
