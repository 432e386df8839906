"""What must hold for the whole model whatever its settings: steps, batch companions, tying, seeds, dropout, gradients."""

from dataclasses import fields, replace
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from nmt.model.seq2seq import Seq2Seq, build_model
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call

from nmt import recipe
from nmt.model.decoder import DecoderState
from tests.reference.settings import ATTENTIONS, BRIDGES, CELLS, ORDERS, READOUTS, SCORES, SWITCHES, WINDOWS, small

SIZE = 11
PRESETS = list(product(ATTENTIONS, ORDERS))
PLACES = ("embedding", "word", "annotations", "layers", "recurrent", "readout")
UNLIKE = ("bahdanau-conditional", "luong-feeding")
"""The order with two stacks and the one that is fed: between them they pass every switch's code."""
NAMES = [f"{score}-{window}-{order}" for (score, window), order in PRESETS]


def build(tree: dict, *, seed: int = 1) -> Seq2Seq:
    torch.manual_seed(seed)
    return build_model(recipe.ModelConfig.model_validate(tree), source_size=SIZE, target_size=SIZE).double().eval()


def switched(switch: str, **settings: Any) -> dict:
    return small(**SWITCHES[switch] | settings)


def random_ids(rows: int, width: int) -> Tensor:
    return torch.randint(0, SIZE, (rows, width), generator=torch.Generator().manual_seed(3))


def mask_of(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


def assert_close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("attention", "order"), PRESETS, ids=NAMES)
def test_every_combination_builds_and_learns_from_a_batch(attention: tuple[str, str], order: str) -> None:
    model = build(small(score=attention[0], window=attention[1], order=order, cell="lstm", layers=2, dropout=0.3))
    readouts, alignment = model.train()(random_ids(2, 5), mask_of([5, 3]), random_ids(2, 4))
    assert readouts.shape == (2, 4, 2)
    assert alignment.shape == (2, 4, 5)
    model.logits(readouts).logsumexp(-1).sum().backward()
    untouched = {name for name, weight in model.named_parameters() if weight.grad is None}
    assert not untouched
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("order", UNLIKE)
@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_builds_and_learns_from_a_batch(switch: str, order: str) -> None:
    model = build(switched(switch, order=order, dropout={"layers": 0.3, "readout": 0.3}))
    readouts, alignment = model.train()(random_ids(2, 8), mask_of([8, 3]), random_ids(2, 4))
    assert (readouts.shape, alignment.shape) == ((2, 4, 2), (2, 4, 8))
    model.logits(readouts).logsumexp(-1).sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize(("attention", "order"), PRESETS, ids=NAMES)
@pytest.mark.parametrize("cell", CELLS)
def test_single_steps_equal_decoding_the_whole_target(attention: tuple[str, str], order: str, cell: str) -> None:
    assert_steps_equal_the_whole(small(score=attention[0], window=attention[1], order=order, cell=cell, layers=2))


@pytest.mark.parametrize("order", UNLIKE)
@pytest.mark.parametrize("switch", SWITCHES)
def test_single_steps_equal_decoding_the_whole_target_with_every_switch(switch: str, order: str) -> None:
    assert_steps_equal_the_whole(switched(switch, order=order))


def assert_steps_equal_the_whole(tree: dict) -> None:
    model, target = build(tree), random_ids(2, 4)
    with torch.no_grad():
        memory, state = model.encode(random_ids(2, 8), mask_of([8, 3]))
        decoded = model.decode(target, state, memory)
        for step in range(4):
            readout, weights, state = model.step(target[:, step], state, memory)
            assert_close(readout, decoded.readouts[:, step])
            assert_close(weights, decoded.alignment[:, step])
    for field in fields(DecoderState):
        if getattr(state, field.name) is not None:
            assert_close(getattr(state, field.name), getattr(decoded.state, field.name))


@pytest.mark.parametrize(("attention", "order"), PRESETS, ids=NAMES)
def test_companions_and_padding_change_nothing(attention: tuple[str, str], order: str) -> None:
    for cell, bridge in (("gru", "mean"), ("lstm", "final")):
        tree = small(score=attention[0], window=attention[1], order=order, cell=cell, layers=2, bridge=bridge)
        assert_companions_change_nothing(build(tree))


