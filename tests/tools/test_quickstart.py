"""`tools/quickstart` explains itself. What it does is run by hand: it installs and trains."""

import subprocess
from pathlib import Path

import pytest

QUICKSTART = Path(__file__).parents[2] / "tools/quickstart"


@pytest.mark.parametrize(
    ("option", "status", "message"),
    [("--help", 0, "Usage: tools/quickstart [SENTENCE]\n"), ("--fast", 2, "tools/quickstart has no option --fast.\n")],
)
def test_an_option_is_not_translated(option: str, status: int, message: str) -> None:
    ended = subprocess.run([QUICKSTART, option], check=False, capture_output=True, text=True)
    assert ended.returncode == status
    assert (ended.stderr or ended.stdout).startswith(message)
