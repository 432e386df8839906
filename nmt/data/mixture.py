"""Mix training corpora: concatenate them, tag their source lines, and say which pairs an epoch shows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from nmt.data.columns import Column
from nmt.data.corpus import ParallelCorpus, concatenate
from nmt.recipe import DataConfig
from nmt.runtime.wording import counted
from nmt.text.subwords import Subwords


def mix(parts: Sequence[ParallelCorpus], tags: Sequence[tuple[str, ...]]) -> ParallelCorpus:
    """Concatenate corpora. Source lines get the tags of their corpus, unless they are empty: filters drop those."""

    def tagged(lines: Column, words: Sequence[str]) -> Column:
        return lines.mapped(lambda batch: [line and " ".join([*words, line]) for line in batch])

    sources = [tagged(part.source, words) if words else part.source for part, words in zip(parts, tags, strict=True)]
    return replace(concatenate(parts), source=Column.concatenated(sources), parts=tuple(parts), tags=tuple(tags))


def split_tags_warning(data: DataConfig, source: Subwords) -> str | None:
    """A warning if given subwords split a tag into several tokens; those that are trained with the mixture never do."""
    tags = dict.fromkeys(tag for corpus in data.corpora for tag in data.tags(corpus))
    split = [f"{tag} ({counted(len(source.encode(tag)), 'token')})" for tag in tags if len(source.encode(tag)) > 1]
    if not split:
        return None
    return f"Warning: the subwords split {' and '.join(split)}. A tag works best as one token: train subwords with this mixture."


# --- the pairs of an epoch --------------------------------------------------------------------------------------


def rows_of_epoch(data: DataConfig, parts: Sequence[range], *, seed: int, epoch: int) -> npt.NDArray[np.int32]:
    """The rows that an epoch shows, in the order of the corpus; a row that it shows twice is there twice.

    Of a part whose weight is no whole number, each epoch takes other pairs, until every pair has had its turn.

    Args:
        data: the weights, or the temperature.
        parts: the rows of each corpus of the mixture, after filtering.
        seed: with the number of the part, says in which order its pairs have their turn.
        epoch: number of the epoch, from 0.
    """
    counts = pairs_per_epoch(data, [len(rows) for rows in parts])
    parts_of_epoch = (
        _rows_of_part(rows, count, np.random.default_rng((seed, number)), epoch)
        for number, (rows, count) in enumerate(zip(parts, counts, strict=True))
    )
    return np.concatenate([*parts_of_epoch])


def pairs_per_epoch(data: DataConfig, sizes: Sequence[int]) -> list[int]:
    """How many pairs of each corpus an epoch shows, from the numbers of pairs that they have.

    By weight w: w n, rounded, but at least one. By temperature T: N n^(1/T) / sum of all n^(1/T), where N is the sum of all n.
    """
    if data.temperature is None:
        weights = [corpus.weight for corpus in data.corpora]
        return [min(size, 1) and max(round(weight * size), 1) for size, weight in zip(sizes, weights, strict=True)]
    total = sum(sizes)
    parts = [size ** (1 / data.temperature) if size else 0.0 for size in sizes]
    exact = [total * part / sum(parts) for part in parts]
    counts = [int(share) for share in exact]
    for number in sorted(range(len(exact)), key=lambda number: counts[number] - exact[number])[: total - sum(counts)]:
        counts[number] += 1  # those with the largest remainders
    return counts


def describe_mixture(data: DataConfig, parts: Sequence[range]) -> str | None:
    """One sentence on how many pairs of each corpus an epoch shows; None if there is one corpus."""
    sizes = [len(rows) for rows in parts]
    if isinstance(data.train, str):
        return None
    counts = zip(pairs_per_epoch(data, sizes), sizes, data.train, strict=True)
    shown = ", ".join(f"{count:,} from {counted(size, 'pair')} of {config.corpus}" for count, size, config in counts)
    return f"An epoch shows {shown}."


def _rows_of_part(rows: range, count: int, generator: np.random.Generator, epoch: int) -> npt.NDArray[np.int32]:
    """So many rows of a corpus: all of them as often as they fit, and the next ones of a random order that goes round."""
    if not rows:
        return np.zeros(0, np.int32)
    all_rows = np.arange(rows.start, rows.stop, dtype=np.int32)
    times, rest = divmod(count, len(rows))
    if not rest:
        return np.repeat(all_rows, times)
    shown = np.full(len(rows), times)
    turns = (epoch * rest + np.arange(rest)) % len(rows)
    shown[generator.permutation(len(rows))[turns]] += 1
    return np.repeat(all_rows, shown)
