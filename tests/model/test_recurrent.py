"""Properties of the whole model with any settings: batches, steps, rows, gradients, tying, seeds, dropout."""

from __future__ import annotations

from dataclasses import fields
from itertools import cycle, pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt import recipe
from nmt.data.batching import Batch
from nmt.model.decoder import Decoded, RecurrentState
from nmt.model.interface import AttendsToPositions, DecoderState, Memory, ModelOutput, Step
from nmt.model.recurrent import RecurrentModel
from tests.model.cases import CASE_NAMES, CASES, tree_of
from tests.model.models import mask_of, random_batch, random_model
from tests.pairwise import Case
from tests.reference.settings import ORDERS, SWITCHES, small

SIZE = 11
DROPOUTS = ("embedding", "word", "annotations", "layers", "recurrent", "readout")


def build(tree: dict[str, Any], *, seed: int = 1) -> RecurrentModel:
    """A freshly initialized model."""
    torch.manual_seed(seed)
    return (
        RecurrentModel(recipe.RecurrentModelConfig.model_validate(tree), source_size=SIZE, target_size=SIZE)
        .double()
        .eval()
    )


def switched(switch: str, **settings: Any) -> dict[str, Any]:
    return small(**SWITCHES[switch] | settings)


def decode(model: RecurrentModel, batch: Batch) -> Decoded:
    """The decoder's output with teacher forcing."""
    memory = model.encode(batch.source, batch.source_mask)
    return model.decoder(model.embed(batch.target_in), model.start(memory), memory.attention)


def log_probs_of(step: Step) -> Tensor:
    assert isinstance(step.log_probs, Tensor)
    return step.log_probs


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


def assert_same_state(actual: RecurrentState, expected: RecurrentState) -> None:
    for field in fields(RecurrentState):
        ours, theirs = getattr(actual, field.name), getattr(expected, field.name)
        assert (ours is None) == (theirs is None), field.name
        if ours is not None:
            assert_close(ours, theirs)


def test_the_model_implements_the_protocols_of_the_interface() -> None:
    model, batch = build(small()), random_batch([5, 3], [4, 2])
    memory = model.encode(batch.source, batch.source_mask)
    assert isinstance(memory, Memory)
    assert isinstance(model.start(memory), DecoderState)
    assert isinstance(model, AttendsToPositions)


# --- batches ------------------------------------------------------------------------------------------------------


def test_without_smoothing_the_loss_is_the_negative_log_likelihood_of_the_targets() -> None:
    batch = random_batch([5, 3], [4, 2])
    output = random_model(small())(batch)
    assert_close(output.loss, output.nll)
    assert output.tokens == 6
    assert output.loss.requires_grad
    assert not output.token_log_probs.requires_grad
    log_probs = torch.tensor([[-1.0, -2.0], [-4.0, 0.0]])
    assert ModelOutput(torch.tensor(0.0), log_probs, torch.zeros(2, 2, 1), tokens=torch.tensor(3)).nll == 7


def test_the_model_keeps_no_state_between_batches() -> None:
    model = build(small(order="luong-feeding", window="local-m"))
    batch, other = random_batch([5, 3], [4, 4]), random_batch([2, 7], [3, 1])
    with torch.no_grad():
        first, _, again = model(batch), model(other), model(batch)
    assert torch.equal(first.token_log_probs, again.token_log_probs)
    assert torch.equal(first.alignment, again.alignment)


# --- steps and rows -----------------------------------------------------------------------------------------------

STEPPED = [
    small(score="additive", coverage=True, heads=2, window="local-p", cell="lstm", layers=2, order="bahdanau"),
    small(score="general", window="local-m", bridge="copy", layers=2, residual=True, order="bahdanau-conditional"),
    small(score="none", layer_norm=True, order="luong"),
    small(score="concat", coverage=True, window="local-p", cell="lstm", layers=2, order="luong-feeding"),
]
every_order = pytest.mark.parametrize("tree", STEPPED, ids=ORDERS)


