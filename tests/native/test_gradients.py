"""Training's compiled kernels against PyTorch: models as a whole in fp64, and each kernel at its edges."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.model.cells import Dropout
from nmt.model.gathering import attend_additively, gathering
from nmt.model.seq2seq import Seq2Seq
from nmt.native import gradients
from nmt.training.loss import cross_entropy, reference_cross_entropy
from tests.machine import needs_compiler
from tests.model.test_against_reference import random_model
from tests.reference.settings import ORDERS, small

pytestmark = needs_compiler

LENGTHS, STEPS = [7, 5, 1, 6, 3], 6


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(6)


def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on training uses no kernel."""
    monkeypatch.setattr(gradients, "can_use", lambda *tensors: False)


def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that training calls from here on, in their order."""
    called: list[str] = []
    original = gradients.call

    def call(name: str, *given: object) -> float:
        called.append(name)
        return original(name, *given)

    monkeypatch.setattr(gradients, "call", call)
    return called


def assert_near(ours: Tensor, exact: Tensor, share: float) -> None:
    """Equal but for a share of the largest number there is, or of a tenth."""
    torch.testing.assert_close(ours.double(), exact.double(), rtol=0, atol=share * max(float(exact.abs().max()), 0.1))


# --- whole models -------------------------------------------------------------------------------------------------


def learnt(model: Seq2Seq) -> dict[str, Tensor]:
    """Readouts, alignment, and the gradients of a random sum of them and of the cross-entropy."""
    torch.manual_seed(5)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    source, target = (torch.randint(2, 5, (len(LENGTHS), width)) for width in (max(LENGTHS), STEPS))
    model.zero_grad()
    made = model(source, mask, target)
    readouts = made[0]
    loss, _ = cross_entropy(readouts.flatten(0, 1), model.output.weight, model.output.bias, target.flatten(), 0.1)
    by = [torch.randn(each.shape, dtype=torch.float64).to(each.dtype) for each in made]
    torch.autograd.backward(loss + sum((each * other).sum() for each, other in zip(made, by, strict=True)))
    found = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    return {"readouts": made[0].detach(), "alignment": made[1].detach(), **found}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("score", ["additive", "concat", "general"])
def test_gradients_are_those_of_the_equations(score: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(small(score=score, order=order)).train(False)
    exact = learnt(model.double())
    called = compiled(monkeypatch)
    ours = learnt(model.float())
    assert {"softmax_gradient", "gru_step", "gru_step_back"} <= set(called)
    assert ("additive_keys_back" in called) == (score != "general")
    assert ours.keys() == exact.keys()
    for name, wanted in exact.items():
        assert_near(ours[name], wanted, 1e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_in_bf16_they_are_as_near_as_without(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(small(order=order, readout="tanh")).train(False)  # of a maxout rounding may choose the other
    exact = learnt(model.double())
    model.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = learnt(model)
        plain(monkeypatch)
        theirs = learnt(model)
    error, usual = (sum(float((each[name] - exact[name]).norm()) for name in exact) for each in (ours, theirs))
    assert error <= 1.3 * usual


def test_what_has_layer_norm_or_a_second_layer_or_masks_learns_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for tree in (small(layer_norm=True, order="luong"), small(layers=2, order="luong")):
        model = random_model(tree).train(False)
        exact = learnt(model.double())
        ours = learnt(model.float())
        for name, wanted in exact.items():
            assert_near(ours[name], wanted, 3e-5)


def test_two_backward_passes_give_twice_the_gradient() -> None:
    model = random_model(small()).float()
    readouts, _ = model(torch.tensor([[2, 3, 4]]), torch.ones(1, 3, dtype=torch.bool), torch.tensor([[2, 3]]))
    torch.autograd.backward(readouts.sum(), retain_graph=True)
    once = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    torch.autograd.backward(readouts.sum())
    for name, weight in model.named_parameters():
        if name in once:
            assert weight.grad is not None
            assert_near(weight.grad, 2 * once[name], 1e-6)


def test_threads_change_only_the_order_of_sums() -> None:
    model = random_model(small()).float()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = learnt(model)
        torch.set_num_threads(3)
        three = learnt(model)
    finally:
        torch.set_num_threads(threads)
    for name, wanted in one.items():
        assert_near(three[name], wanted, 1e-6)


# --- attention ----------------------------------------------------------------------------------------------------


def attention_gradients(queries: Tensor, keys: Tensor, v: Tensor, mask: Tensor, h: Tensor, by: Tensor) -> list[Tensor]:
    """Of a sum of contexts and weights of two steps, for queries, keys, v and annotations."""
    given = [each.detach().requires_grad_() for each in (queries, keys, v, h)]
    asked, known, vector, read = given
    score = torch.nn.Linear(v.shape[0], 1, bias=False)
    score.weight = torch.nn.Parameter(vector.detach().unsqueeze(0))
    total = torch.zeros((), dtype=queries.dtype)
    if queries.dtype == torch.float64:
        for step in asked.unbind(0):
            scores = torch.tanh(step.unsqueeze(1) + known) @ vector
            weights = torch.softmax(scores.masked_fill(~mask, -1e30), -1) * mask
            total = total + (torch.einsum("ns,nsa->na", weights, read) * by).sum() + (weights**2).sum()
        return list(torch.autograd.grad(total, given))
    with gathering():
        for step in asked.unbind(0):
            found = attend_additively(step, torch.nn.Identity(), known, score, read, mask)
            assert found is not None
            total = total + (found[0] * by).sum() + (found[1] ** 2).sum()
    gradients_ = torch.autograd.grad(total, [asked, known, score.weight, read])
    return [each.squeeze(0) if each is gradients_[2] else each for each in gradients_]


@pytest.mark.parametrize(("width", "length", "annotation"), [(1, 1, 1), (2, 3, 5), (33, 17, 20), (512, 12, 64)])
@pytest.mark.parametrize("size", [0.01, 1.0, 5.0])
def test_attention_has_the_gradients_of_its_equation(width: int, length: int, annotation: int, size: float) -> None:
    mask = torch.rand(4, length) > 0.3
    mask[:, 0] = True
    mask[3] = False  # a sentence without words
    given = torch.randn(2, 4, width) * size, torch.randn(4, length, width) * size, torch.randn(width), mask
    read, by = torch.randn(4, length, annotation), torch.randn(4, annotation)
    ours = attention_gradients(*given, read, by)
    wide = [each.double() if each.is_floating_point() else each for each in (*given, read, by)]
    for mine, wanted in zip(ours, attention_gradients(*wide), strict=True):
        assert_near(mine, wanted, 1e-4)


def test_gradients_have_no_size_at_which_they_go_wrong() -> None:
    sizes = torch.tensor([0.0, 1e-30, 1.0, 20.0, 43.0, 45.0, 88.0, 1e4, 1e30])
    queries = torch.cat([sizes, -sizes])[None, :, None].expand(2, -1, 3).contiguous()
    keys = torch.tensor([0.0, 1e-30, 0.3, 9.0, 29.9, -0.3, -9.0, -29.9])[None, :, None].expand(18, -1, 3).contiguous()
    given = queries, keys, torch.tensor([1.0, -2.0, 3.0]), torch.ones(18, 8, dtype=torch.bool), keys, torch.ones(18, 3)
    wide = [each.double() if each.is_floating_point() else each for each in given]
    for mine, wanted in zip(attention_gradients(*given), attention_gradients(*wide), strict=True):
        assert mine.isfinite().all()
        assert_near(mine, wanted, 1e-5)


def test_keys_that_are_too_large_for_the_kernel_are_left_to_pytorch() -> None:
    keys, mask = torch.full((1, 2, 3), 31.0), torch.ones(1, 2, dtype=torch.bool)
    with gathering():
        for _ in range(2):
            assert (
                attend_additively(torch.randn(1, 3), torch.nn.Identity(), keys, torch.nn.Linear(3, 1), keys, mask)
                is None
            )


# --- cross-entropy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "vocabulary"), [(1, 1), (65, 300), (3, 257), (64, 256), (0, 5)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_is_that_of_the_reference(
    words: int, vocabulary: int, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = compiled(monkeypatch)
    values = [torch.randn(*shape).requires_grad_() for shape in ((words, 8), (vocabulary, 8), (vocabulary,))]
    target = torch.randint(0, vocabulary, (words,))
    ours = cross_entropy(*values, target, smoothing)
    wide = [value.detach().double().requires_grad_() for value in values]
    theirs = reference_cross_entropy(*wide, target, smoothing)
    assert called == ["softmax_gradient"] * bool(words)
    for mine, wanted in zip(ours, theirs, strict=True):
        assert_near(mine, wanted.detach(), 1e-5)
    if words:
        for mine, wanted in zip(
            torch.autograd.grad(ours[0], values), torch.autograd.grad(theirs[0], wide), strict=True
        ):
            assert_near(mine, wanted, 1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_cross_entropy_shows_what_is_not_a_number(bad: float) -> None:
    readouts, weight = torch.randn(5, 8), torch.randn(300, 8)
    readouts[2, 3] = bad
    smoothed, plain_ = cross_entropy(readouts, weight, torch.zeros(300), torch.arange(5), 0.1)
    assert not smoothed.isfinite()
    assert not plain_.isfinite()


# --- dropout, and numbers in bf16 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rate", [1e-9, 0.3, 0.99, 1.0])
def test_dropout_is_a_product_with_its_mask(rate: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    dropout = Dropout(rate, variational=False).train()
    values = torch.randn(3, 5, 67).to(dtype).requires_grad_()
    found = []
    for native in (True, False):
        if not native:
            plain(monkeypatch)
        torch.manual_seed(1)
        dropped = dropout(values)
        found.append((dropped, *torch.autograd.grad(dropped.sum(), values)))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.01 if dtype == torch.bfloat16 else 1e-6, atol=0)
        assert ((ours == 0) == (theirs == 0)).all()


def test_bf16_is_rounded_as_pytorch_rounds() -> None:
    """By way of dropout that keeps all."""
    bits = torch.randint(-(2**31), 2**31, (64, 300), dtype=torch.int64).to(torch.int32).view(torch.float32)
    values = torch.where(bits.isnan(), 0.5, bits)
    drawn = torch.full((values.numel(),), -1, dtype=torch.int16)
    ours = gradients.dropped(values.bfloat16(), drawn, 0, 1.0)
    assert torch.equal(ours, values.bfloat16())
    thirds = gradients.dropped(values.bfloat16(), drawn, 0, 1 / 3)
    assert torch.equal(thirds, (values.bfloat16().float() * torch.tensor(1 / 3)).bfloat16())
    nothing = gradients.dropped(torch.full((1, 4), float("nan")).bfloat16(), drawn[:4], 0, 1.0)
    assert nothing.isnan().all()


@pytest.mark.parametrize(("first", "second"), list(product([torch.float32, torch.bfloat16, torch.float64], repeat=2)))
def test_kernels_are_for_fp32_and_bf16(first: torch.dtype, second: torch.dtype) -> None:
    usable = first == second and first != torch.float64
    assert gradients.can_use(torch.ones(2, 2, dtype=first), torch.ones(2, 2, dtype=second)) == usable
    assert not gradients.can_use(torch.ones(2, 3, dtype=first).T)
