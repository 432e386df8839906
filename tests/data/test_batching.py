"""Padding, BOS and EOS, and the plan of an epoch: every row once, within the budget, repeatable, little padding."""

from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import batching
from nmt.data.batching import make_batch, pad, plan_batches, plan_sentence_batches
from nmt.text.subwords import BOS, EOS, PAD

lengths = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=80)


# --- one batch ----------------------------------------------------------------------------------------------------


def test_sequences_are_padded_on_the_right() -> None:
    assert pad([[5, 6, 7], [], [8]]).tolist() == [[5, 6, 7], [PAD] * 3, [8, PAD, PAD]]
    assert pad([[5]]).dtype == torch.long


ids = st.lists(st.integers(4, 30), max_size=9)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=6))
def test_the_pairs_can_be_read_back_out_of_a_batch(pairs: list[tuple[list[int], list[int]]]) -> None:
    batch = make_batch(pairs)
    for row, (source, target) in enumerate(pairs):
        assert batch.source[row][batch.source_mask[row]].tolist() == [*source, EOS]
        assert batch.target_in[row][batch.target_mask[row]].tolist() == [BOS, *target]
        assert batch.target_out[row][batch.target_mask[row]].tolist() == [*target, EOS]
    assert (batch.source[~batch.source_mask] == PAD).all()
    assert int(batch.target_mask.sum()) == sum(len(target) + 1 for _, target in pairs)


def test_moving_a_batch_moves_every_tensor_and_keeps_the_rows() -> None:
    batch = make_batch([([7], [8, 9]), ([5, 6], [4])], [4, 2], torch.ones(2, 3, 3, dtype=torch.bool))
    moved = batch.to("cpu")
    assert moved.rows == (4, 2)
    assert all(torch.equal(getattr(moved, name), value) for name, value in vars(batch).items() if name != "rows")


# --- the plan of an epoch -----------------------------------------------------------------------------------------


def realistic(rows: int = 29_000) -> tuple[np.ndarray, np.ndarray]:
    """Lengths like those of Multi30k in tokens: some 14 a side, the two sides close to each other."""
    generator = np.random.default_rng(7)
    source = generator.gamma(9, 1.6, rows)
    target = source * generator.normal(1, 0.15, rows).clip(0.5, 2) + generator.normal(0, 1, rows)
    return source.round().clip(1).astype(np.int32), target.round().clip(1).astype(np.int32)


@pytest.mark.parametrize("batch_tokens", [1024, 4096])
def test_little_of_a_batch_is_padding_and_most_of_the_budget_is_used(batch_tokens: int) -> None:
    source, target = realistic()
    batches = plan_batches(source, target, batch_tokens=batch_tokens, seed=1, epoch=0)
    padded, real = np.zeros(2), np.zeros(2)
    for rows in batches:
        for side, side_lengths in enumerate((source[rows] + 1, target[rows] + 1)):
            padded[side] += len(rows) * side_lengths.max()
            real[side] += side_lengths.sum()
    assert (1 - real / padded < 0.05).all()
    assert padded[1] / len(batches) > 0.9 * batch_tokens


def loop_cut(source: list[int], target: list[int], batch_tokens: int) -> list[int]:
    """Where batches begin and end, row by row: the plain form of `cut`."""
    starts, widest, longest = [0], 0, 0
    for row, (source_length, target_length) in enumerate(zip(source, target, strict=True)):
        longest, widest = max(longest, source_length), max(widest, target_length)
        size = row - starts[-1] + 1
        if size > 1 and max(size * widest, size * longest / 2) > batch_tokens:
            starts.append(row)
            longest, widest = source_length, target_length
    return [*starts, len(target)] if target else [0]


def loop_plan(source: np.ndarray, target: np.ndarray, *, batch_tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """The plan of a corpus of one span, as it is since the first version: a saved run must go on with the same batches."""
    generator = np.random.default_rng((seed, epoch))
    shuffled = generator.permutation(len(target)).tolist()
    longer, surplus = np.maximum(source, target), source.astype(int) - target
    order = sorted(shuffled, key=lambda row: (longer[row], surplus[row] if longer[row] % 2 else -surplus[row]))
    starts = loop_cut((source[order] + 1).tolist(), (target[order] + 1).tolist(), batch_tokens)
    batches = [order[start:end] for start, end in pairwise(starts)]
    return [batches[number] for number in generator.permutation(len(batches))]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=300),
    st.integers(1, 3000),
    st.integers(0, 2**32),
    st.integers(0, 50),
)
def test_the_plan_is_that_of_a_loop(pairs: list[tuple[int, int]], batch_tokens: int, seed: int, epoch: int) -> None:
    source, target = (np.array([pair[side] for pair in pairs], dtype=np.int32) for side in (0, 1))
    settings: dict[str, Any] = {"batch_tokens": batch_tokens, "seed": seed, "epoch": epoch}
    np.random.seed(epoch)  # noqa: NPY002 -- the global generator must not matter
    result = [rows.tolist() for rows in plan_batches(source, target, **settings)]
    assert result == loop_plan(source, target, **settings)


