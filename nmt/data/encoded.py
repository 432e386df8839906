"""A parallel corpus as token ids: filtered, memory-mapped, and cached by fingerprint.

The cached file is an Arrow stream of one record batch, which `datasets.Dataset.from_file` reads too. Its columns are `source` and
`target`, the ids of each pair, and `row`, the row of the pair in the unfiltered corpus. The counts of the filters are metadata.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, pairwise, starmap
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nmt.data.arrays import ArrayFile, Lists, collect_lists
from nmt.data.corpus import ParallelCorpus
from nmt.data.filters import FilterReport, first_occurrences, keep
from nmt.data.rules import TextRule, text_rules
from nmt.errors import DataError
from nmt.recipe import FiltersConfig
from nmt.runtime.cache import cache_folder
from nmt.runtime.cores import usable_cores
from nmt.runtime.files import replacing
from nmt.runtime.json_files import parse_json
from nmt.runtime.pool import Pool
from nmt.text.subwords import Subwords

VERSION = 5
"""Increase it when the content of cached files or its meaning changes."""
BATCH = 8_192
"""Lines that a process encodes at a time."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IdTable:
    """The pairs of a corpus, or of some of its rows, that pass the filters.

    Attributes:
        rows: the row of each pair in the unfiltered corpus.
        source: the source ids of each pair.
        target: the target ids of each pair.
        counts: how many pairs were kept, and how many each rule removed, as in a `FilterReport`.
    """

    rows: npt.NDArray[np.int64]
    source: Lists
    target: Lists
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of pairs before filtering."""
        return sum(self.counts.values())


Watch = Callable[[Iterable[IdTable]], Iterator[IdTable]]
"""Passes the batches on and shows how far encoding has come."""


class EncodedPairs:
    """Sentence pairs as ids, read when indexed."""

    def __init__(self, source: Lists, target: Lists) -> None:
        self.source, self.target = source, target
        self.source_lengths, self.target_lengths = source.lengths(), target.lengths()

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Sequence[int] | npt.NDArray[np.integer]) -> list[tuple[list[int], list[int]]]:
        """The ids of both sides of each row, without begin or end mark."""
        pairs = zip(self.source[rows], self.target[rows], strict=True)
        return [(source.tolist(), target.tolist()) for source, target in pairs]


class EncodedCorpus(EncodedPairs):
    """The filtered pairs of a corpus as ids, numbered from 0."""

    def __init__(self, ids: IdTable, corpus: ParallelCorpus, filters: FiltersConfig | None) -> None:
        super().__init__(ids.source, ids.target)
        self.report = FilterReport(ids.counts, filters)
        self.tokens = (len(ids.source.values), len(ids.target.values))
        """Number of tokens of each side, without end marks."""
        self.rows = ids.rows
        """The row of each pair in the unfiltered corpus."""
        self._columns, self._ranges = (corpus.source, corpus.target), corpus.ranges

    @property
    def parts(self) -> list[range]:
        """The rows of each corpus of a mixture, or of the one corpus."""
        ends = [0, *(rows.stop for rows in self._ranges)]
        return list(starmap(range, pairwise(np.searchsorted(self.rows, ends).tolist())))

    def lines(self, side: int, start: int, stop: int) -> Iterator[str]:
        """The source lines (side 0) or target lines (side 1) of consecutive rows."""
        for first in range(start, stop, BATCH):
            rows = self.rows[first : min(first + BATCH, stop)]
            yield from self._columns[side].part(slice(rows[0], rows[-1] + 1)).take(rows - rows[0])


def encode_corpus(
    corpus: ParallelCorpus,
    source_subwords: Subwords,
    target_subwords: Subwords,
    filters: FiltersConfig | None,
    cache: Path | None = None,
    watch: Watch = iter,
) -> EncodedCorpus:
    """Encode and filter a corpus, in parallel processes if it is large, or load the result from the cache.

    Args:
        corpus: the text.
        source_subwords: encodes the source side.
        target_subwords: encodes the target side.
        filters: which pairs to leave out; None keeps all.
        cache: the cache folder; `cache_folder()` if None. Without one that is writable, the ids are encoded anew each time.
        watch: shows the progress.

    Raises:
        DataError: no pair passes the filters, or a process was killed.
        UsageError: a filter does not know one of the languages, or needs a package that is not installed.
    """
    sides = (source_subwords, target_subwords)
    rules = [() if filters is None else text_rules(filters, part.languages) for part in corpus.parts or [corpus]]
    parts = list(zip(corpus.ranges, rules, strict=True))
    content = (VERSION, corpus.fingerprint, *(subwords.fingerprint for subwords in sides), filters, parts)
    name = hashlib.sha256(repr(content).encode()).hexdigest()[:32]
    path = (cache or cache_folder()) / "encoded" / f"{name}.arrow"
    ids = _load(path)
    if ids is None:
        first = None
        if filters and not filters.duplicates:
            first = first_occurrences(corpus.pairs(), len(corpus))
        tasks = (
            (slice(start, min(start + BATCH, rows.stop)), rules)
            for rows, rules in parts
            for start in range(rows.start, rows.stop, BATCH)
        )
        with Pool(partial(_encode, corpus, sides, filters, first), usable_cores(), computes=False) as pool:
            ids = _save(_join(watch(pool.map(tasks)), id_type(*sides)), path)
    encoded = EncodedCorpus(ids, corpus, filters)
    if not len(encoded):
        raise DataError(f"No pair of {corpus.name} passes the filters ({encoded.report}): relax data.filters.")
    return encoded


def id_type(*sides: Subwords) -> npt.DTypeLike:
    """The smallest type of array that holds the ids of these models."""
    return np.uint16 if max(map(len, sides)) <= 2**16 else np.int32


def _encode(
    corpus: ParallelCorpus,
    sides: tuple[Subwords, Subwords],
    filters: FiltersConfig | None,
    first: npt.NDArray[np.bool_] | None,
    task: tuple[slice, Sequence[TextRule]],
) -> IdTable:
    """Encode some rows, and filter them by rules on their text; `first` says which pairs do not repeat another."""
    rows, rules = task
    texts = corpus.source[rows], corpus.target[rows]
    ids = [subwords.encode_batch(lines, threads=1) for subwords, lines in zip(sides, texts, strict=True)]
    lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
    pairs = list(zip(corpus.untagged.source[rows], texts[1], strict=True)) if rules else ()
    is_first = None if first is None else first[rows]
    mask, report = keep(lengths[0], lengths[1], filters, first=is_first, pairs=pairs, rules=rules)
    source, target = (Lists.of(list(compress(side, mask)), id_type(*sides)) for side in ids)
    return IdTable(np.flatnonzero(mask) + rows.start, source, target, report.counts)


def _join(batches: Iterable[IdTable], dtype: npt.DTypeLike) -> IdTable:
    """Join batches in temporary files."""
    counts: Counter[str] = Counter()

    def lists_of_sides() -> Iterator[tuple[Lists, Lists]]:
        for batch in batches:
            rows.append(batch.rows)
            counts.update(batch.counts)
            yield batch.source, batch.target

    with ArrayFile(np.int64) as rows:
        source, target = collect_lists(lists_of_sides(), 2, dtype)
        return IdTable(rows.array(), source, target, counts)


# --- the cached file --------------------------------------------------------------------------------------------


def _load(path: Path) -> IdTable | None:
    """Map a cached file; None if it does not exist or is damaged."""
    if not path.is_file():
        return None
    try:
        record = pa.ipc.open_stream(pa.memory_map(str(path))).read_next_batch()
        columns = (record.column(side) for side in ("source", "target"))
        source, target = (Lists(column.values.to_numpy(), column.offsets.to_numpy()) for column in columns)
        return IdTable(record.column("row").to_numpy(), source, target, parse_json(record.schema.metadata[b"counts"]))
    except (OSError, ValueError, KeyError) as error:
        _log.warning("The cached file %s is damaged (%s) and is made again.", path, error)
        return None


def _save(ids: IdTable, path: Path) -> IdTable:
    """Write a cached file and map it; the ids stay in temporary files where it cannot be written."""
    columns = {
        side: pa.LargeListArray.from_arrays(pa.array(lists.starts), pa.array(lists.values))
        for side, lists in (("source", ids.source), ("target", ids.target))
    }
    metadata = {"counts": json.dumps(ids.counts)}
    record = pa.RecordBatch.from_pydict({**columns, "row": pa.array(ids.rows)}, metadata=metadata)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing(path) as beside,
            pa.OSFile(str(beside), "wb") as sink,
            pa.ipc.new_stream(sink, record.schema) as writer,
        ):
            writer.write_batch(record)
    except OSError as error:
        _log.warning("Cannot keep encoded text in %s (%s): it will be encoded again next time.", path.parent, error)
        return ids
    return _load(path) or ids
