"""The whole model agrees with the NumPy reference to 1e-10 in float64: teacher-forced, step by step, and at each position."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.agreement import PADDED, TARGETS, assert_model_agrees, assert_positions_agree
from tests.model.cases import CASE_NAMES, CASES, tree_of
from tests.model.models import SOURCE_SIZE, TARGET_SIZE, random_model
from tests.pairwise import Case, pairwise_cases
from tests.reference import decoder as reference
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
    tree = tree_of(case)
    assert_positions_agree(random_model(tree), tree, reference.seq2seq)


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
        coverage=score != "none" and draw(st.booleans()),
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


@settings(max_examples=30)
@given(
    model_trees(),
    st.lists(st.tuples(sentences(SOURCE_SIZE, 16), sentences(TARGET_SIZE, 4)), min_size=1, max_size=3),
    st.integers(0, 2**16),
)
def test_any_model_on_any_batch(tree: dict[str, Any], pairs: list[tuple[list[int], list[int]]], seed: int) -> None:
    assert_agrees(tree, [source for source, _ in pairs], [target for _, target in pairs], seed)
