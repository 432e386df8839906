"""The whole model agrees with the NumPy reference to 1e-10 in float64: teacher-forced, step by step, and at each position."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.agreement import PADDED, TARGETS, assert_model_agrees, close
from tests.model.cases import CASE_NAMES, CASES, tree_of
from tests.model.models import SOURCE_SIZE, TARGET_SIZE, fed, padded, random_model, weights_of
from tests.pairwise import Case, pairwise_cases
from tests.reference import decoder as reference
from tests.reference.loss import log_softmax
from tests.reference.settings import ATTENTIONS, BRIDGES, CELLS, DIRECTIONS, ORDERS, READOUTS, SWITCHES, small


def assert_agrees(tree: dict[str, Any], sources: list[list[int]], targets: list[list[int]], seed: int = 1) -> None:
    """Compare a recurrent model with random weights."""
    assert_model_agrees(random_model(tree, seed), tree, reference.seq2seq, sources, targets)


# --- every pair of settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=CASE_NAMES)
def test_every_pair_of_settings(case: Case) -> None:
    assert_agrees(tree_of(case), list(PADDED), list(TARGETS))


@pytest.mark.parametrize(("switch", "order"), list(zip(SWITCHES, cycle(ORDERS), strict=False)))
def test_every_switch_in_some_order(switch: str, order: str) -> None:
    assert_agrees(small(**SWITCHES[switch], order=order), list(PADDED), list(TARGETS))


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.5, 2.0])
def test_every_ratio_of_the_monotonic_window(ratio: float) -> None:
    assert_agrees(small(window="local-m", ratio=ratio, half_width=1), list(PADDED[:2]), [[2, 7, 1, 4, 5], [2, 3, 3, 0]])


def test_one_source_token_and_one_target_token() -> None:
    for order in ORDERS:
        assert_agrees(small(order=order, layers=2), [[4]], [[2]])


# --- attention to one position ------------------------------------------------------------------------------------

ALONE = pairwise_cases(
    {
        "order": list(ORDERS),
        "score": ["additive", "dot", "general"],
        "window": ["global", "local-m", "local-p"],
        "readout": READOUTS,
        "heads": [1, 2],
        "cell": CELLS,
        "layers": [1, 2],
        "residual": [False, True],
    }
)


@pytest.mark.parametrize("case", ALONE, ids=[f"{case['order']}-{case['score']}-{case['window']}" for case in ALONE])
def test_token_probabilities_given_attention_to_a_single_position(case: Case) -> None:
    tree, source, gold = tree_of(case), [3, 5, 2], [7, 1]
    model = random_model(tree)
    memory, rows = model.encode(*padded([source, [6]])), torch.arange(2)
    state, allowed = model.start(memory), torch.tensor([[True, False, True], [False, False, False]])
    for t, (token, gold_token) in enumerate(zip(fed(gold), gold, strict=True)):
        tokens, golds = torch.tensor([token, token]), torch.tensor([gold_token, gold_token])
        with torch.no_grad():
            log_probs = model.position_log_probs(tokens, golds, state, memory, allowed)
            state = model.step(tokens, state, memory, rows).state
        assert (log_probs[~allowed] == -torch.inf).all()
        for j in (0, 2):
            _, _, logits = reference.seq2seq(source, fed(gold), tree, weights_of(model), only={t: j})
            close(log_probs[0, j], log_softmax(logits[t])[gold_token])


# --- any model ----------------------------------------------------------------------------------------------------


@st.composite
def model_trees(draw: st.DrawFn) -> dict[str, Any]:
    """Any valid small model."""
    score, window = draw(st.sampled_from(ATTENTIONS))
    direction = draw(st.sampled_from(DIRECTIONS))
    bridge = draw(st.sampled_from([bridge for bridge in BRIDGES if (direction, bridge) != ("forward", "backward")]))
    cell, layers = draw(st.sampled_from(CELLS)), draw(st.integers(1, 3))
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
        cell=cell,
        layers=layers,
        decoder_cell=cell if bridge == "copy" else draw(st.sampled_from(CELLS)),
        decoder_layers=layers if bridge == "copy" else draw(st.integers(1, 3)),
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


@settings(deadline=None, max_examples=30)
@given(
    model_trees(),
    st.lists(st.tuples(sentences(SOURCE_SIZE, 16), sentences(TARGET_SIZE, 4)), min_size=1, max_size=3),
    st.integers(0, 2**16),
)
def test_any_model_on_any_batch(tree: dict[str, Any], pairs: list[tuple[list[int], list[int]]], seed: int) -> None:
    assert_agrees(tree, [source for source, _ in pairs], [target for _, target in pairs], seed)
