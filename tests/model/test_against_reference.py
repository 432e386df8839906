"""The whole model, unrolled over known targets, agrees with the NumPy equations in float64 to 1e-10."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nmt.model.seq2seq import Seq2Seq, build_model

from nmt import recipe
from tests.reference import decoder as reference
from tests.reference.settings import ATTENTIONS, BRIDGES, CELLS, DIRECTIONS, ORDERS, READOUTS, SWITCHES, small

SOURCE_SIZE, TARGET_SIZE = 9, 8
PADDED = ([3, 8, 2, 5, 4, 7, 1], [6], [7, 1, 2])  # of 7 words a window of D = 1 is cut out, of D = 2 masked
BACKWARD_FROM_NONE = ("forward", "backward")
"""The one direction from which there is no backward state to start with."""


def random_model(tree: dict, seed: int = 1) -> Seq2Seq:
    """A model in float64 whose every weight, biases included, is random and large enough to matter."""
    torch.manual_seed(seed)
    sizes = {"source_size": TARGET_SIZE if tree["tie"] == "all" else SOURCE_SIZE, "target_size": TARGET_SIZE}
    model = build_model(recipe.ModelConfig.model_validate(tree), **sizes).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.6)
    return model


def assert_agrees(tree: dict, sources: list[list[int]], targets: list[list[int]], seed: int = 1) -> None:
    """All three of readouts, alignment and logits, for every sentence of a padded batch."""
    model = random_model(tree, seed)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    source, source_mask = padded(sources)
    target_in, _ = padded(targets)
    with torch.no_grad():
        readouts, alignment = model(source, source_mask, target_in)
        logits = model.logits(readouts)
    for row, (words, target) in enumerate(zip(sources, targets, strict=True)):
        expected = reference.seq2seq(words, target, tree, weights)
        steps = slice(len(target))
        made = (readouts[row, steps], alignment[row, steps, : len(words)], logits[row, steps])
        for ours, theirs in zip(made, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
        assert (alignment[row, :, len(words) :] == 0).all()


def padded(sequences: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, sequences))
    mask = torch.arange(width).unsqueeze(0) < torch.tensor([[len(ids)] for ids in sequences])
    return torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in sequences]), mask


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_every_attention_in_every_order(score: str, window: str, order: str, cell: str) -> None:
    tree = small(score=score, window=window, order=order, cell=cell)
    assert_agrees(tree, list(PADDED), [[2, 7, 1], [2, 3, 3], [2, 5, 6]])


@pytest.mark.parametrize(("cell", "order", "layers"), list(product(CELLS, ORDERS, (2, 3))))
def test_stacked_layers(cell: str, order: str, layers: int) -> None:
    assert_agrees(small(cell=cell, order=order, layers=layers), list(PADDED), [[2, 7], [2, 3], [2, 5]])


@pytest.mark.parametrize(("readout", "order"), list(product(READOUTS, ORDERS)))
def test_every_readout_in_every_order(readout: str, order: str) -> None:
    assert_agrees(small(readout=readout, order=order), list(PADDED), [[2, 7, 1], [2, 3, 3], [2, 5, 6]])


@pytest.mark.parametrize(("bridge", "cell", "layers"), list(product(BRIDGES, CELLS, (1, 2))))
def test_every_bridge(bridge: str, cell: str, layers: int) -> None:
    assert_agrees(small(bridge=bridge, cell=cell, layers=layers), list(PADDED), [[2], [2], [2]])


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize(("direction", "bridge"), list(product(DIRECTIONS[1:], BRIDGES))[1:])
def test_every_bridge_from_an_encoder_that_reads_one_way(direction: str, bridge: str, layer_norm: bool) -> None:
    for cell in CELLS:
        tree = small(direction=direction, bridge=bridge, layer_norm=layer_norm, cell=cell, layers=2)
        assert_agrees(tree, list(PADDED), [[2, 7], [2, 3], [2, 5]])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_in_every_order(switch: str, order: str) -> None:
    assert_agrees(small(**SWITCHES[switch], order=order), list(PADDED), [[2, 7, 1, 4], [2, 3, 3, 1], [2, 5, 6, 7]])


@pytest.mark.parametrize(("cell", "order", "layers"), list(product(CELLS, ORDERS, (1, 2, 3))))
def test_residual_and_normed_stacks(cell: str, order: str, layers: int) -> None:
    for residual, layer_norm in ((True, False), (False, True), (True, True)):
        tree = small(cell=cell, order=order, layers=layers, residual=residual, layer_norm=layer_norm)
        assert_agrees(tree, list(PADDED), [[2, 7], [2, 3], [2, 5]])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("score", "window"), [pair for pair in ATTENTIONS if pair[0] != "none"])
def test_every_attention_with_heads_and_coverage(score: str, window: str, order: str) -> None:
    covering = [False, True] if score in ("additive", "concat") else [False]
    for heads, coverage, half_width in product((1, 2), covering, (1, 2)):
        if window == "global" and half_width == 2:
            continue
        tree = small(score=score, window=window, order=order, half_width=half_width, heads=heads, coverage=coverage)
        assert_agrees(tree, list(PADDED), [[2, 7, 1], [2, 3, 3], [2, 5, 6]])


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.5, 2.0])
def test_every_ratio_of_the_monotonic_window(ratio: float) -> None:
    for heads, half_width in product((1, 2), (1, 3)):
        tree = small(window="local-m", ratio=ratio, heads=heads, half_width=half_width)
        assert_agrees(tree, list(PADDED[:2]), [[2, 7, 1, 4, 5], [2, 3, 3, 0, 1]])


@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_every_tying(tie: str) -> None:
    assert_agrees(small(tie=tie), [[3, 7, 2], [6]], [[2, 7, 1], [2, 3, 3]])


def test_one_sentence_of_one_word_and_one_step() -> None:
    for order, (score, window) in product(ORDERS, ATTENTIONS):
        assert_agrees(small(order=order, score=score, window=window), [[4]], [[2]])
    for order, switch in product(ORDERS, SWITCHES.values()):
        assert_agrees(small(order=order, **switch), [[4]], [[2]])


@st.composite
def anything(draw: st.DrawFn) -> dict:
    """Any model of any small size."""
    score, window = draw(st.sampled_from(ATTENTIONS))
    direction, bridge = draw(
        st.sampled_from([pair for pair in product(DIRECTIONS, BRIDGES) if pair != BACKWARD_FROM_NONE])
    )
    annotation = 2 * draw(st.integers(1, 3))
    heads = 1 if score == "none" else draw(st.integers(1, 2))
    return small(
        score=score,
        window=window,
        half_width=draw(st.integers(1, 3)),
        ratio=draw(st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0])),  # exact in binary, so that both sides round alike
        heads=heads,
        coverage=score in ("additive", "concat") and draw(st.booleans()),
        order=draw(st.sampled_from(list(ORDERS))),
        cell=draw(st.sampled_from(CELLS)),
        layers=draw(st.integers(1, 3)),
        direction=direction,
        residual=draw(st.booleans()),
        layer_norm=draw(st.booleans()),
        readout=draw(st.sampled_from(READOUTS)),
        bridge=bridge,
        embedding=draw(st.integers(1, 4)),
        annotation=annotation,
        hidden=annotation if score == "dot" or bridge == "copy" else heads * draw(st.integers(1, 3)),
    )


def sentences(size: int, longest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, size - 1), min_size=1, max_size=longest)


@settings(deadline=None, max_examples=80)
@given(
    anything(),
    st.lists(st.tuples(sentences(SOURCE_SIZE, 16), sentences(TARGET_SIZE, 4)), min_size=1, max_size=3),
    st.integers(0, 2**16),
)
def test_any_model_on_any_batch(tree: dict, pairs: list[tuple[list[int], list[int]]], seed: int) -> None:
    assert_agrees(tree, [source for source, _ in pairs], [target for _, target in pairs], seed)
