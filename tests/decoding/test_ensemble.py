"""The fast path of search against the plain model and the whole table of its log-probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from nmt.data.batching import pad
from nmt.data.subwords import EOS, PAD
from nmt.decoding import ensemble
from nmt.decoding.ensemble import Ensemble, NextPiece, largest
from nmt.decoding.search import LogProbs, beam_search
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.output import Output, listed_output
from nmt.model.packed import restricted
from nmt.model.seq2seq import Seq2Seq
from nmt.native import kernels
from nmt.ragged import Ragged
from tests.decoding.test_translator import LINES, MODELS, bundle
from tests.machine import needs_compiler

ROWS = Ragged(torch.tensor([0, 0, 0, 1, 3, 3, 3]), 4)


def layers(count: int, size: int = 30) -> tuple[tuple[torch.Tensor, ...], tuple[Output, ...]]:
    torch.manual_seed(2)
    outputs = tuple(Output(nn.Linear(5, size).requires_grad_(requires_grad=False)) for _ in range(count))
    return tuple(torch.randn(7, 5) for _ in range(count)), outputs


def table(readouts: tuple[torch.Tensor, ...], outputs: tuple[Output, ...]) -> LogProbs:
    """log 1/M sum_m p_m, all at once."""
    each = [output(readout, ROWS).softmax(-1) for output, readout in zip(outputs, readouts, strict=True)]
    return LogProbs((sum(each) / len(each)).log())


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("at_once", [1, 65, 10**6])
@pytest.mark.parametrize("size", [1, 4, 99, None])
def test_the_best_are_those_of_the_whole_table(
    members: int, at_once: int, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble, "_IN_CACHE", at_once)
    readouts, outputs = layers(members)
    values, ids = NextPiece(readouts, outputs, ROWS).top(size)
    wanted, places = table(readouts, outputs).top(size)
    assert values.shape == (7, min(size or 30, 30))
    torch.testing.assert_close(values, wanted, atol=1e-5, rtol=0)
    assert torch.equal(ids, places)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("at_once", [1, 16, 10**6])
@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_compiler), False])
def test_with_a_shortlist_each_sentence_has_pieces_of_its_own(
    members: int, at_once: int, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(kernels, "can_use", lambda *_: False)
    monkeypatch.setattr(ensemble, "_IN_CACHE", at_once)
    readouts, whole = layers(members)
    shared, own, sentences = torch.tensor([4, 11]), torch.tensor([1, 20, 29, 7, 8]), torch.tensor([0, 0, 0, 3, 3])
    lists = [[4, 11, 1, 20, 29], [4, 11], [4, 11], [4, 11, 7, 8]]
    outputs = tuple(
        listed_output(each.shared, restricted(each.shared, shared), own, Ragged(sentences, 4)) for each in whole
    )
    pieces = torch.tensor([[*listed, 0, 0, 0][:5] for listed in lists])
    values, ids = NextPiece(readouts, outputs, ROWS, pieces).top(3, (11,))
    every, _ = NextPiece(readouts, outputs, ROWS, pieces).top(None)
    each = [output(readout, ROWS) for output, readout in zip(whole, readouts, strict=True)]
    for row, sentence in enumerate(ROWS.group.tolist()):
        listed = torch.tensor(sorted(lists[sentence]))
        log_probs = (sum(logits[row, listed].softmax(0) for logits in each) / members).log()
        wanted, places = LogProbs(log_probs[None]).top(3, (int((listed == 11).nonzero()),))
        possible = wanted[0] > -math.inf
        torch.testing.assert_close(values[row, : len(possible)], wanted[0], atol=1e-5, rtol=0)
        assert ids[row, : len(possible)][possible].tolist() == listed[places[0]][possible].tolist()
        assert float(every[row].exp().sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("columns", [7, 399, 400, 3000, 3001, 3099])
@pytest.mark.parametrize("size", [1, 7])
def test_the_largest_of_the_largest_blocks_are_the_largest(columns: int, size: int) -> None:
    torch.manual_seed(1)
    values = torch.randn(20, columns)
    values[3, -1], values[4, 0], values[5] = 9.0, 9.0, float("-inf")
    values[6, columns // 2] = float("nan")
    found, places = largest(values, size)
    expected = values.topk(size, dim=1)
    torch.testing.assert_close(found, expected.values, equal_nan=True)
    known = [row for row in range(20) if row not in (5, 6)]
    assert torch.equal(places[known], expected.indices[known])
    torch.testing.assert_close(values.gather(1, places), found, equal_nan=True)


@dataclass(frozen=True)
class PlainState:
    memory: Memory
    state: DecoderState

    def select(self, rows: Tensor) -> PlainState:
        return PlainState(self.memory.select(rows), self.state.select(rows))


def plain_step(model: Seq2Seq, tokens: Tensor, before: PlainState) -> tuple[LogProbs, Tensor, PlainState]:
    """A step in the most readable way: the model's own, and all log-probabilities at once."""
    readout, weights, state = model.step(tokens, before.state, before.memory)
    return LogProbs(model.logits(readout).log_softmax(-1)), weights, PlainState(before.memory, state)


