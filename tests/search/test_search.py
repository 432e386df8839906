"""Search, driven by tables of transitions instead of a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.errors import UsageError
from nmt.fast.search import FastSearch
from nmt.search import Hypothesis, Search, SearchOptions
from nmt.search.sampling import Sampling
from tests.readbacks import ReadBacks
from tests.search.searching import beam_search

PAD, UNK, BOS, EOS = 0, 1, 2, 3
HISTORIES = 97


@pytest.fixture(autouse=True)
def as_in_translation() -> Iterator[None]:
    """Without gradients, so that the compiled kernels take part where there are any."""
    with torch.inference_mode():
        yield


@dataclass(frozen=True)
class State:
    """A number that depends on all tokens so far."""

    history: Tensor

    def select(self, rows: Tensor) -> State:
        return State(self.history[rows])


@dataclass(frozen=True)
class Sentences:
    """A memory: the numbers of its sentences."""

    numbers: Tensor

    def select(self, rows: Tensor) -> Sentences:
        return Sentences(self.numbers[rows])


@dataclass(frozen=True)
class Result:
    """The result of a step."""

    log_probs: Any
    weights: Tensor
    state: State


@dataclass
class Table:
    """Made-up p(y_t | y_<t, x) and attention weights, looked up by sentence and history."""

    log_probs: Tensor
    weights: Tensor
    batches: list[int] = field(default_factory=list)
    """The hypotheses of each step."""
    memories: list[int] = field(default_factory=list)
    """The sentences in the memory at each step."""

    @classmethod
    def random(cls, seed: int, *, batch: int, size: int = 6, source: int = 4, impossible: float = 0.0) -> Table:
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(batch, HISTORIES, size, generator=generator) * 2
        logits[torch.rand(logits.shape, generator=generator) < impossible] = -math.inf
        weights = torch.rand(batch, HISTORIES, source, generator=generator) ** 4
        return cls(
            logits.log_softmax(-1).nan_to_num(-math.inf, neginf=-math.inf), weights / weights.sum(-1, keepdim=True)
        )

    def step(self, tokens: Tensor, state: State, memory: Sentences, rows: Tensor) -> Result:
        self.batches.append(len(tokens))
        self.memories.append(len(memory.numbers))
        history, sentence = (state.history * 31 + tokens + 1) % HISTORIES, memory.numbers[rows]
        return Result(self.log_probs[sentence, history], self.weights[sentence, history], State(history))

    def start(self) -> tuple[State, Sentences]:
        everyone = torch.arange(len(self.log_probs))
        return State(torch.zeros_like(everyone)), Sentences(everyone)

    def beam(self, *, lengths: Sequence[int], **options: Any) -> list[list[Hypothesis]]:
        """The hypotheses that a search finds, with such maximum lengths."""
        return beam_search(self.step, *self.start(), max_lengths=torch.tensor(lengths, dtype=torch.long), **options)

    def greedy(self, *, lengths: Sequence[int], **options: Any) -> list[Hypothesis]:
        """The hypotheses of a beam of one."""
        return [best for [best] in self.beam(lengths=lengths, **options)]

    def sample(self, uniform: Tensor, *, lengths: Sequence[int], **options: Any) -> list[list[Hypothesis]]:
        """Samples by these numbers."""
        search, max_lengths = Search(SearchOptions(**options)), torch.tensor(lengths, dtype=torch.long)
        return search.sample(self.step, *self.start(), max_lengths, uniform=uniform)

    def only(self, sentence: int) -> Table:
        return Table(self.log_probs[sentence : sentence + 1], self.weights[sentence : sentence + 1])

    def walk(self, sentence: int, tokens: tuple[int, ...]) -> tuple[list[float], Tensor]:
        """Log-probability and weights of each of the tokens, step by step."""
        history, log_probs, rows = 0, [], []
        for fed, token in zip((BOS, *tokens), tokens, strict=False):
            history = (history * 31 + fed + 1) % HISTORIES
            log_probs.append(self.log_probs[sentence, history, token].item())
            rows.append(self.weights[sentence, history])
        return log_probs, torch.stack(rows)


def score_of(table: Table, sentence: int, tokens: tuple[int, ...], alpha: float, beta: float) -> float:
    """Wu et al. 2016, eq. 14, in straight lines; the tokens include the end mark, if any."""
    log_probs, rows = table.walk(sentence, tokens)
    covered = sum(math.log(max(min(value, 1.0), 1e-6)) for value in rows.sum(0).tolist())
    penalty: float = ((5 + len(tokens)) / 6) ** alpha
    return sum(log_probs) / penalty + beta * covered


def all_outputs(size: int, length: int) -> Iterator[tuple[int, ...]]:
    """Everything that can be produced within `length` tokens: what ends with EOS, and what is cut."""
    words = [token for token in range(size) if token not in (PAD, BOS, EOS)]
    for count in range(length):
        yield from ((*tokens, EOS) for tokens in product(words, repeat=count))
    yield from product(words, repeat=length)


def brute_force(
    table: Table, sentence: int, length: int, alpha: float, beta: float
) -> list[tuple[float, tuple[int, ...]]]:
    """All outputs of a probability above 0, best first; those that were cut only if there are no others."""
    scored = [
        (score_of(table, sentence, tokens, alpha, beta), tokens)
        for tokens in all_outputs(table.log_probs.shape[-1], length)
        if math.inf not in map(abs, table.walk(sentence, tokens)[0])
    ]
    finished = [item for item in scored if item[1][-1] == EOS]
    return sorted(finished or scored, reverse=True)


def reference_beam(
    table: Table,
    sentence: int,
    size: int,
    length: int,
    alpha: float,
    beta: float,
    horizon: int | None = None,
    prune: float | None = None,
) -> list[tuple[float, tuple[int, ...]]]:
    """A beam with lists, the readable version of the one under test: with a horizon it may stop early, without one never."""
    beam: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[int, ...]] = []
    for time in range(length):
        continued = [
            (sum(table.walk(sentence, (*tokens, token))[0]), (*tokens, token))
            for _, tokens in beam
            for token in range(table.log_probs.shape[-1])
            if token not in (PAD, BOS)
        ]
        best = [item for item in sorted(continued, reverse=True)[:size] if item[0] > -math.inf]
        best = [item for item in best if prune is None or item[0] >= best[0][0] - prune]
        finished += [tokens for _, tokens in best if tokens[-1] == EOS]
        beam = [item for item in best if item[1][-1] != EOS]
        if horizon is not None and len(finished) >= size:
            held = sorted((score_of(table, sentence, tokens, alpha, beta) for tokens in finished), reverse=True)
            longest = min(length, time + 1 + horizon)
            if all(total / ((5 + longest) / 6) ** alpha <= held[size - 1] for total, _ in beam):
                break
    outputs = finished or [tokens for _, tokens in beam]
    return sorted(((score_of(table, sentence, tokens, alpha, beta), tokens) for tokens in outputs), reverse=True)


def check_same(results: list[Hypothesis], expected: list[tuple[float, tuple[int, ...]]]) -> None:
    assert [(*item.ids, EOS) if item.finished else item.ids for item in results] == [tokens for _, tokens in expected]
    assert [item.score for item in results] == pytest.approx([score for score, _ in expected], abs=1e-5)


def check_all_equal(results: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    for ranked, others in zip(results, expected, strict=True):
        for one, other in zip(ranked, others, strict=True):
            check_equal(one, other)


def check_equal(one: Hypothesis, other: Hypothesis) -> None:
    assert (one.ids, one.finished) == (other.ids, other.finished)
    assert one.score == pytest.approx(other.score, abs=1e-6)
    assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-6)
    torch.testing.assert_close(one.alignment, other.alignment)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize("impossible", [0.0, 0.4])
def test_a_beam_as_wide_as_the_space_is_brute_force(alpha: float, beta: float, impossible: float) -> None:
    for seed in range(4):
        table = Table.random(seed, batch=4, impossible=impossible)
        lengths = [4, 1, 3, 4]
        penalties = {"length_penalty": alpha, "coverage_penalty": beta}
        results = table.beam(beam_size=4**4, n_best=6, lengths=lengths, **penalties)
        for sentence, length in enumerate(lengths):
            expected = brute_force(table, sentence, length, alpha, beta)[:6]
            check_same(results[sentence], expected or [(-math.inf, ())])


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (1.0, 0.0), (2.5, 0.0), (0.6, 0.2)])
@pytest.mark.parametrize(
    ("horizon", "prune"),
    [(None, None), (1, None), (2, None), (5, None), (None, 0.0), (None, 0.5), (3, 2.0), (3, 100.0)],
)
def test_a_narrow_beam_is_the_reference(
    size: int, alpha: float, beta: float, horizon: int | None, prune: float | None
) -> None:
    """It never stops early but for a horizon, and drops only the improbable."""
    penalties, lengths = {"length_penalty": alpha, "coverage_penalty": beta}, [12, 5, 9]
    for seed in range(2):
        table = Table.random(seed, batch=3, size=8)
        results = table.beam(beam_size=size, n_best=size, lengths=lengths, horizon=horizon, prune=prune, **penalties)
        for sentence, length in enumerate(lengths):
            expected = reference_beam(table, sentence, size, length, alpha, beta, horizon, prune)[:size]
            check_same(results[sentence], expected)


def test_a_horizon_decides_how_long_a_hypothesis_may_hope() -> None:
    """After four more words of probability 1 the live hypothesis would beat the one that ended at once."""
    table = chain({EOS: 0.6, 4: 0.4}, {4: 1.0}, {4: 1.0}, {4: 1.0}, {EOS: 1.0})
    search: dict[str, Any] = {"beam_size": 2, "lengths": [9], "length_penalty": 2.0}
    steps = {}
    for horizon in (None, 9, 4, 1):
        table.batches.clear()
        (hypotheses,) = table.beam(horizon=horizon, **search)
        steps[horizon] = len(table.batches), hypotheses[0].ids
    assert steps == {None: (5, (4,) * 4), 9: (5, (4,) * 4), 4: (5, (4,) * 4), 1: (1, ())}


def test_what_is_pruned_costs_nothing() -> None:
    batches = {}
    for prune in (None, 1.0, 0.0):
        table = Table.random(5, batch=16, size=20)
        lengths = [8] * 16
        table.beam(beam_size=5, lengths=lengths, prune=prune)
        batches[prune] = table.batches
    assert max(batches[None]) == 75  # of 80, 5 of which have ended
    assert sum(batches[1.0]) < 0.7 * sum(batches[None])
    assert max(batches[0.0]) == 16


def test_a_hypothesis_carries_what_happened_along_its_path() -> None:
    table = Table.random(4, batch=6)
    results = table.beam(beam_size=4, n_best=4, lengths=[8] * 6)
    assert any(len(hypothesis.ids) > 3 for ranked in results for hypothesis in ranked)
    for sentence, ranked in enumerate(results):
        assert len({hypothesis.ids for hypothesis in ranked}) == len(ranked)
        assert [hypothesis.score for hypothesis in ranked] == sorted((h.score for h in ranked), reverse=True)
        for hypothesis in ranked:
            produced = (*hypothesis.ids, EOS) if hypothesis.finished else hypothesis.ids
            log_probs, rows = table.walk(sentence, produced)
            assert hypothesis.token_log_probs == pytest.approx(log_probs)
            assert hypothesis.log_probability == pytest.approx(sum(log_probs), abs=1e-5)
            torch.testing.assert_close(hypothesis.alignment, rows)


def chain(*rows: dict[int, float], size: int = 6) -> Table:
    """A table for one sentence that depends on the number of the step alone; the last row goes on for ever."""
    log_probs = torch.full((1, HISTORIES, size), -math.inf)
    for time, row in enumerate(rows):
        for token, probability in row.items():
            log_probs[0, time, token] = math.log(probability)

    class Chain(Table):
        def step(self, tokens: Tensor, state: State, memory: Sentences, of: Tensor) -> Result:
            self.batches.append(len(tokens))
            time = state.history.clamp(max=len(rows) - 1)
            return Result(self.log_probs[0, time], self.weights[0, time], State(state.history + 1))

    return Chain(log_probs, torch.ones(1, HISTORIES, 1))


def test_padding_and_start_mark_are_never_produced() -> None:
    table = chain({PAD: 0.5, BOS: 0.3, UNK: 0.15, 4: 0.05}, {PAD: 0.6, BOS: 0.3, EOS: 0.1})
    lengths = [5]
    assert table.greedy(lengths=lengths)[0].ids == (UNK,)
    (hypotheses,) = table.beam(beam_size=6, n_best=6, lengths=lengths)
    assert [hypothesis.ids for hypothesis in hypotheses] == [(UNK,), (4,)]
    forbidden = (PAD, BOS, UNK)
    assert table.greedy(lengths=lengths, forbid=forbidden)[0].ids == (4,)
    [[drawn]] = table.sample(numbers(1, 1, 5), lengths=lengths, forbid=forbidden)
    assert drawn.ids == (4,)


def test_the_maximum_length_counts_the_end_mark_and_cuts_what_has_not_ended() -> None:
    table = chain({4: 0.9, EOS: 0.1}, {5: 0.9, EOS: 0.1}, {EOS: 1.0})
    whole = table.greedy(lengths=[3])[0]
    assert (whole.ids, whole.finished, len(whole.alignment)) == ((4, 5), True, 3)
    cut = table.greedy(lengths=[2])[0]
    assert (cut.ids, cut.finished, len(cut.alignment)) == ((4, 5), False, 2)
    assert cut.score == pytest.approx(2 * math.log(0.9) / (7 / 6))
    # With room for the improbable ends in the beam, something finishes, and then what was cut does not count.
    (hypotheses,) = table.beam(beam_size=3, n_best=3, lengths=[2])
    assert [(item.ids, item.finished) for item in hypotheses] == [((4,), True), ((), True)]


def test_coverage_penalty_prefers_what_has_read_all_of_the_source() -> None:
    table = Table(torch.full((1, HISTORIES, 6), -math.inf), torch.zeros(1, HISTORIES, 3))
    after = {tokens: history_of(tokens) for tokens in ((BOS,), (BOS, 4), (BOS, 5))}
    table.log_probs[0, after[BOS,], [4, 5]] = torch.tensor([0.6, 0.4]).log()
    for token, looked_at in ((4, 0), (5, 1)):
        table.log_probs[0, after[BOS, token], EOS] = 0.0
        table.weights[0, after[BOS, token], looked_at] = 1.0
    table.weights[0, after[BOS,], 0] = 1.0  # the third position is padding, which nobody can look at
    mask = torch.tensor([[True, True, False]])

    def best(beta: float) -> Hypothesis:
        search: dict[str, Any] = {"beam_size": 2, "lengths": [4], "source_mask": mask}
        return table.beam(coverage_penalty=beta, **search)[0][0]

    assert best(0.0).ids == (4,)
    assert best(1.0).ids == (5,)
    assert best(1.0).score == pytest.approx(math.log(0.4) / (7 / 6))


def history_of(tokens: tuple[int, ...]) -> int:
    history = 0
    for token in tokens:
        history = (history * 31 + token + 1) % HISTORIES
    return history


def test_nothing_possible_gives_an_empty_hypothesis_and_never_nan() -> None:
    dead = chain({4: 1.0}, {PAD: 1.0})
    broken = Table(torch.full((1, HISTORIES, 6), math.nan), torch.ones(1, HISTORIES, 2))
    for table in (dead, broken):
        hypotheses = [
            *table.beam(beam_size=3, n_best=2, lengths=[4])[0],
            *table.greedy(lengths=[4]),
            *table.sample(numbers(1, 1, 4), lengths=[4])[0],
        ]
        assert {(item.ids, item.score, item.finished, len(item.alignment)) for item in hypotheses} == {
            ((), -math.inf, False, 0)
        }
        assert len(hypotheses) == 3


def test_finished_sentences_leave_the_batch_and_their_memory_once_half_of_the_hypotheses_are_gone() -> None:
    table = Table.random(8, batch=16, size=20)
    table.beam(beam_size=3, lengths=range(1, 17))
    assert table.memories == sorted(table.memories, reverse=True)
    assert (table.memories[0], table.batches[0]) == (16, 16)
    assert table.memories[-1] <= 4
    assert table.batches[-1] <= 3 * table.memories[-1]
    assert len(set(table.memories)) <= 1 + math.log2(16 * 3)


class Lazy:
    """Log-probabilities that are computed for the rows that are indexed."""

    def __init__(self, log_probs: Tensor) -> None:
        self.log_probs = log_probs

    def __len__(self) -> int:
        return len(self.log_probs)

    def __getitem__(self, rows: slice) -> Tensor:
        return self.log_probs[rows]


class LazyTable(Table):
    def step(self, tokens: Tensor, state: State, memory: Sentences, rows: Tensor) -> Result:
        result = super().step(tokens, state, memory, rows)
        return replace(result, log_probs=Lazy(result.log_probs))


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_log_probabilities_may_be_computed_some_rows_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table, lengths, uniform = Table.random(13, batch=5, size=9), [8] * 5, numbers(5, 2, 8)
    searches: list[Callable[[Table], list[list[Hypothesis]]]] = [
        lambda table: table.beam(beam_size=3, n_best=3, lengths=lengths),
        lambda table: table.beam(lengths=lengths),
        lambda table: table.sample(uniform, lengths=lengths),
        lambda table: table.sample(uniform, lengths=lengths, top_k=3),
    ]
    references = [run(table) for run in searches]
    monkeypatch.setattr("nmt.search.candidates.ROWS_AT_ONCE", at_once)
    for run, expected in zip(searches, references, strict=True):
        check_all_equal(run(LazyTable(table.log_probs, table.weights)), expected)


@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize("horizon", [None, 2])
def test_the_fast_search_finds_the_same(beta: float, horizon: int | None) -> None:
    """Without a compiler it is the plain one."""
    for seed in range(4):
        table = Table.random(seed, batch=7, impossible=0.2)
        settings: dict[str, Any] = {"beam_size": 3, "n_best": 3, "horizon": horizon, "coverage_penalty": beta}
        results, expected = (table.beam(kind=kind, lengths=range(2, 9), **settings) for kind in (FastSearch, Search))
        check_all_equal(results, expected)


@pytest.mark.parametrize("check_every", [2, 8, 100])
@pytest.mark.parametrize("impossible", [0.0, 0.4])
def test_looking_less_often_at_what_has_ended_changes_nothing(check_every: int, impossible: float) -> None:
    for seed in range(3):
        table = Table.random(seed, batch=7, size=9, impossible=impossible)
        settings: dict[str, Any] = {"coverage_penalty": 0.2 * seed, "length_penalty": 0.7, "lengths": range(3, 24, 3)}
        horizon, prune = [(None, None), (2, 3.0), (4, None)][seed]
        beam: dict[str, Any] = {"beam_size": 4, "n_best": 3, "horizon": horizon, "prune": prune}
        searches: list[Callable[..., list[list[Hypothesis]]]] = [
            partial(table.beam, **beam),
            table.beam,
            partial(table.sample, numbers(7, 3, 21), top_k=4),
        ]
        for search in searches:
            check_all_equal(search(check_every=check_every, **settings), search(**settings))


@pytest.mark.parametrize("size", [1, 4])
def test_values_are_read_back_only_where_the_search_looks_at_what_has_ended(size: int) -> None:
    """On a GPU: once every eighth step, and a few times at the end for the hypotheses themselves."""
    counts = []
    for length in (8, 48):
        table = Table.random(3, batch=5, size=30)
        table.log_probs[:, :, EOS] = -math.inf  # never done
        with ReadBacks() as reads:
            table.beam(beam_size=size, lengths=[length] * 5, check_every=8)
        assert len(table.batches) == length
        counts.append(len(reads.operations))
    assert counts[1] - counts[0] == (48 - 8) // 8, reads.operations


def test_the_first_step_runs_once_a_sentence_and_the_beam_widens_as_far_as_it_can() -> None:
    table = Table.random(9, batch=3)
    table.beam(beam_size=20, n_best=20, lengths=[4] * 3)
    assert table.batches[:3] == [3, 9, 27]
    assert 27 < table.batches[3] <= 60


def numbers(*shape: int, seed: int = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("options", "share"),
    [
        ({}, lambda p: p),
        ({"temperature": 0.5}, lambda p: p**2),
        ({"temperature": 3.0}, lambda p: p ** (1 / 3)),
        ({"top_k": 2}, lambda p: p * (p >= np.sort(p, axis=1)[:, -2:-1])),
        ({"top_k": 2, "temperature": 0.5}, lambda p: p**2 * (p >= np.sort(p, axis=1)[:, -2:-1])),
    ],
)
def test_samples_are_as_frequent_as_the_distribution_says(
    options: dict[str, Any], share: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Of the chain BOS -> {4, 5} -> {4, 5, EOS} ... with two words at most, each output against its exact probability."""
    transitions = np.zeros((6, 6))
    transitions[[PAD, EOS], EOS] = 1.0  # never left
    transitions[BOS, [UNK, 4, 5]] = 0.1, 0.6, 0.3
    transitions[[UNK, 4, 5], EOS] = 0.2, 0.5, 0.3
    transitions[[UNK, 4, 5], 4] = 0.5, 0.1, 0.6
    transitions[[UNK, 4, 5], 5] = 0.3, 0.4, 0.1

    def step(tokens: Tensor, state: State, memory: Sentences, rows: Tensor) -> Result:
        return Result(torch.from_numpy(transitions).float()[tokens].log(), torch.ones(len(tokens), 1), state)

    many, nothing = 6000, torch.zeros(1, dtype=torch.long)
    start = step, State(nothing), Sentences(nothing), torch.tensor([2])
    [samples] = Search(SearchOptions(**options)).sample(*start, uniform=numbers(1, many, 2))
    counts = Counter((*item.ids, EOS) if item.finished else item.ids for item in samples)
    adapted = share(transitions) / share(transitions).sum(axis=1, keepdims=True)
    exact = {
        (one, other): adapted[BOS, one] * adapted[one, other] * many
        for one, other in product((UNK, 4, 5), (4, 5, EOS))
        if adapted[BOS, one] * adapted[one, other]
    }
    assert counts.keys() <= exact.keys()
    chi_squared = sum((counts[output] - expected) ** 2 / expected for output, expected in exact.items())
    assert chi_squared < 26.1  # 1 in 1,000 for the 8 degrees of freedom of all nine outputs
    for item in samples[:50]:
        path = (BOS, *item.ids, EOS) if item.finished else (BOS, *item.ids)
        chance = math.prod(transitions[one, other] for one, other in pairwise(path))
        assert item.log_probability == pytest.approx(math.log(chance), abs=1e-5)  # the model's own, not the adapted one


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, None), (0.7, None), (1.0, 3)])
def test_a_sample_follows_from_its_numbers_alone(temperature: float, top_k: int | None) -> None:
    """Token by token that of inverse transform sampling, whatever is drawn beside it."""
    table, lengths = Table.random(12, batch=6, size=9), [9, 3, 7, 1, 9, 5]
    uniform = numbers(6, 4, 9)
    options: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "coverage_penalty": 0.2}
    together = table.sample(uniform, lengths=lengths, **options)
    assert len({item.ids for drawn in together for item in drawn}) > 12
    for sentence, drawn in enumerate(together):
        single, limit = table.only(sentence), lengths[sentence : sentence + 1]
        [alone] = single.sample(uniform[sentence : sentence + 1, 1:2], lengths=limit, **options)
        check_equal(alone[0], drawn[1])
        for number, item in enumerate(drawn):
            produced = (*item.ids, EOS) if item.finished else item.ids
            assert produced == reference_sample(
                table, sentence, lengths[sentence], uniform[sentence, number].numpy(), temperature, top_k
            )
            assert item.score == pytest.approx(score_of(table, sentence, produced, 1.0, 0.2), abs=1e-5)


