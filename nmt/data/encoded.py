"""A parallel corpus as token ids: filtered, memory-mapped, and cached by fingerprint."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, compress, pairwise, starmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import ParallelCorpus
from nmt.data.filters import FilterReport, first_occurrences, keep
from nmt.data.flat import Lengths, Lists
from nmt.data.id_file import VERSION, IdTable, open_ids, write_ids
from nmt.data.rules import TextRule, text_rules
from nmt.errors import DataError
from nmt.recipe import FiltersConfig
from nmt.runtime.cache import cache_folder
from nmt.runtime.cores import usable_cores
from nmt.runtime.files import replacing
from nmt.runtime.workers import Workers
from nmt.text.subwords import Subwords

BATCH = 8_192
"""Lines that a process encodes at a time."""
Watch = Callable[[Iterable[IdTable]], Iterator[IdTable]]
"""Passes the batches on and shows how far encoding has come."""
LOST = "A process that encodes text was killed, perhaps because memory ran out: end other programs, and start again."
_log = logging.getLogger(__name__)


class EncodedPairs:
    """Sentence pairs as ids, read when indexed."""

    def __init__(self, source: Lists, target: Lists) -> None:
        self.source, self.target = source, target
        self.source_lengths, self.target_lengths = Lengths(source), Lengths(target)

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
        self._corpus = corpus

    @property
    def parts(self) -> list[range]:
        """The rows of each corpus of a mixture, or of the one corpus."""
        ends = [0, *(rows.stop for rows in self._corpus.ranges)]
        return list(starmap(range, pairwise(np.searchsorted(self.rows, ends).tolist())))

    def text(self, rows: Sequence[int]) -> list[tuple[str, str]]:
        """The text of both sides of each row."""
        return [(self._corpus.source[row], self._corpus.target[row]) for row in self.originals(rows)]

    def lines(self, side: int, start: int, stop: int) -> Iterator[str]:
        """The source lines (side 0) or target lines (side 1) of consecutive rows."""
        column = (self._corpus.source, self._corpus.target)[side]
        for first in range(start, stop, BATCH):
            originals = self.rows[first : min(first + BATCH, stop)]
            lines = list(column.part(slice(originals[0], originals[-1] + 1)))
            yield from (lines[place] for place in (originals - originals[0]).tolist())

    def originals(self, rows: Sequence[int]) -> list[int]:
        """The row numbers in the unfiltered corpus."""
        originals: list[int] = self.rows[np.asarray(rows, np.int64)].tolist()
        return originals


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
        cache: the cache folder; `cache_folder()` if None. A temporary folder is used if it is not writable.
        watch: shows the progress.

    Raises:
        DataError: no pair passes the filters, or a process was killed.
        UsageError: a filter does not know one of the languages, or needs a package that is not installed.
    """
    encoding = _Encoding(corpus, (source_subwords, target_subwords), filters)
    path = (cache or cache_folder()) / "encoded" / f"{encoding.fingerprint}.arrow"
    encoded = EncodedCorpus(_open(path) or _make(path, encoding, watch), corpus, filters)
    if not len(encoded):
        raise DataError(f"No pair of {corpus.name} passes the filters ({encoded.report}): relax data.filters.")
    return encoded


def _open(path: Path) -> IdTable | None:
    """The content of a file; None if it does not exist or is damaged."""
    if not path.is_file():
        return None
    try:
        return open_ids(path)
    except (OSError, ValueError) as error:
        _log.warning("The cached file %s is damaged (%s) and is made again.", path, error)
        return None