@pytest.mark.parametrize("order", UNLIKE)
@pytest.mark.parametrize("switch", SWITCHES)
def test_companions_and_padding_change_nothing_with_any_switch(switch: str, order: str) -> None:
    assert_companions_change_nothing(build(switched(switch, order=order)))


def assert_companions_change_nothing(model: Seq2Seq) -> None:
    lengths, source, target = [3, 9, 1], random_ids(3, 9), random_ids(3, 6)
    with torch.no_grad():
        readouts, alignment = model(source, mask_of(lengths), target)
        for row, length in enumerate(lengths):
            alone = model(source[row : row + 1, :length], mask_of([length]), target[row : row + 1])
            assert_close(readouts[row : row + 1], alone[0])
            assert_close(alignment[row : row + 1, :, :length], alone[1])
            assert (alignment[row, :, length:] == 0).all()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("order", ORDERS)
def test_picked_rows_go_on_as_they_would_have(order: str, cell: str) -> None:
    assert_picked_rows_go_on(build(small(order=order, cell=cell, layers=2, window="local-m")))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("switch", ["copy-lstm", "heads-coverage", "heads-coverage-local-p"])
def test_picked_rows_go_on_with_heads_and_coverage(switch: str, order: str) -> None:
    assert_picked_rows_go_on(build(switched(switch, order=order)))


def assert_picked_rows_go_on(model: Seq2Seq) -> None:
    rows = torch.tensor([2, 0, 2])
    with torch.no_grad():
        memory, state = model.encode(random_ids(3, 5), mask_of([5, 2, 4]))
        _, _, state = model.step(random_ids(3, 1)[:, 0], state, memory)
        token = torch.tensor([4, 7, 9])
        readout, weights, after = model.step(token[rows], state.select(rows), memory.select(rows))
        all_readouts, all_weights, all_after = model.step(token, state, memory)
    assert_close(readout, all_readouts[rows])
    assert_close(weights, all_weights[rows])
    for field in fields(DecoderState):
        picked, everything = getattr(after, field.name), getattr(all_after, field.name)
        assert (picked is None) == (everything is None)
        if picked is not None:
            assert_close(picked, everything[rows])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("switch", [name for name in SWITCHES if "coverage" in name])
def test_coverage_is_the_sum_of_what_was_attended_to(switch: str, order: str) -> None:
    model = build(switched(switch, order=order))
    with torch.no_grad():
        memory, state = model.encode(random_ids(3, 8), mask_of([8, 1, 4]))
        assert (state.coverage == 0).all()
        decoded = model.decode(random_ids(3, 5), state, memory)
    assert_close(decoded.state.coverage, decoded.alignment.sum(1))
    if "local" not in switch:
        assert_close(decoded.alignment.sum(2), torch.ones(3, 5, dtype=torch.float64))


@pytest.mark.parametrize("switch", [name for name in SWITCHES if "coverage" not in name])
def test_only_scores_that_look_at_coverage_make_a_state_carry_it(switch: str) -> None:
    assert build(switched(switch)).encode(random_ids(2, 5), mask_of([5, 3]))[1].coverage is None


def test_what_was_attended_to_changes_what_is_attended_to_next() -> None:
    model = build(small(coverage=True))
    with torch.no_grad():
        memory, state = model.encode(random_ids(2, 5), mask_of([5, 3]))
        read = replace(state, coverage=state.coverage + torch.tensor([1.0, 0.0, 2.0, 0.0, 0.0]))
        weights = [model.step(random_ids(2, 1)[:, 0], each, memory)[1] for each in (state, read)]
    assert not torch.equal(*weights)


@pytest.mark.parametrize("cell", CELLS)
def test_the_copy_bridge_hands_the_decoder_what_each_encoder_layer_ended_with(cell: str) -> None:
    tree = small(bridge="copy", layers=2, cell=cell)
    model, lengths = build(tree), torch.tensor([5, 3])
    with torch.no_grad():
        embedded = model.source_embedding(random_ids(2, 5))
        encoded = model.encoder(embedded, mask_of([5, 3]))
        _, state = model.encode(random_ids(2, 5), mask_of([5, 3]))
    assert torch.equal(state.hidden, encoded.final)
    assert torch.equal(state.hidden[:, -1, :2], encoded.annotations[[0, 1], lengths - 1, :2])
    assert torch.equal(state.hidden[:, -1, 2:], encoded.annotations[:, 0, 2:])
    if cell == "lstm":
        assert torch.equal(state.cell, encoded.cell)
        assert (torch.tanh(state.cell).abs() >= state.hidden.abs()).all()  # s = o tanh(c), o < 1


