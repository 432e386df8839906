"""Annotated shapes are checked: in the package while tests run, and in each test up to the limits."""

from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import nmt
from nmt.training.guidance import guided_cross_entropy
from tests.conftest import CHECKED


def test_every_module_with_annotated_shapes_is_checked() -> None:
    root = Path(nmt.__file__).parents[1]
    annotated = [
        path for path in root.glob("nmt/**/*.py") if "from jaxtyping import" in path.read_text(encoding="utf-8")
    ]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in annotated]
    assert len(names) > 30
    assert [name for name in names if not f"{name}.".startswith(tuple(f"{module}." for module in CHECKED))] == []


def test_a_wrong_shape_in_the_package_fails() -> None:
    with pytest.raises(TypeCheckError):
        guided_cross_entropy(torch.zeros(2, 3, 4), torch.zeros(2, 3, 5, dtype=torch.bool))
