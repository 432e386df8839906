"""Mixtures: the concatenation, its tags, and how often an epoch shows each pair."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.mixture import describe_mixture, mix, pairs_per_epoch, rows_of_epoch
from nmt.recipe import CorpusConfig, DataConfig


def corpus(name: str, lines: int) -> ParallelCorpus:
    source, target = collect([([f"{name} {n}" for n in range(lines)], [f"{n} {name}" for n in range(lines)])], 2)
    return ParallelCorpus(source, target, name, ("en", "de"))


def data(*weights: float, temperature: float | None = None) -> DataConfig:
    train = tuple(CorpusConfig(corpus=f"c{number}", weight=weight) for number, weight in enumerate(weights))
    return DataConfig(source="en", target="de", train=train, valid="v", temperature=temperature)


def ranges(*sizes: int) -> list[range]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [range(start, end) for start, end in pairwise(ends)]


# --- the text ---------------------------------------------------------------------------------------------------


def test_the_text_is_the_concatenation_with_tags() -> None:
    empty, target = collect([([""], ["0 b"])], 2)
    no_source = ParallelCorpus(empty, target, "b", ("en", "de"))  # it gets no tag, so that filters see it
    assert list(mix([no_source], [("<BT>",)]).source) == [""]
    mixed = mix([corpus("a", 2), corpus("b", 1), corpus("a", 1)], [(), ("<BT>",), ()])
    plain = [("a 0", "0 a"), ("a 1", "1 a"), ("b 0", "0 b"), ("a 0", "0 a")]
    assert list(mixed.untagged.pairs()) == plain
    plain[2] = ("<BT> b 0", "0 b")
    assert list(mixed.pairs()) == plain
    assert (mixed.name, mixed.languages) == ("a + b + a", ("en", "de"))
    untagged = mix([corpus("a", 2)], [()])
    assert untagged.untagged is untagged


def test_the_fingerprint_depends_on_texts_tags_and_order_alone() -> None:
    a, b = corpus("a", 3), corpus("b", 2)
    plain = [mix(parts, [(), ()]) for parts in ([a, b], [b, a], [a, a])]
    tagged = [mix([a, b], tags) for tags in ([(), ("<BT>",)], [("<BT>",), ()], [(), ("<X>",)])]
    assert len({mixed.fingerprint for mixed in (*plain, *tagged)}) == 6
    assert mix([a], [()]).fingerprint == a.fingerprint


# --- epochs -----------------------------------------------------------------------------------------------------


def test_whole_weights_repeat_and_fractions_take_turns() -> None:
    parts = ranges(10, 6, 4)
    epochs = [rows_of_epoch(data(1, 2, 0.5), parts, seed=3, epoch=epoch) for epoch in range(4)]
    for rows in epochs:
        assert rows.dtype == np.int32
        assert rows.tolist() == sorted(rows)
        times = Counter(rows.tolist())
        assert [times[row] for row in range(16)] == [1] * 10 + [2] * 6
        assert sum(times[row] for row in parts[2]) == 2
    halves = [frozenset(rows[rows >= 16].tolist()) for rows in epochs]
    assert halves[0] | halves[1] == {16, 17, 18, 19}, "the second epoch takes what the first left out"
    assert halves[2:] == halves[:2]
    again = rows_of_epoch(data(1, 2, 0.5), parts, seed=3, epoch=1)
    assert again.tolist() == epochs[1].tolist()
    others = {frozenset(rows_of_epoch(data(1, 2, 0.5), parts, seed=seed, epoch=0).tolist()) for seed in range(20)}
    assert len(others) > 1


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0.01, 5)), min_size=1, max_size=4), st.integers(0, 30))
def test_each_pair_is_shown_as_often_as_the_others_or_once_more(corpora: list[tuple[int, float]], epoch: int) -> None:
    sizes, weights = zip(*corpora, strict=True)
    rows = rows_of_epoch(data(*weights), ranges(*sizes), seed=1, epoch=epoch)
    times = np.bincount(rows, minlength=sum(sizes))
    for part, count in zip(ranges(*sizes), pairs_per_epoch(data(*weights), sizes), strict=True):
        of_part = times[part.start : part.stop]
        assert of_part.sum() == count
        assert not len(of_part) or of_part.max() - of_part.min() <= 1


@pytest.mark.parametrize(
    ("temperature", "expected"), [(1, [900, 90, 10]), (2, [703, 223, 74]), (1000, [334, 333, 333])]
)
def test_shares_follow_the_temperature(temperature: float, expected: list[int]) -> None:
    sizes = [900, 90, 10]
    roots = np.array(sizes) ** (1 / temperature)
    counts = pairs_per_epoch(data(1, 1, 1, temperature=temperature), sizes)
    assert sum(counts) == sum(sizes)
    assert np.abs(counts - sum(sizes) * roots / roots.sum()).max() < 1
    assert counts == expected
    rows = rows_of_epoch(data(1, 1, 1, temperature=temperature), ranges(*sizes), seed=1, epoch=2)
    assert [np.count_nonzero((rows >= part.start) & (rows < part.stop)) for part in ranges(*sizes)] == expected


def test_a_corpus_without_a_pair_left_has_no_share() -> None:
    assert pairs_per_epoch(data(3, 1), [0, 5]) == [0, 5]
    assert pairs_per_epoch(data(1, 1, temperature=5), [0, 5]) == [0, 5]
    assert rows_of_epoch(data(3, 1), ranges(0, 5), seed=1, epoch=0).tolist() == [0, 1, 2, 3, 4]


def test_the_description_counts_what_an_epoch_shows() -> None:
    assert describe_mixture(data(2, 0.5), ranges(1000, 1)) == (
        "An epoch shows 2,000 from 1,000 pairs of c0, 1 from 1 pair of c1."
    )
    assert describe_mixture(DataConfig(source="en", target="de", train="a", valid="v"), []) is None