@pytest.mark.parametrize("name", MODELS)
def test_search_finds_the_same_as_with_the_plain_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "_IN_CACHE", 2000)
    member = bundle(name)
    sources = pad([[*member.source.encode(line), EOS] for line in LINES])
    fast = Ensemble([member.model], same_source=True, precision="fp32")
    settings = {"batch": len(LINES), "beam_size": 4, "n_best": 4, "max_lengths": (sources > PAD).sum(1)}
    with torch.inference_mode():
        start = PlainState(*member.model.encode(sources, sources != PAD))
        wanted = beam_search(lambda tokens, state: plain_step(member.model, tokens, state), start, **settings)
    with fast.evaluating():
        found = beam_search(fast.step, fast.encode([sources]), **settings)
    assert sum(map(len, wanted)) > len(LINES)
    for ranked, expected in zip(found, wanted, strict=True):
        assert [(item.ids, item.finished) for item in ranked] == [(item.ids, item.finished) for item in expected]
        for item, other in zip(ranked, expected, strict=True):
            assert item.score == pytest.approx(other.score, abs=1e-5)
            torch.testing.assert_close(item.alignment, other.alignment, atol=1e-5, rtol=0)


@pytest.mark.parametrize("looks_up", [False, pytest.param(True, marks=needs_compiler)])
def test_a_memory_holds_each_sentence_once_until_it_is_done(monkeypatch: pytest.MonkeyPatch, looks_up: bool) -> None:
    """Where a compiled kernel looks up what it needs, until all are done."""
    if not looks_up:
        monkeypatch.setattr(kernels, "can_use", lambda *tensors: False)
    member = bundle()
    together = Ensemble([member.model, member.model], same_source=True, precision="fp32")
    source = pad([[*member.source.encode(line), EOS] for line in LINES[:3]])
    with together.evaluating():
        start = together.encode([source, source])
        beam = start.select(torch.tensor([0, 0, 1, 1, 2, 2]))
        assert beam.memories is start.memories
        fewer = beam.select(torch.tensor([1, 3, 2, 5]))
        assert fewer.memories is start.memories
        assert torch.equal(fewer.rows.group, torch.tensor([0, 1, 1, 2]))
        left = beam.select(torch.tensor([1, 0, 5]))
        if looks_up:
            assert left.memories is start.memories
            assert torch.equal(left.rows.group, torch.tensor([0, 0, 2]))
            return
        assert torch.equal(left.rows.group, torch.tensor([0, 0, 1]))
        for memory, before in zip(left.memories, start.memories, strict=True):
            assert torch.equal(memory.annotations, before.annotations[[0, 2]])


def test_sentences_of_different_numbers_of_hypotheses_are_stepped_together() -> None:
    member = bundle()
    together = Ensemble([member.model], same_source=True, precision="fp32")
    source = pad([[*member.source.encode(line), EOS] for line in LINES[:8]])
    rows, tokens = torch.tensor([0, 0, 0, 1, 3, 3, 4, 5, 6, 7]), torch.arange(4, 14)  # nothing of sentence 2 is left
    with together.evaluating():
        outlook, weights, state = together.step(tokens, together.encode([source]).select(rows))
        assert state.rows.groups == 8
        for row, (sentence, token) in enumerate(zip(rows.tolist(), tokens, strict=True)):
            wanted, expected, _ = together.step(token.unsqueeze(0), together.encode([source[sentence : sentence + 1]]))
            torch.testing.assert_close(weights[row : row + 1], expected, atol=1e-6, rtol=0)
            for one, other in zip(outlook.readouts, wanted.readouts, strict=True):
                torch.testing.assert_close(one[row : row + 1], other, atol=1e-5, rtol=0)
