"""`tools/quickstart` explains itself, and says how to go on. Training itself is run by hand."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_help import calls, parse

ROOT = Path(__file__).parents[2]
STUB = '#!/bin/sh\necho nmt "$@" >> called\n'


@pytest.mark.parametrize(
    ("option", "status", "message"),
    [("--help", 0, "Usage: tools/quickstart [SENTENCE]\n"), ("--fast", 2, "tools/quickstart has no option --fast.\n")],
)
def test_an_option_is_not_translated(option: str, status: int, message: str) -> None:
    ended = subprocess.run([ROOT / "tools/quickstart", option], check=False, capture_output=True, text=True)
    assert ended.returncode == status
    assert (ended.stderr or ended.stdout).startswith(message)


def test_it_ends_with_how_to_go_on(tmp_path: Path) -> None:
    """With an `nmt` that only notes how it is called."""
    for name in ("tools/quickstart", "tools/environment", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in ("python", "nmt"):
        (tmp_path / ".venv/bin" / name).write_text(STUB)
        (tmp_path / ".venv/bin" / name).chmod(0o755)
    ended = subprocess.run([tmp_path / "tools/quickstart", "Hello."], check=True, capture_output=True, text=True)
    assert ended.stdout.endswith(f"For the commands of README.md, in {tmp_path}:\n    . .venv/bin/activate\n")
    lines = (tmp_path / "called").read_text().splitlines()
    commands = [next(calls(line)) for line in lines if "pip install" not in line]
    assert [parse(command) for command in commands] == ["train", "translate", "evaluate", "plot"]
