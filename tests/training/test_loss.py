"""The chunked cross-entropy is the equation: values and gradients, across chunk borders, with and without smoothing."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from nmt.training import loss
from nmt.training.loss import cross_entropy, reference_cross_entropy
from tests.reference.loss import smoothed_cross_entropy

CrossEntropy = Callable[[Tensor, Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]

SMOOTHINGS = [0.0, 0.1]
CHUNKS = [1, 3, 7, 1000]


def given(words: int = 7, width: int = 4, vocabulary: int = 6) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    shapes = (words, width), (vocabulary, width), (vocabulary,)
    readouts, weight, bias = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    return readouts, weight, bias, torch.randint(0, vocabulary, (words,))


@pytest.mark.parametrize("path", [reference_cross_entropy, cross_entropy])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_both_paths_follow_the_equation(
    path: CrossEntropy, smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "CHUNK", 8 * chunk)
    readouts, weight, bias, target = given()
    smoothed, plain = path(readouts, weight, bias, target, smoothing)
    arrays = readouts.detach().numpy(), weight.detach().numpy(), bias.detach().numpy()
    expected = smoothed_cross_entropy(*arrays, target.tolist(), smoothing)
    np.testing.assert_allclose([smoothed.item(), plain.item()], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_gradients_do_not_depend_on_the_path(smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 8 * chunk)
    readouts, weight, bias, target = given(words=10)
    values = readouts, weight, bias
    ours = torch.autograd.grad(cross_entropy(*values, target, smoothing)[0] * 0.3, values)
    theirs = torch.autograd.grad(reference_cross_entropy(*values, target, smoothing)[0] * 0.3, values)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_gradients_are_those_of_the_function(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 8 * 2)
    *values, target = given(words=5)

    def summed(readouts: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return cross_entropy(readouts, weight, bias, target, smoothing)[0]

    assert gradcheck(summed, values)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_smoothing_is_that_of_pytorch(smoothing: float) -> None:
    readouts, weight, bias, target = given(words=20)
    logits = torch.nn.functional.linear(readouts, weight, bias)
    expected = torch.nn.functional.cross_entropy(logits, target, label_smoothing=smoothing, reduction="sum")
    smoothed, plain = cross_entropy(readouts, weight, bias, target, smoothing)
    torch.testing.assert_close(smoothed, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(
        plain, torch.nn.functional.cross_entropy(logits, target, reduction="sum"), rtol=0, atol=1e-9
    )


def test_the_plain_loss_is_a_figure_and_no_target_of_training() -> None:
    readouts, weight, bias, target = given()
    for path in (cross_entropy, reference_cross_entropy):
        smoothed, plain = path(readouts, weight, bias, target, 0.1)
        assert smoothed.requires_grad
        assert not plain.requires_grad


def test_only_weights_in_training_get_gradients() -> None:
    readouts, weight, bias, target = given()
    cross_entropy(readouts, weight.detach(), bias, target, 0.1)[0].backward()
    assert readouts.grad is not None
    assert bias.grad is not None
    assert weight.grad is None


def test_no_words_lose_nothing() -> None:
    readouts, weight, bias, target = given(words=0)
    smoothed, plain = cross_entropy(readouts, weight, bias, target, 0.1)
    smoothed.backward()
    assert smoothed.item() == plain.item() == 0
    assert weight.grad is not None
    assert (weight.grad == 0).all()


def test_words_are_counted_apart_from_their_order_and_company() -> None:
    readouts, weight, bias, target = given(words=9)
    together = cross_entropy(readouts, weight, bias, target, 0.1)[0]
    apart = sum(cross_entropy(readouts[i : i + 1], weight, bias, target[i : i + 1], 0.1)[0] for i in reversed(range(9)))
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-9)


def test_extreme_logits_stay_finite() -> None:
    readouts, weight, bias, target = given()
    values = (readouts * 1e4).detach().requires_grad_(), weight, bias
    smoothed, _ = cross_entropy(*values, target, 0.1)
    assert smoothed.isfinite()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(smoothed, values))


def test_under_autocast_the_products_are_short_and_the_rest_is_not() -> None:
    readouts, weight, bias, target = given(words=200, width=16, vocabulary=50)
    readouts, weight, bias = (value.detach().float().requires_grad_() for value in (readouts, weight, bias))
    values = readouts, weight, bias
    exact = cross_entropy(*values, target, 0.1)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        smoothed, plain = cross_entropy(*values, target, 0.1)
    assert smoothed.dtype == plain.dtype == torch.float32
    gradients = torch.autograd.grad(smoothed, values)
    assert [gradient.dtype for gradient in gradients] == [torch.float32] * 3
    torch.testing.assert_close(smoothed, exact, rtol=5e-3, atol=0)
