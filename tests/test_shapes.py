"""Annotated shapes are checked: in the package while tests run, and in each test up to the limits."""

from pathlib import Path

import pytest
import torch
from jaxtyping import Float, TypeCheckError, jaxtyped
from torch import Tensor

import nmt
from nmt.training.guidance import guided_cross_entropy
from tests import shapes
from tests.conftest import CHECKED


@jaxtyped(typechecker=shapes.check_first_calls)
def lengthen(vector: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    return vector.repeat(2)


def failures(calls: int) -> int:
    failed = 0
    for _ in range(calls):
        try:
            lengthen(torch.zeros(2))
        except TypeCheckError:
            failed += 1
    return failed


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


def test_each_function_is_checked_in_its_first_calls_up_to_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failures(2 * shapes.EACH) == shapes.EACH
    shapes.renew()
    assert failures(2 * shapes.EACH) == shapes.EACH

    monkeypatch.setattr(shapes, "TOTAL", 4)  # of arguments and of results
    shapes.renew()
    assert failures(shapes.EACH) == 2