def _make(path: Path, encoding: _Encoding, watch: Watch) -> IdTable:
    """Write the file, to a temporary folder if necessary, and open it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if opened := _written(path, encoding, watch):
            return opened
    except OSError as error:
        _log.warning("Cannot keep encoded text in %s (%s): it will be encoded again next time.", path.parent, error)
    reason = "the file cannot be read back"
    try:
        with tempfile.TemporaryDirectory(prefix="nmt-") as folder:  # the mapping outlives the file's name
            if opened := _written(Path(folder) / path.name, encoding, watch):
                return opened
    except OSError as error:
        reason = str(error)
    raise DataError(
        f"Cannot keep encoded text in {path.parent} or {tempfile.gettempdir()} ({reason}): set NMT_CACHE to another folder."
    )


def _written(path: Path, encoding: _Encoding, watch: Watch) -> IdTable | None:
    """Encode the corpus to the file and open it."""
    with replacing(path) as beside, closing(encoding.batches()) as batches:
        write_ids(beside, watch(batches), encoding.dtype)
    return _open(path)


_Task = tuple[slice, Sequence[TextRule]]
"""Rows to encode, and the rules on their text."""


@dataclass
class _Encoding:
    """Encodes a corpus and filters it, batch by batch."""

    corpus: ParallelCorpus
    sides: tuple[Subwords, Subwords]
    filters: FiltersConfig | None
    _first: npt.NDArray[np.bool_] | None = None
    """Where a pair is the first of its kind, if filters ask for that."""

    def __post_init__(self) -> None:
        parts = self.corpus.parts or [self.corpus]
        self.parts = [(len(part), self._rules(part.languages)) for part in parts]
        """The number of pairs of each part of a mixture, and the rules on its text."""

    def _rules(self, languages: tuple[str, str]) -> Sequence[TextRule]:
        return () if self.filters is None else text_rules(self.filters, languages)

    @property
    def dtype(self) -> npt.DTypeLike:
        return id_type(*self.sides)

    @property
    def fingerprint(self) -> str:
        """A hash of everything the ids depend on. A rule that is off has no part in it, so new rules leave old caches valid."""
        limits = self.filters and self.filters.model_dump_json(include={"max_length", "max_ratio", "duplicates"})
        is_mixture = len(self.parts) > 1 and any(rules for _, rules in self.parts)
        rules = [repr(self.parts)] if is_mixture else map(repr, self.parts[0][1])
        sides = (side.fingerprint for side in self.sides)
        content = json.dumps([VERSION, self.corpus.fingerprint, *sides, limits, *rules])
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def batches(self) -> Generator[IdTable]:
        """All batches in order, whatever the number of processes. The processes end with the generator.

        Raises:
            DataError: a process was killed.
        """
        if self.filters and not self.filters.duplicates:
            self._first = first_occurrences(self.corpus.pairs(), len(self.corpus))
        processes = usable_cores()
        tasks = list(self._tasks())
        groups = (tasks[first : first + 2 * processes] for first in range(0, len(tasks), 2 * processes))
        with Workers(self._batch, processes, lost=LOST, computes=False) as workers:
            yield from chain.from_iterable(workers.map(groups))

    def _tasks(self) -> Iterator[_Task]:
        """Batches of rows of the same part of a mixture."""
        end = 0
        for count, rules in self.parts:
            start, end = end, end + count
            yield from ((slice(first, min(first + BATCH, end)), rules) for first in range(start, end, BATCH))

    def _batch(self, task: _Task) -> IdTable:
        """A batch of consecutive rows."""
        rows, rules = task
        texts = [list(side.part(rows)) for side in (self.corpus.source, self.corpus.target)]
        ids = [subwords.encode_batch(side, threads=1) for subwords, side in zip(self.sides, texts, strict=True)]
        lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
        plain = self.corpus.untagged
        pairs = list(zip(plain.source.part(rows), plain.target.part(rows), strict=True)) if rules else ()
        first = None if self._first is None else self._first[rows]
        mask, report = keep(lengths[0], lengths[1], self.filters, first=first, pairs=pairs, rules=rules)
        source, target = (Lists.of(list(compress(side, mask)), self.dtype) for side in ids)
        return IdTable(np.flatnonzero(mask) + rows.start, source, target, report.counts)


def id_type(*sides: Subwords) -> npt.DTypeLike:
    """The smallest type of array that holds the ids of these models."""
    return np.uint16 if max(map(len, sides)) <= 2**16 else np.int32