@pytest.fixture
def short_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "SPAN", 1000)


@pytest.mark.usefixtures("short_spans")
def test_the_rows_of_a_large_corpus_are_sorted_span_by_span() -> None:
    source, target = realistic(4500)
    plan = plan_batches(source, target, batch_tokens=500, seed=1, epoch=0)
    assert sorted(row for rows in plan for row in rows.tolist()) == list(range(4500))
    shuffled = np.random.default_rng((1, 0)).permutation(4500)
    span_of = np.empty(4500, int)
    span_of[shuffled] = np.arange(4500) // 1000
    assert all(len(set(span_of[rows])) == 1 for rows in plan)
    spans = [int(span_of[rows[0]]) for rows in plan]
    assert spans != sorted(spans), "batches are shuffled over all spans"
    sentences = plan_sentence_batches(source, target, batch_sentences=64, sort_within=None, seed=1, epoch=0)
    assert sorted(row for rows in sentences for row in rows.tolist()) == list(range(4500))
    assert sorted(map(len, sentences)) == [4500 % 64] + [64] * (4500 // 64)


@pytest.mark.parametrize("size", [100, 2500])
@pytest.mark.usefixtures("short_spans")
def test_an_epoch_may_have_some_rows_and_some_of_them_often(size: int) -> None:
    source, target = realistic(3000)
    rows = np.repeat(np.arange(0, size, 2, dtype=np.int32), 2)
    for plan in (
        plan_batches(source, target, batch_tokens=500, seed=1, epoch=0, rows=rows),
        plan_sentence_batches(source, target, batch_sentences=30, sort_within=2, seed=1, epoch=0, rows=rows),
    ):
        assert sorted(row for batch in plan for row in batch.tolist()) == rows.tolist()
    assert rows.tolist() == sorted(rows), "the argument is not changed"


def test_a_plan_is_a_sequence() -> None:
    source, target = realistic(500)
    plan = plan_batches(source, target, batch_tokens=300, seed=1, epoch=0)
    batches = [rows.tolist() for rows in plan]
    assert [rows.tolist() for rows in plan[3:]] == batches[3:]
    assert plan[-1].tolist() == batches[-1]
    with pytest.raises(IndexError):
        plan[len(plan)]


# --- batches of sentences ---------------------------------------------------------------------------------------------


def sentence_plan(
    pairs: list[tuple[int, int]], *, sort_within: int | None, seed: int = 1, epoch: int = 0
) -> list[list[int]]:
    source, target = (np.array([pair[side] for pair in pairs], dtype=np.int32) for side in (0, 1))
    plan = plan_sentence_batches(source, target, batch_sentences=4, sort_within=sort_within, seed=seed, epoch=epoch)
    return [rows.tolist() for rows in plan]


@given(lengths, st.sampled_from([None, 1, 3]), st.integers(0, 2**32), st.integers(0, 50))
def test_batches_of_sentences_hold_every_row_once(
    pairs: list[tuple[int, int]], sort_within: int | None, seed: int, epoch: int
) -> None:
    batches = sentence_plan(pairs, sort_within=sort_within, seed=seed, epoch=epoch)
    assert sorted(row for rows in batches for row in rows) == list(range(len(pairs)))
    assert sorted(map(len, batches))[1:] == [4] * (len(batches) - 1)
    assert batches == sentence_plan(pairs, sort_within=sort_within, seed=seed, epoch=epoch)


def test_pairs_are_sorted_by_length_within_so_many_batches() -> None:
    pairs = [(length % 17, length % 23) for length in range(96)]
    batches = sentence_plan(pairs, sort_within=3)
    assert batches != sentence_plan(pairs, sort_within=3, epoch=1)
    longer = [[max(pairs[row]) for row in chain(*batches[start : start + 3])] for start in range(0, len(batches), 3)]
    assert all(lengths == sorted(lengths) for lengths in longer)
    assert list(chain(*longer)) != sorted(chain(*longer))


def test_without_sort_within_all_pairs_are_sorted_and_the_batches_shuffled() -> None:
    pairs = [(length % 17, length % 23) for length in range(96)]
    batches = [[max(pairs[row]) for row in rows] for rows in sentence_plan(pairs, sort_within=None)]
    assert list(chain(*sorted(batches))) == sorted(chain(*batches))
    assert batches != sorted(batches)
