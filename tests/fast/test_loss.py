"""The chunked cross-entropy is the equation: values and gradients, across chunk borders, with and without smoothing."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.fast import loss
from nmt.fast.loss import chunked_cross_entropy
from tests.fast.models import plain_loss
from tests.reference.loss import smoothed_cross_entropy

SMOOTHINGS = [0.0, 0.1]
CHUNKS = [1, 3, 1000]


def random_inputs(words: int = 7, width: int = 4, vocabulary: int = 6) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    shapes = (words, width), (vocabulary, width), (vocabulary,)
    readouts, weight, bias = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    return readouts, weight, bias, torch.randint(0, vocabulary, (words,))


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunked_loss_equals_the_equation(smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK_BYTES", 8 * chunk)
    readouts, weight, bias, gold = random_inputs()
    total, log_probs = chunked_cross_entropy(readouts, weight, bias, gold, smoothing)
    arrays = readouts.detach().numpy(), weight.detach().numpy(), bias.detach().numpy()
    expected = smoothed_cross_entropy(*arrays, gold.tolist(), smoothing)
    np.testing.assert_allclose([total.item(), -log_probs.sum().item()], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunked_and_plain_gradients_are_equal(smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK_BYTES", 8 * chunk)
    readouts, weight, bias, gold = random_inputs(words=10)
    values = readouts, weight, bias
    ours = torch.autograd.grad(chunked_cross_entropy(*values, gold, smoothing)[0] * 0.3, values)
    expected = torch.autograd.grad(plain_loss(*values, gold, smoothing)[0] * 0.3, values)
    for actual, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(actual, other, rtol=0, atol=1e-9)


def test_frozen_weights_get_no_gradient() -> None:
    readouts, weight, bias, gold = random_inputs()
    chunked_cross_entropy(readouts, weight.detach(), bias, gold, 0.1)[0].backward()
    assert readouts.grad is not None
    assert bias.grad is not None
    assert weight.grad is None


def test_extreme_logits_stay_finite() -> None:
    readouts, weight, bias, gold = random_inputs()
    values = (readouts * 1e4).detach().requires_grad_(), weight, bias
    smoothed, _ = chunked_cross_entropy(*values, gold, 0.1)
    assert smoothed.isfinite()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(smoothed, values))
