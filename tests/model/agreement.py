"""Whether a model agrees with the NumPy equations in float64 to 1e-10, for known targets and step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nmt.model.interface import TranslationModel
from tests.model.models import batch_of, fed, padded, weights_of
from tests.reference.loss import log_softmax, smoothed_cross_entropy

Equations = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Source ids, target ids, the settings and the weights -> readouts, alignment, logits."""
PADDED = ([3, 6, 2, 5, 4, 7, 1], [6], [7, 1, 2])
TARGETS = ([7, 1, 4, 4], [3, 3, 0], [5])
SMOOTHING = 0.1


def assert_model_agrees(
    model: TranslationModel[Any, Any],
    tree: dict[str, Any],
    equations: Equations,
    sources: list[list[int]],
    targets: list[list[int]],
) -> None:
    """Compare alignment, log-probabilities and loss of a padded batch, and every step of hypotheses for its sentences."""
    weights = weights_of(model)
    expected = [equations(ids, fed(gold), tree, weights) for ids, gold in zip(sources, targets, strict=True)]
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


def hypotheses(model: TranslationModel[Any, Any], sources: list[list[int]], targets: list[list[int]]) -> list[Steps]:
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


def close(actual: torch.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=0, atol=1e-10)


def assert_positions_agree(model: Any, tree: dict[str, Any], equations: Equations) -> None:
    """Check the probabilities of tokens given attention to a single position, at each step."""
    source, gold = [3, 5, 2], [7, 1, 4]
    memory, rows = model.encode(*padded([source, [6]])), torch.arange(2)
    state, allowed = model.start(memory), torch.tensor([[True, False, True], [False, False, False]])
    for t, (token, gold_token) in enumerate(zip(fed(gold), gold, strict=True)):
        tokens, golds = torch.tensor([token, token]), torch.tensor([gold_token, gold_token])
        with torch.no_grad():
            log_probs = model.position_log_probs(tokens, golds, state, memory, allowed)
            state = model.step(tokens, state, memory, rows).state
        assert (log_probs[~allowed] == -torch.inf).all()
        for j in (0, 2):
            _, _, logits = equations(source, fed(gold), tree, weights_of(model), only={t: j})
            close(log_probs[0, j], log_softmax(logits[t])[gold_token])