@every_order
def test_selected_rows_continue_like_the_original_ones(tree: dict[str, Any]) -> None:
    model, everything = random_model(tree), torch.arange(3)
    batch = random_batch([5, 2, 4], [2, 2, 2])
    with torch.no_grad():
        memory = model.encode(batch.source, batch.source_mask)
        state = model.step(batch.target_in[:, 0], model.start(memory), memory, everything).state
        tokens = batch.target_in[:, 1]
        whole = model.step(tokens, state, memory, everything)
        for rows in (torch.tensor([0, 2, 2]), torch.tensor([2, 0, 2])):
            assert_same_state(model.start(memory.select(rows)), model.start(memory).select(rows))
            for sentences, indices in ((memory, rows), (memory.select(rows), everything)):
                step = model.step(tokens[rows], state.select(rows), sentences, indices)
                assert_close(log_probs_of(step), log_probs_of(whole)[rows])
                assert_close(step.weights, whole.weights[rows])
                assert_same_state(step.state, whole.state.select(rows))


@pytest.mark.parametrize(("window", "centers"), [("global", None), ("local-m", [[0, 0]])])
def test_a_step_returns_the_centers_of_its_windows(window: str, centers: list[list[int]] | None) -> None:
    model, batch = random_model(small(window=window, heads=2)), random_batch([3], [1])
    memory = model.encode(batch.source, batch.source_mask)
    step = model.step(batch.target_in[:, 0], model.start(memory), memory, torch.tensor([0]))
    assert (step.centers if step.centers is None else step.centers.tolist()) == centers


# --- gradients ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=CASE_NAMES)
def test_gradients_equal_finite_differences_and_reach_every_weight(case: Case) -> None:
    """Compared along a random direction in the space of all weights, in training mode, with the same dropout in each pass."""
    model = random_model(tree_of(case, dropout=dict.fromkeys(DROPOUTS, 0.2))).train()
    batch, weights = random_batch([7, 2], [3, 1]), list(model.parameters())
    direction = [torch.randn_like(weight) for weight in weights]
    of_alignment = torch.randn(2, 3, 7, dtype=torch.float64)

    def value(step: float) -> Tensor:
        with torch.no_grad():
            for weight, along in zip(weights, direction, strict=True):
                weight.add_(along, alpha=step)
        torch.manual_seed(2)
        output = model(batch, 0.1)
        return output.loss + (output.alignment * of_alignment).sum()

    value(0.0).backward()
    slope = 0.0
    for (name, weight), along in zip(model.named_parameters(), direction, strict=True):
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        slope += (weight.grad * along).sum().item()
    with torch.no_grad():
        above, below = value(1e-6).item(), value(-2e-6).item()
    assert (above - below) / 2e-6 == pytest.approx(slope, rel=1e-6, abs=1e-6)


# --- tying, seeds -------------------------------------------------------------------------------------------------


def test_tied_weights_share_one_storage_and_count_once() -> None:
    sizes = {tie: sum(weight.numel() for weight in build(small(tie=tie)).parameters()) for tie in ("target", "all")}
    table = SIZE * small()["embedding"]
    assert sizes["target"] - sizes["all"] == table
    target, everything = build(small(tie="target")), build(small(tie="all"))
    assert target.output.weight is target.target_embedding.weight
    assert target.source_embedding.weight is not target.target_embedding.weight
    assert everything.output.weight is everything.source_embedding.weight
    free = build(small(tie="none"))
    tables = (free.output, free.source_embedding, free.target_embedding)
    assert len({table.weight.data_ptr() for table in tables}) == 3


def test_the_seed_determines_every_initial_weight() -> None:
    first, second, other = (build(small(layers=2), seed=seed).state_dict() for seed in (5, 5, 6))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["encoder.rightward.0.weight_hh_l0"], other["encoder.rightward.0.weight_hh_l0"])


# --- dropout ------------------------------------------------------------------------------------------------------


def token_log_probs(model: RecurrentModel, batch: Batch) -> Tensor:
    with torch.no_grad():
        return model(batch).token_log_probs


