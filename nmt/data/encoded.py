"""A parallel corpus as token ids: filtered, memory-mapped, and cached by fingerprint."""

import hashlib
import json
import logging
import tempfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nmt.cache import cache_folder
from nmt.data.corpus import ParallelCorpus
from nmt.data.filters import FilterReport, first_occurrences, keep
from nmt.data.rules import TextRule, text_rules
from nmt.data.subwords import Subwords
from nmt.errors import DataError
from nmt.files import replacing
from nmt.recipe import FiltersConfig

_FORMAT = 1  # version of the file; increase it when its layout or meaning changes
BATCH = 16_384
_IDS = pa.list_(pa.int32())
_SCHEMA = pa.schema([("source", _IDS), ("target", _IDS), ("row", pa.int64())])
_Opened = tuple[pa.Table, FilterReport]
_log = logging.getLogger(__name__)


class EncodedCorpus:
    """The filtered pairs of a corpus as ids, numbered from 0. They are read from disk when indexed."""

    def __init__(self, table: pa.Table, corpus: ParallelCorpus, report: FilterReport) -> None:
        self.report = report
        self._corpus = corpus
        self._rows = table.column("row")
        self._sides = [_Lists(table.column(side)) for side in ("source", "target")]
        self.source_lengths, self.target_lengths = (side.lengths for side in self._sides)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def __getitem__(self, rows: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        """The ids of both sides of each row, without begin or end mark."""
        source, target = self._sides
        return [(source[row], target[row]) for row in rows]

    def text(self, rows: Sequence[int]) -> list[tuple[str, str]]:
        """The text of both sides of each row."""
        return [(self._corpus.source[row], self._corpus.target[row]) for row in self.originals(rows)]

    def originals(self, rows: Sequence[int]) -> list[int]:
        """The row numbers in the unfiltered corpus."""
        return [self._rows[int(row)].as_py() for row in rows]


class _Lists:
    """A column of lists of ids; indexing reads only that row."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._chunks: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = [
            (chunk.offsets.to_numpy(), chunk.values.to_numpy()) for chunk in column.chunks
        ]
        lengths = [np.diff(offsets) for offsets, _ in self._chunks]
        self.lengths = np.concatenate([np.zeros(0, np.int32), *lengths]).astype(np.int32)
        self._starts = np.cumsum([0, *map(len, lengths)]).tolist()

    def __getitem__(self, row: int) -> list[int]:
        if not 0 <= row < len(self.lengths):
            raise IndexError(f"row {row} of {len(self.lengths)}")
        chunk = bisect_right(self._starts, row) - 1
        offsets, values = self._chunks[chunk]
        place = row - self._starts[chunk]
        ids: list[int] = values[offsets[place] : offsets[place + 1]].tolist()
        return ids


def encode_corpus(
    corpus: ParallelCorpus,
    source_subwords: Subwords,
    target_subwords: Subwords,
    filters: FiltersConfig | None,
    cache: Path | None = None,
) -> EncodedCorpus:
    """Encode and filter a corpus, or load the result from the cache.

    Args:
        corpus: the text.
        source_subwords: encodes the source side.
        target_subwords: encodes the target side.
        filters: which pairs to leave out; None keeps all.
        cache: the cache folder; `cache_folder()` if None. A temporary folder is used if it is not writable.

    Raises:
        DataError: no pair passes the filters.
        UsageError: a filter does not know one of the languages, or needs a package that is not installed.
    """
    sides = (source_subwords, target_subwords)
    rules = () if filters is None else text_rules(filters, corpus.languages)
    name = f"{_fingerprint(corpus, sides, filters, rules)}.arrow"
    file = (cache or cache_folder()) / "encoded" / name
    table, report = _open(file, filters) or _make(file, corpus, sides, filters, rules)
    if not report.kept:
        raise DataError(f"No pair of {corpus.name} passes the filters ({report}): relax data.filters.")
    return EncodedCorpus(table, corpus, report)


def _fingerprint(
    corpus: ParallelCorpus,
    sides: tuple[Subwords, Subwords],
    filters: FiltersConfig | None,
    rules: Sequence[TextRule],
) -> str:
    """A hash of everything the ids depend on. A rule that is off has no part in it, so new rules leave old caches valid."""
    limits = filters and filters.model_dump_json(include={"max_length", "max_ratio", "duplicates"})
    parts = [_FORMAT, corpus.fingerprint, *(side.fingerprint for side in sides), limits, *map(repr, rules)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _open(file: Path, filters: FiltersConfig | None) -> _Opened | None:
    """The table in a file and the report of its filtering; None if the file does not exist or is damaged."""
    if not file.is_file():
        return None
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(file)))
        if reader.schema != _SCHEMA:
            raise ValueError("another schema")
        report = FilterReport(filters=filters)
        for index in range(reader.num_record_batches):
            batch, note = reader.get_batch_with_custom_metadata(index)
            if note[b"checksum"] != _checksum(batch):
                raise ValueError("wrong checksum")
            report += FilterReport(**json.loads(note[b"counts"]))
        return reader.read_all(), report
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("The cached file %s is damaged (%s) and is made again.", file, error)
        return None


def _make(
    file: Path,
    corpus: ParallelCorpus,
    sides: tuple[Subwords, Subwords],
    filters: FiltersConfig | None,
    rules: Sequence[TextRule],
) -> _Opened:
    """Write the file, to a temporary folder if necessary, and open it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if opened := _written(file, corpus, sides, filters, rules):
            return opened
    except OSError as error:
        _log.warning("Cannot keep encoded text in %s (%s): it will be encoded again next time.", file.parent, error)
    reason = "the file cannot be read back"
    try:
        with tempfile.TemporaryDirectory(prefix="nmt-") as folder:  # the mapping outlives the file's name
            if opened := _written(Path(folder) / file.name, corpus, sides, filters, rules):
                return opened
    except OSError as error:
        reason = str(error)
    raise DataError(
        f"Cannot keep encoded text in {file.parent} or {tempfile.gettempdir()} ({reason}): set NMT_CACHE to another folder."
    )


def _written(
    file: Path,
    corpus: ParallelCorpus,
    sides: tuple[Subwords, Subwords],
    filters: FiltersConfig | None,
    rules: Sequence[TextRule],
) -> _Opened | None:
    """Encode the corpus to the file, batch by batch, and open it."""
    first = np.ones(len(corpus), dtype=np.bool_)
    if filters and not filters.duplicates:
        first = first_occurrences(corpus.pairs(), len(corpus))
    with (
        replacing(file) as beside,
        pa.OSFile(str(beside), "wb") as sink,
        pa.ipc.new_file(sink, _SCHEMA) as writer,
    ):
        for batch, report in _encoded(corpus, sides, filters, first, rules):
            counts = {"kept": report.kept, **{rule: count for rule, count in report.removed.items() if count}}
            writer.write_batch(batch, {"counts": json.dumps(counts), "checksum": _checksum(batch)})
    return _open(file, filters)


def _encoded(
    corpus: ParallelCorpus,
    sides: tuple[Subwords, Subwords],
    filters: FiltersConfig | None,
    first: npt.NDArray[np.bool_],
    rules: Sequence[TextRule],
) -> Iterator[tuple[pa.RecordBatch, FilterReport]]:
    """Yield batches of filtered pairs as ids, each with its own report."""
    start = 0
    for texts in zip(corpus.source.batches(BATCH), corpus.target.batches(BATCH), strict=True):
        ids = [subwords.encode_batch(side) for subwords, side in zip(sides, texts, strict=True)]
        lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
        pairs = list(zip(*texts, strict=True)) if rules else ()
        mask, report = keep(
            lengths[0], lengths[1], filters, first=first[start : start + len(ids[0])], pairs=pairs, rules=rules
        )
        rows = np.flatnonzero(mask)
        columns = [pa.array([side[row] for row in rows], _IDS) for side in ids]
        yield pa.record_batch([*columns, pa.array(rows + start, pa.int64())], _SCHEMA), report
        start += len(ids[0])


def _checksum(batch: pa.RecordBatch) -> bytes:
    total = 0
    for column in batch.columns:
        arrays = (column.offsets, column.values) if pa.types.is_list(column.type) else (column,)
        for array in arrays:
            total = zlib.crc32(array.to_numpy(), total)
    return str(total).encode()
