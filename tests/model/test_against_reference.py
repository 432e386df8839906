"""The whole model agrees with the NumPy reference to 1e-10 in float64: teacher-forced, step by step, and at each position."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.model.recurrent import RecurrentModel
from tests.model.cases import CASE_NAMES, CASES, tree_of
from tests.model.models import SOURCE_SIZE, TARGET_SIZE, batch_of, fed, padded, random_model, weights_of
from tests.pairwise import Case, pairwise_cases
from tests.reference import decoder as reference
from tests.reference.algebra import Array
from tests.reference.loss import log_softmax, smoothed_cross_entropy
from tests.reference.settings import ATTENTIONS, BRIDGES, CELLS, DIRECTIONS, ORDERS, READOUTS, SWITCHES, small

PADDED = ([3, 6, 2, 5, 4, 7, 1], [6], [7, 1, 2])
TARGETS = ([7, 1, 4, 4], [3, 3, 0], [5])
SMOOTHING = 0.1


def assert_agrees(tree: dict[str, Any], sources: list[list[int]], targets: list[list[int]], seed: int = 1) -> None:
    """Compare alignment, log-probabilities and loss of a padded batch, and every step of hypotheses for its sentences."""
    model = random_model(tree, seed)
    weights = weights_of(model)
    expected = [reference.seq2seq(ids, fed(gold), tree, weights) for ids, gold in zip(sources, targets, strict=True)]
    log_probs = [np.stack([log_softmax(row) for row in logits]) for _, _, logits in expected]
    with torch.no_grad():
        output = model(batch_of(sources, targets), SMOOTHING)
        steps = hypotheses(model, sources, targets)
    loss = 0.0
    for row, (readouts, alignment, _) in enumerate(expected):
        source, target = sources[row], targets[row]
        aligned = output.alignment[row, : len(target)]
        close(aligned[:, : len(source)], alignment)
        assert (output.alignment[row, :, len(source) :] == 0).all()
        close(output.token_log_probs[row, : len(target)], log_probs[row][range(len(target)), target])
        assert (output.token_log_probs[row, len(target) :] == 0).all()
        loss += smoothed_cross_entropy(readouts, weights["output.weight"], weights["output.bias"], target, SMOOTHING)[0]
        for t, step_log_probs, step_weights in steps[row]:
            close(step_log_probs, log_probs[row][t])
            close(step_weights[: len(source)], alignment[t])
            assert (step_weights[len(source) :] == 0).all()
    close(output.loss, np.array(loss))
    close(output.nll, -output.token_log_probs.sum().numpy())
    assert output.tokens == sum(map(len, targets))


Steps = list[tuple[int, torch.Tensor, torch.Tensor]]
"""Number, log-probabilities [V] and weights [S] of each step."""


def hypotheses(model: RecurrentModel, sources: list[list[int]], targets: list[list[int]]) -> list[Steps]:
    """The results of `step` for each sentence, which has one hypothesis, or in turn two."""
    rows = torch.tensor([0, *range(len(sources))])
    memory = model.encode(*padded(sources))
    state, target_in = model.start(memory).select(rows), padded([fed(target) for target in targets])[0]
    results: list[Steps] = [[] for _ in sources]
    for t in range(target_in.shape[1]):
        step = model.step(target_in[rows, t], state, memory, rows)
        assert isinstance(step.log_probs, torch.Tensor)
        for n, row in enumerate(rows.tolist()):
            if t < len(targets[row]):
                results[row].append((t, step.log_probs[n], step.weights[n]))
        next_rows = torch.tensor([*range(len(sources)), (t + 1) % len(sources)]).sort().values
        state = step.state.select(torch.searchsorted(rows, next_rows, right=True) - 1)
        rows = next_rows
    return results


def close(actual: torch.Tensor, expected: Array) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=0, atol=1e-10)


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