def reference_sample(
    table: Table, sentence: int, length: int, uniform: np.ndarray, temperature: float, top_k: int | None
) -> tuple[int, ...]:
    """Inverse transform sampling with NumPy, a token at a time."""
    tokens: tuple[int, ...] = ()
    while len(tokens) < length and tokens[-1:] != (EOS,):
        log_probs = table.log_probs[sentence, history_of((BOS, *tokens))].double().numpy().copy()
        log_probs[[PAD, BOS]] = -np.inf
        if top_k is not None:
            log_probs[np.argsort(-log_probs)[top_k:]] = -np.inf
        weights = np.exp(log_probs / temperature)
        reach = np.cumsum(weights / weights.sum())
        tokens += (int(np.argmax(reach > uniform[len(tokens)])),)
    return tokens


def test_the_largest_number_draws_what_is_possible() -> None:
    """Rounding must not lead beyond the last token that has a probability."""
    table = chain({4: 0.3, 5: 0.7}, {4: 0.9, EOS: 0.1})
    uniform = torch.full((1, 1, 2), math.nextafter(1.0, 0.0))  # 1.0 as a float
    [[drawn]] = table.sample(uniform, lengths=[2])
    assert drawn.ids == (5, 4)


def test_no_sentences_give_no_hypotheses() -> None:
    table = Table.random(0, batch=1)
    assert table.beam(beam_size=2, lengths=[]) == []
    assert table.sample(numbers(0, 3, 5), lengths=[]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1, but is 0."),
        ({"n_best": 3}, "n_best must be between 1 and beam_size, which is 2, but is 3."),
        ({"horizon": 0}, "horizon must be at least 1, but is 0."),
        ({"prune": -0.1}, "prune must be at least 0, but is -0.1."),
        ({"length_penalty": -0.5}, "length_penalty must be at least 0, but is -0.5."),
        ({"coverage_penalty": math.nan}, "coverage_penalty must be at least 0, but is nan."),
        ({"lengths": [3, 0]}, "max_lengths must be at least 1 everywhere, but holds 0."),
        ({"temperature": 0.0}, "temperature must be above 0, but is 0.0."),
        ({"top_k": 0}, "top_k must be at least 1, but is 0."),
        ({"uniform": torch.zeros(2, 1, 2)}, "uniform must hold a number for each of 3 steps, but has 2."),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str) -> None:
    table = Table.random(0, batch=2)
    arguments: dict[str, Any] = {"beam_size": 2, "lengths": [3, 3]} | options
    with pytest.raises(UsageError, match=message):
        table.sample(**arguments) if "uniform" in options else table.beam(**arguments)


@pytest.mark.parametrize("options", [{"temperature": math.nan}, {"top_k": 0}, {"seed": -1}])
def test_impossible_sampling_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        Sampling(**options)