def test_nothing_of_a_sentence_stays_on_the_model() -> None:
    model = build(small(order="luong-feeding", window="local-m"))
    source, target = random_ids(2, 5), random_ids(2, 4)
    with torch.no_grad():
        first = model(source, mask_of([5, 3]), target)
        model(source.flip(0), mask_of([5, 3]), target.flip(1))
        again = model(source, mask_of([5, 3]), target)
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])


def test_without_attention_the_context_is_the_final_states_at_every_step() -> None:
    model = build(small(score="none"))
    with torch.no_grad():
        memory, state = model.encode(random_ids(2, 5), mask_of([5, 3]))
        decoded = model.decode(random_ids(2, 4), state, memory)
    assert torch.equal(memory.summary[:, 2:], memory.annotations[:, 0, 2:])
    assert torch.equal(memory.summary[0, :2], memory.annotations[0, 4, :2])
    assert torch.equal(memory.summary[1, :2], memory.annotations[1, 2, :2])
    assert (decoded.alignment == 0).all()


# --- tying, seeds -------------------------------------------------------------------------------------------------


def test_tied_weights_are_one_storage_and_counted_once() -> None:
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


def test_tied_weights_stay_one_through_an_update() -> None:
    model = build(small(tie="all")).train()
    readouts, _ = model(random_ids(2, 5), mask_of([5, 3]), random_ids(2, 4))
    model.logits(readouts).square().sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert torch.equal(model.output.weight, model.source_embedding.weight)
    assert torch.equal(model.output.weight, model.target_embedding.weight)


def test_a_seed_decides_every_initial_weight() -> None:
    one, same, other = (build(small(layers=2), seed=seed).state_dict() for seed in (5, 5, 6))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["encoder.rightward.0.weight_hh_l0"], other["encoder.rightward.0.weight_hh_l0"])


