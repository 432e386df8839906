"""The corpus that most tests of training read: 200 pairs of letters and the letters reversed."""

from pathlib import Path

import pytest

from tests.training.toy import write_reversal


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text and its links, beside which runs may lie."""
    folder = tmp_path_factory.mktemp("small")
    write_reversal(folder, pairs=200, held_out=10)
    return folder
