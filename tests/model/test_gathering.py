"""Gradients that are formed once for all steps are those that autograd adds up step by step."""

from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.model.cells import GruCell
from nmt.model.decoder import AttentionalDecoder, UpdateThenAttend
from nmt.model.encoder import gru_steps
from nmt.model.gathering import StepLinear, gathering, is_gathering
from nmt.model.seq2seq import Seq2Seq
from tests.model.test_against_reference import PADDED, padded, random_model
from tests.reference.settings import ATTENTIONS, CELLS, ORDERS, READOUTS, SWITCHES, small

TARGETS = [[2, 7, 1, 4], [2, 3, 3, 1], [2, 5, 6, 7]]


def gradients(model: Seq2Seq, seed: int = 3) -> dict[str, Tensor]:
    """Of a random sum of readouts and weights, for every parameter."""
    source, mask = padded(list(PADDED))
    target_in, _ = padded(TARGETS)
    torch.manual_seed(seed)
    model.zero_grad()
    readouts, alignment = model(source, mask, target_in)
    weights = [torch.randn(made.shape, dtype=torch.float64) for made in (readouts, alignment)]
    loss = (readouts * weights[0]).sum() + (alignment * weights[1]).sum()
    torch.autograd.backward(loss)
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def assert_same_gradients(tree: dict, monkeypatch: pytest.MonkeyPatch, *, train: bool = False) -> None:
    model = random_model(tree).train(train)
    ran = []
    plain = AttentionalDecoder.forward

    def forward(self: AttentionalDecoder, *given: object) -> object:
        ran.append(is_gathering())
        return self.unroll(*given)

    gathered = gradients(model)
    monkeypatch.setattr(AttentionalDecoder, "forward", forward)
    expected = gradients(model)
    monkeypatch.setattr(AttentionalDecoder, "forward", plain)
    assert ran == [False]
    assert gathered.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(gathered[name], gradient, rtol=0, atol=1e-9, msg=lambda text, n=name: f"{n}: {text}")


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_every_attention_in_every_order(
    score: str, window: str, order: str, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_same_gradients(small(score=score, window=window, order=order, cell=cell), monkeypatch)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_attention_of_all_steps_at_once_is_that_of_one_after_the_other(
    score: str, window: str, heads: int, train: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(small(score=score, window=window, order="luong", heads=1 if score == "none" else heads))
    source, mask = padded(list(PADDED))
    given = source, mask, padded(TARGETS)[0]
    at_once, gradients_at_once = model.train(train)(*given), gradients(model)
    monkeypatch.setattr(UpdateThenAttend, "unroll", UpdateThenAttend.unroll_with_attention)
    for ours, theirs in zip(at_once, model(*given), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradients_at_once[name], gradient, rtol=0, atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_in_every_order(switch: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_gradients(small(**SWITCHES[switch], order=order), monkeypatch)


@pytest.mark.parametrize(("readout", "order"), list(product(READOUTS, ORDERS)))
def test_every_readout_in_every_order(readout: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_gradients(small(readout=readout, order=order, layers=2), monkeypatch)


@pytest.mark.parametrize("order", ORDERS)
def test_with_dropout_everywhere(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dropout = {"embedding": 0.2, "word": 0.2, "annotations": 0.2, "layers": 0.2, "recurrent": 0.3, "readout": 0.2}
    assert_same_gradients(small(order=order, layers=2, dropout=dropout), monkeypatch, train=True)


@pytest.mark.parametrize("order", ORDERS)
def test_two_backward_passes_give_twice_the_gradient(order: str) -> None:
    model = random_model(small(order=order))
    source, mask = padded(list(PADDED))
    target_in, _ = padded(TARGETS)
    readouts, _ = model(source, mask, target_in)
    torch.autograd.backward(readouts.sum(), retain_graph=True)
    once = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    torch.autograd.backward(readouts.sum())
    for name, weight in model.named_parameters():
        if name in once:
            torch.testing.assert_close(weight.grad, 2 * once[name], rtol=0, atol=1e-9)


def test_frozen_weights_get_no_gradient_and_disturb_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(small())
    expected = gradients(model)
    frozen = [name for name, _ in model.named_parameters() if "recurrence" in name or "score" in name]
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    left = gradients(model)
    assert left.keys() == expected.keys() - set(frozen)
    for name, gradient in left.items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-9)


def test_steps_that_no_loss_reaches_are_left_out() -> None:
    layer = StepLinear(3, 2).double()
    first, second = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    with gathering():
        layer(first)
        used = layer(second)
    torch.autograd.backward(used.sum())
    torch.testing.assert_close(layer.weight.grad, second.sum(0).expand(2, 3))


def test_gates_as_one_node_are_the_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = GruCell(5).double()
    inputs = [torch.randn(4, width, dtype=torch.float64, requires_grad=True) for width in (15, 5)]
    plain, _ = cell(inputs[0], inputs[1], None)
    expected = torch.autograd.grad(plain.square().sum(), inputs)
    with gathering():
        fast, _ = cell(inputs[0], inputs[1], None)
    torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)
    for ours, theirs in zip(torch.autograd.grad(fast.square().sum(), inputs), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_under_autocast_gradients_are_within_its_rounding() -> None:
    model = random_model(small(annotation=16, hidden=17, embedding=8)).float()
    exact = gradients(model)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = gradients(model)
    for name, gradient in exact.items():
        assert rounded[name].dtype == torch.float32
        assert (rounded[name] - gradient).norm() <= 0.1 * gradient.norm(), name


def test_searching_gathers_nothing() -> None:
    model = random_model(small())
    seen = []
    model.decoder.recurrence.register_forward_hook(lambda *_: seen.append(is_gathering()))
    source, mask = padded(list(PADDED))
    memory, state = model.encode(source, mask)
    model.step(torch.tensor([2, 2, 2]), state, memory)
    with torch.no_grad():
        model.decode(padded(TARGETS)[0], state, memory)
    assert seen
    assert not any(seen)


def test_recipes_of_the_papers_gather_while_training() -> None:
    model = random_model(small(order="luong-feeding", score="general"))
    seen = []
    model.decoder.recurrence.register_forward_hook(lambda *_: seen.append(is_gathering()))
    gradients(model)
    assert seen == [True] * 4


def test_the_steps_of_an_encoder_are_the_layer_of_pytorch() -> None:
    torch.manual_seed(1)
    layer = torch.nn.GRU(3, 5, batch_first=True).double()
    values = torch.randn(4, 6, 3, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(4, 6, 5, dtype=torch.float64)
    ours, (theirs, _) = gru_steps(layer, values), layer(values)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    inputs = [values, *layer.parameters()]
    each = (torch.autograd.grad(states, inputs, upstream) for states in (ours, theirs))
    for mine, other in zip(*each, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-9)