@pytest.mark.parametrize(("dropout", "variational"), list(zip(DROPOUTS * 2, cycle([False, True, True]), strict=False)))
def test_each_dropout_acts_only_in_training(dropout: str, variational: bool) -> None:
    rates = dict.fromkeys(DROPOUTS, 0.0) | {dropout: 0.5}
    model = build(small(layers=2, annotation=16, dropout=rates | {"variational": variational}))
    plain = build(small(layers=2, annotation=16))
    plain.load_state_dict(model.state_dict())
    batch = random_batch([5, 3], [4, 4])
    expected = token_log_probs(plain.train(), batch)
    assert torch.equal(token_log_probs(model.eval(), batch), expected)
    torch.manual_seed(1)
    assert not torch.equal(token_log_probs(model.train(), batch), expected)


@pytest.mark.parametrize("order", ORDERS)
def test_dropout_between_decoder_layers_has_a_new_mask_per_step_and_spares_the_residual_path(order: str) -> None:
    rates = dict.fromkeys(DROPOUTS, 0.0) | {"layers": 0.5}
    model = build(small(order=order, annotation=16, layers=2, residual=True, dropout=rates)).train()
    dropped: list[Tensor] = []
    model.decoder.recurrence.below[0].register_forward_pre_hook(lambda _, inputs: dropped.append(inputs[0] == 0))
    with torch.no_grad():
        decoded = decode(model, random_batch([5, 3], [4, 4]))
    assert len(dropped) == 4
    assert not any(torch.equal(mask, next_mask) for mask, next_mask in pairwise(dropped))
    assert 0 < torch.stack(dropped).double().mean() < 1
    assert (decoded.state.hidden != 0).all()


@pytest.mark.parametrize("variational", [False, True])
@pytest.mark.parametrize("switch", ["forward", "residual", "layer-norm", "copy-lstm"])
def test_dropout_between_layers_acts_in_the_encoder_and_not_below_its_first_layer(
    switch: str, variational: bool
) -> None:
    rates = dict.fromkeys(DROPOUTS, 0.0) | {"layers": 0.5, "variational": variational}
    model = build(switched(switch, annotation=16, dropout=rates))
    embedded, mask = model.source_embedding(random_batch([5, 3], [1, 1]).source), mask_of([5, 3])
    with torch.no_grad():
        plain, dropped = model.encoder.eval()(embedded, mask), model.encoder.train()(embedded, mask)
    assert torch.equal(plain.final[:, 0], dropped.final[:, 0])
    assert not torch.equal(plain.final[:, 1], dropped.final[:, 1])


@pytest.mark.parametrize("order", ORDERS)
def test_recurrent_dropout_has_one_mask_for_all_steps_of_a_sentence(order: str) -> None:
    rates = dict.fromkeys(DROPOUTS, 0.0) | {"recurrent": 0.5}
    model = build(small(order=order, annotation=16, dropout=rates)).train()
    dropped: list[Tensor] = []
    matrix = model.decoder.recurrence.cells[0].get_submodule("recurrent")
    matrix.register_forward_pre_hook(lambda _, inputs: dropped.append(inputs[0] == 0))
    decode(model, random_batch([5, 3], [4, 4]))
    assert len(dropped) == 4
    assert all(torch.equal(step, dropped[0]) for step in dropped)
    assert 0 < dropped[0].double().mean() < 1
    assert not torch.equal(dropped[0][0], dropped[0][1])


def test_without_attention_the_context_is_the_final_states_at_every_step() -> None:
    model, batch = build(small(score="none")), random_batch([5, 3], [4, 4])
    with torch.no_grad():
        memory = model.encode(batch.source, batch.source_mask).attention
        output = model(batch)
    assert torch.equal(memory.summary[:, 2:], memory.annotations[:, 0, 2:])
    assert torch.equal(memory.summary[0, :2], memory.annotations[0, 4, :2])
    assert torch.equal(memory.summary[1, :2], memory.annotations[1, 2, :2])
    assert (output.alignment == 0).all()
