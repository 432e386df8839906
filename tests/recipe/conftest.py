from pathlib import Path

import pytest

from tests.recipe.minimal import MINIMAL


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    path = tmp_path / "minimal.yaml"
    path.write_text(MINIMAL)
    return path