@pytest.mark.parametrize("tie", ["none", "target"])
def test_a_fresh_model_is_nearly_indifferent_between_words(tie: str) -> None:
    model = build(small(tie=tie, embedding=64, annotation=64))
    with torch.no_grad():
        readouts, _ = model(random_ids(2, 5), mask_of([5, 3]), random_ids(2, 4))
        log_p = torch.log_softmax(model.logits(readouts), -1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    assert entropy.min() > 0.8 * torch.log(torch.tensor(float(SIZE)))


# --- dropout ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("variational", [False, True])
def test_each_dropout_acts_in_training_alone(place: str, variational: bool) -> None:
    rates = dict.fromkeys(PLACES, 0.0) | {place: 0.5}
    model = build(small(layers=2, annotation=16, dropout=rates | {"variational": variational}))
    plain = build(small(layers=2, annotation=16))
    plain.load_state_dict(model.state_dict())
    given = random_ids(2, 5), mask_of([5, 3]), random_ids(2, 4)
    with torch.no_grad():
        expected = plain.train()(*given)[0]
        assert torch.equal(model.eval()(*given)[0], expected)
        torch.manual_seed(1)
        assert not torch.equal(model.train()(*given)[0], expected)


@pytest.mark.parametrize("order", ORDERS)
def test_dropout_between_layers_is_new_at_every_step_of_the_decoder_and_leaves_residuals_alone(order: str) -> None:
    rates = dict.fromkeys(PLACES, 0.0) | {"layers": 0.5}
    model = build(small(order=order, annotation=16, layers=2, residual=True, dropout=rates)).train()
    with torch.no_grad():
        memory, state = model.encode(random_ids(2, 5), mask_of([5, 3]))
        seen: list[Tensor] = []
        model.decoder.recurrence.below[0].register_forward_pre_hook(lambda _, given: seen.append(given[0] == 0))
        decoded = model.decode(random_ids(2, 4), state, memory)
    assert len(seen) == 4
    assert not any(torch.equal(one, other) for one, other in pairwise(seen))
    assert 0 < torch.stack(seen).double().mean() < 1
    assert (decoded.state.hidden != 0).all()


@pytest.mark.parametrize("variational", [False, True])
@pytest.mark.parametrize("switch", ["forward", "residual", "layer-norm", "copy-lstm"])
def test_dropout_between_layers_acts_in_the_encoder_and_not_below_its_first_layer(
    switch: str, variational: bool
) -> None:
    rates = dict.fromkeys(PLACES, 0.0) | {"layers": 0.5, "variational": variational}
    model = build(switched(switch, annotation=16, dropout=rates))
    embedded, mask = model.source_embedding(random_ids(2, 5)), mask_of([5, 3])
    with torch.no_grad():
        quiet, loud = model.encoder.eval()(embedded, mask), model.encoder.train()(embedded, mask)
    assert torch.equal(quiet.final[:, 0], loud.final[:, 0])
    assert not torch.equal(quiet.final[:, 1], loud.final[:, 1])


def test_a_single_layer_has_no_dropout_between_layers() -> None:
    model = build(small(annotation=16, dropout=dict.fromkeys(PLACES, 0.0) | {"layers": 0.9}))
    given = random_ids(2, 5), mask_of([5, 3]), random_ids(2, 4)
    with torch.no_grad():
        assert torch.equal(model.train()(*given)[0], model.eval()(*given)[0])


@pytest.mark.parametrize("order", ORDERS)
def test_recurrent_dropout_has_one_mask_for_all_steps_of_a_sentence(order: str) -> None:
    rates = dict.fromkeys(PLACES, 0.0) | {"recurrent": 0.5}
    model = build(small(order=order, annotation=16, dropout=rates)).train()
    memory, state = model.encode(random_ids(2, 5), mask_of([5, 3]))
    seen: list[Tensor] = []
    matrix = model.decoder.recurrence.cells[0].recurrent
    matrix.register_forward_pre_hook(lambda _, given: seen.append(given[0] == 0))
    model.decode(random_ids(2, 4), state, memory)
    assert len(seen) == 4
    assert all(torch.equal(step, seen[0]) for step in seen)
    assert 0 < seen[0].double().mean() < 1
    assert not torch.equal(seen[0][0], seen[0][1])


# --- gradients ----------------------------------------------------------------------------------------------------

DEEP = [name for name in SWITCHES if not name.startswith(("heads", "coverage", "ratio"))]


def slow_unless_quick(score: str, window: str, order: str) -> list[pytest.MarkDecorator]:
    """The default suite takes a third, in which each score meets each window and each order, and each window each order."""
    number = SCORES.index(score) + WINDOWS.index(window) + list(ORDERS).index(order)
    return [pytest.mark.slow] * (number % 3 > 0)


GRADIENTS = [
    *(
        pytest.param(
            small(score=score, window=window, half_width=2, order=order), marks=slow_unless_quick(score, window, order)
        )
        for (score, window), order in PRESETS
    ),
    *(switched(switch, order="luong-feeding", layers=1 + ("residual" in switch)) for switch in DEEP),
    *(switched("heads-coverage", order=order) for order in ("bahdanau", "luong")),
    small(window="local-p", order="bahdanau-conditional"),
    *(small(cell=cell, order=order, layers=2) for cell, order in product(CELLS, ORDERS)),
    *(small(readout=readout, order=order) for readout, order in product(READOUTS, ORDERS)),
    *(small(bridge=bridge) for bridge in BRIDGES),
    small(tie="all"),
]


@pytest.mark.parametrize("tree", GRADIENTS, ids=list(map(str, range(len(GRADIENTS)))))
def test_gradients_through_time_are_those_of_the_function(tree: dict) -> None:
    model = build(tree)
    named = dict(model.named_parameters())
    width = 7 if tree["attention"]["window"].get("half_width") == 1 else 4  # of 7 words a window of D = 1 is cut out
    given = random_ids(2, width), mask_of([width, 2]), random_ids(2, 3)

    def run(*weights: Tensor) -> tuple[Tensor, Tensor]:
        readouts, alignment = functional_call(model, dict(zip(named, weights, strict=True)), given)
        return readouts, alignment

    assert gradcheck(run, tuple(weight.detach().clone().requires_grad_() for weight in named.values()), fast_mode=True)
