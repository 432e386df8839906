"""The output layer in search: the log-probabilities of the whole layer, of what is listed alone, where they are read."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nmt.fast import loss as fast_loss
from nmt.fast import output as fast_output
from nmt.fast.kernels import decoding as kernels
from nmt.fast.linear import restricted
from nmt.fast.loss import ChunkedOutputLayer
from nmt.fast.output import Listed, PackedOutputLayer, SearchLogProbs, listed_output
from nmt.fast.search import FastSearch
from nmt.model.output import OutputLayer
from nmt.runtime.device import DTYPES, DecodingPrecision
from nmt.search.beam import Beam, Sources
from nmt.search.candidates import FollowingLogProbs, top_tokens
from nmt.search.loop import Search
from nmt.search.options import SearchOptions
from nmt.search.segments import Segments
from tests.machine import needs_bf16, needs_compiler, needs_fast, needs_int8, needs_int8_kernel, needs_packing
from tests.pairwise import Case, pairwise_cases

VOCABULARY = 400
SHARED = torch.tensor([1, 3, 50, 51])
PRECISIONS = [
    pytest.param(None, id="plain"),
    pytest.param("fp32", marks=needs_packing),
    pytest.param("bf16", marks=needs_bf16),
    pytest.param("int8", marks=needs_int8_kernel),
    pytest.param("int8-without-kernel", marks=needs_int8),
]


def whole_layer(precision: str | None, monkeypatch: pytest.MonkeyPatch) -> OutputLayer:
    torch.manual_seed(3)
    output = ChunkedOutputLayer(37, VOCABULARY).requires_grad_(requires_grad=False)
    torch.nn.init.normal_(output.bias)
    if precision == "int8-without-kernel":
        monkeypatch.setattr(kernels, "multiplies_int8", lambda: False)
        precision = "int8"
    precisions: dict[str, DecodingPrecision] = {"fp32": "fp32", "bf16": "bf16", "int8": "int8"}
    return output if precision is None else PackedOutputLayer(output, DTYPES[precisions[precision]])


def listed(output: OutputLayer, shared: Tensor, own: Tensor, sentences: Segments) -> Listed:
    linear = output.linear if isinstance(output, PackedOutputLayer) else output
    return listed_output(output, restricted(linear, shared), shared, own, sentences)


def lists(sizes: list[int]) -> tuple[Tensor, Segments]:
    """Random own tokens of each sentence, in rising order, and their sentences."""
    generator = torch.Generator().manual_seed(5)
    own = [torch.randperm(340, generator=generator)[:size].sort().values + 60 for size in sizes]
    return torch.cat(own), Segments(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), len(sizes))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("sizes", [[3, 0, 130, 64, 5], [0, 0]])
def test_listed_logits_equal_those_of_the_whole_layer(
    precision: str | None, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = whole_layer(precision, monkeypatch)
    own, sentences = lists(sizes)
    restricted_output = listed(whole, SHARED, own, sentences)
    assert restricted_output.tokens.shape == (len(sizes), len(SHARED) + max(sizes))
    counts = [7, 0, 1, 13, 2][: len(sizes)]
    rows = Segments(torch.arange(len(sizes)).repeat_interleave(torch.tensor(counts)), len(sizes))
    readouts = torch.randn(len(rows.segment_ids), 37)
    tolerance = {"bf16": 0.02, "int8-without-kernel": 0.05}.get(
        str(precision), 1e-5
    )  # there the own tokens are in fp32
    with torch.inference_mode():
        actual, expected = restricted_output(readouts, rows), whole(readouts).float()
        assert actual.shape == (len(readouts), restricted_output.tokens.shape[1])
        check(actual, expected, rows, own, sentences, tolerance)
        live = torch.arange(0, len(sizes), 2)
        is_live = torch.isin(rows.segment_ids, live)
        fewer = restricted_output.select(live)
        again = fewer(readouts[is_live], Segments(rows.segment_ids[is_live] // 2, len(live)))
        assert torch.equal(again[:, : actual.shape[1]].isfinite(), actual[is_live].isfinite())
        torch.testing.assert_close(again, actual[is_live], atol=tolerance, rtol=0)


def check(actual: Tensor, expected: Tensor, rows: Segments, own: Tensor, sentences: Segments, tolerance: float) -> None:
    for row, sentence in enumerate(rows.segment_ids.tolist()):
        tokens = torch.cat([SHARED, own[sentences.segment_ids == sentence]])
        torch.testing.assert_close(
            actual[row, : len(tokens)].float(), expected[row, tokens], atol=tolerance, rtol=tolerance
        )
        assert (actual[row, len(tokens) :] == -math.inf).all()


# --- log-probabilities on demand ----------------------------------------------------------------------------------

ROWS = Segments(torch.tensor([0, 0, 0, 1, 3, 3, 3]), 4)


def small_layer(size: int = 30) -> tuple[Tensor, OutputLayer]:
    torch.manual_seed(2)
    return torch.randn(7, 5), OutputLayer(5, size).requires_grad_(requires_grad=False)


def lists_of(output: OutputLayer) -> tuple[Listed, list[list[int]]]:
    """Lists of four sentences, and the tokens of each."""
    own, sentences = torch.tensor([1, 20, 29, 7, 8]), Segments(torch.tensor([0, 0, 0, 3, 3]), 4)
    tokens = [[4, 11, 1, 20, 29], [4, 11], [4, 11], [4, 11, 7, 8]]
    return listed(output, torch.tensor([4, 11]), own, sentences), tokens


class Nothing:
    """A state or memory that is not read."""

    def select(self, rows: Tensor) -> Nothing:
        return self


def beam_of(totals: Tensor) -> Beam:
    """A beam of these log-probabilities."""
    rows = torch.arange(len(totals))
    sources = Sources(Nothing(), rows, rows)
    return Beam(time=1, sentences=ROWS, log_probs=totals, tokens=rows, origins=rows, state=Nothing(), sources=sources)


def candidates(
    kind: type[Search], log_probs: SearchLogProbs | FollowingLogProbs, options: SearchOptions
) -> tuple[list[tuple[int, int]], list[float]]:
    """Hypothesis and token of the continuations of all sentences, and their log-probabilities; those of -inf left out."""
    totals = -torch.linspace(0, 1, len(log_probs))
    with torch.inference_mode():
        found = kind(options).candidates(beam_of(totals), log_probs, None)
    is_possible = found.log_probs > -math.inf
    pairs = zip(found.parents[is_possible].tolist(), found.tokens[is_possible].tolist(), strict=True)
    return list(pairs), [*found.log_probs[is_possible].tolist(), *found.token_log_probs[is_possible].tolist()]


@pytest.mark.parametrize("restrict", [False, True])
def test_indexed_rows_equal_those_of_the_whole_table(restrict: bool) -> None:
    readouts, output = small_layer()
    lists, tokens = lists_of(output)
    log_probs = SearchLogProbs(readouts, output, ROWS, lists if restrict else None)
    assert len(log_probs) == 7
    expected = output(readouts)
    if restrict:
        allowed = torch.zeros(4, 30, dtype=torch.bool)
        for sentence, ids in enumerate(tokens):
            allowed[sentence, ids] = True
        expected = expected.masked_fill(~allowed[ROWS.segment_ids], -math.inf)
    expected = torch.log_softmax(expected, 1)
    mask = torch.tensor([True, False, True, True, False, False, True])
    for rows in (slice(None), slice(2, 5), torch.tensor([0, 3, 3, 6]), mask):
        torch.testing.assert_close(log_probs[rows], expected[rows], atol=1e-5, rtol=0)


FOLLOWING = [(), (5,), (11,), range(20), (2, 29, 7), (), (3, 4)]
"""What may follow each hypothesis."""
RANKED = pairwise_cases(
    {
        "tokens": ["all", "shortlist", "following"],
        "at_once": [1, 65, 10**6],
        "beam_size": [1, 4, 60],
        "forbid": [(), (11, 2)],
        "prune": [None, 0.5],
    }
)


@needs_compiler
@needs_fast
@pytest.mark.parametrize("case", RANKED)
def test_best_continuations_equal_those_of_plain_search(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_output, "_IN_CACHE", case["at_once"])
    readouts, output = small_layer()
    log_probs = SearchLogProbs(readouts, output, ROWS, lists_of(output)[0] if case["tokens"] == "shortlist" else None)
    options = SearchOptions(beam_size=case["beam_size"], forbid=case["forbid"], prune=case["prune"])
    with torch.inference_mode():
        assert log_probs.can_rank(beam_of(torch.zeros(7)), options)
    given = FollowingLogProbs(log_probs, FOLLOWING) if case["tokens"] == "following" else log_probs
    (pairs, figures), (expected, exact) = (candidates(kind, given, options) for kind in (FastSearch, Search))
    assert pairs == expected
    assert figures == pytest.approx(exact, abs=1e-5)


def test_without_a_faster_kernel_there_are_no_continuations() -> None:
    readouts, output = small_layer()
    log_probs, totals = SearchLogProbs(readouts, output, ROWS), torch.zeros(7)
    beam, few = beam_of(totals), SearchOptions(beam_size=4)
    assert not log_probs.can_rank(beam, SearchOptions(beam_size=65))
    with torch.enable_grad():
        assert not log_probs.can_rank(beam, few)
    table = torch.log_softmax(output(readouts), 1)
    for ours, expected in zip(top_tokens(log_probs, 4), top_tokens(table, 4), strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("at_once", [1, 65])
def test_gold_log_probs_equal_those_of_the_plain_layer(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_loss, "_LOGITS_AT_ONCE", at_once)
    readouts, output = small_layer()
    gold, fast = torch.randint(0, 30, (7,)), ChunkedOutputLayer(5, 30)
    fast.load_state_dict(output.state_dict())
    with torch.inference_mode():
        expected = output.gold_log_probs(readouts, gold)
        torch.testing.assert_close(fast.gold_log_probs(readouts, gold), expected)
        everywhere = torch.ones(1, 7, dtype=torch.bool)
        loss, log_probs = fast.loss(readouts[None], gold[None], everywhere, 0.0)
        torch.testing.assert_close(loss, -expected.sum())
        torch.testing.assert_close(log_probs[0], expected)
