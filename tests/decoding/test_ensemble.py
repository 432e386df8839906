"""Several models as one: their mean, the memory that hypotheses share, and search through them against a step that is written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nmt.data.batching import pad
from nmt.decoding.ensemble import AllowedLogProbs, Ensemble, MeanLogProbs
from nmt.decoding.shortlist import Shortlist
from nmt.text.subwords import EOS
from tests.decoding.test_translator import LINES, bundle


def sources(lines: list[str]) -> Tensor:
    return pad([[*bundle().source.encode(line), EOS] for line in lines])


def ensemble(*names: str, shortlist: Shortlist | None = None) -> Ensemble:
    models = [bundle(name).model for name in names]
    return Ensemble(models, same_source=True, precision="fp32", shortlist=shortlist)


# --- log-probabilities --------------------------------------------------------------------------------------------

ROWS = (slice(None), slice(2, 5), torch.tensor([0, 3, 3, 6]), torch.arange(7) % 2 == 0)


def log_softmax(seed: int) -> Tensor:
    return torch.randn(7, 30, generator=torch.Generator().manual_seed(seed)).log_softmax(-1)


@pytest.mark.parametrize("members", [1, 2, 3])
def test_the_mean_is_that_of_the_probabilities(members: int) -> None:
    tables = [log_softmax(seed) for seed in range(members)]
    mean = MeanLogProbs(tuple(tables))
    assert len(mean) == 7
    expected = torch.stack(tables).exp().mean(0).log()
    for rows in ROWS:
        torch.testing.assert_close(mean[rows], expected[rows], atol=1e-5, rtol=0)


def test_what_is_allowed_is_normalized_and_the_rest_impossible() -> None:
    allowed = torch.zeros(3, 30, dtype=torch.bool)
    allowed[0, [4, 11, 29]], allowed[1], allowed[2, 5] = True, True, True
    of = torch.tensor([0, 0, 0, 1, 2, 2, 2])
    log_probs = AllowedLogProbs(log_softmax(1), allowed, of)
    assert len(log_probs) == 7
    expected = log_softmax(1).exp() * allowed[of]
    expected = (expected / expected.sum(1, keepdim=True)).log()
    for rows in ROWS:
        torch.testing.assert_close(log_probs[rows], expected[rows], atol=1e-5, rtol=0)


@pytest.mark.parametrize("names", [("bahdanau",), ("bahdanau", "luong")])
def test_sentences_of_different_numbers_of_hypotheses_are_stepped_together(names: tuple[str, ...]) -> None:
    together, source = ensemble(*names), sources(LINES[:8])
    rows, tokens = torch.tensor([0, 0, 0, 1, 3, 3, 4, 5, 6, 7]), torch.arange(4, 14)  # nothing of sentence 2 is left
    each = [source] * len(names)
    with together.evaluating():
        memory = together.encode(each)
        step = together.step(tokens, together.start(memory).select(rows), memory, rows)
        for row, (sentence, token) in enumerate(zip(rows.tolist(), tokens, strict=True)):
            alone = together.encode([part[sentence : sentence + 1] for part in each])
            expected = together.step(token.unsqueeze(0), together.start(alone), alone, torch.tensor([0]))
            torch.testing.assert_close(step.weights[row : row + 1], expected.weights, atol=1e-6, rtol=0)
            torch.testing.assert_close(step.log_probs[row : row + 1], expected.log_probs[:], atol=1e-5, rtol=0)


@pytest.mark.parametrize("has_shortlist", [False, True])
@pytest.mark.parametrize("names", [("bahdanau",), ("bahdanau", "luong", "heads-coverage-copy")])
def test_a_memory_may_lose_sentences(names: tuple[str, ...], has_shortlist: bool) -> None:
    size = len(bundle().target)
    likely = torch.arange(len(bundle().source)).unsqueeze(1).remainder(size - 260) + 260
    shortlist = Shortlist(likely, torch.arange(270, 274), size) if has_shortlist else None
    together, source = ensemble(*names, shortlist=shortlist), sources(LINES[:4])
    with together.evaluating():
        memory = together.encode([source] * len(names))
        for sentences in ([1, 3], [0], [0, 0, 2]):
            rows, everyone = torch.tensor(sentences), torch.arange(len(sentences))
            fewer = memory.select(rows)
            step = together.step(everyone + 4, together.start(fewer), fewer, everyone)
            expected = together.step(everyone + 4, together.start(memory).select(rows), memory, rows)
            torch.testing.assert_close(step.log_probs[:], expected.log_probs[:], atol=1e-5, rtol=0)
            torch.testing.assert_close(step.weights, expected.weights, atol=1e-6, rtol=0)


def test_the_weights_of_members_that_read_the_same_tokens_are_averaged() -> None:
    source, rows = sources(LINES[:3]), torch.arange(3)

    def weights(*names: str, same_source: bool = True) -> Tensor:
        models = Ensemble([bundle(name).model for name in names], same_source=same_source, precision="fp32")
        with models.evaluating():
            memory = models.encode([source] * len(names))
            return models.step(rows + 4, models.start(memory), memory, rows).weights

    one, other = weights("bahdanau"), weights("luong")
    torch.testing.assert_close(weights("bahdanau", "luong"), (one + other) / 2)
    torch.testing.assert_close(weights("bahdanau", "luong", same_source=False), one)
