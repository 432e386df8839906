"""Filter training pairs by their lengths and their text, and remove duplicates."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.arrays import collect_array
from nmt.data.corpus import ParallelCorpus
from nmt.data.rules import TextRule, text_rules
from nmt.recipe import FiltersConfig
from nmt.runtime.wording import counted
from nmt.text.scripts import splitter

RULES = ("empty", "too_long", "ratio", "duplicate", "copy", "long_word", "letters", "script", "marks", "language")
"""The rules in the order in which they apply."""
BATCH = 10_000
"""Lines that `clean` reads at a time."""
_HASHES = 2**20
"""Pairs whose hashes are compared at a time."""
_SAMPLES = 3
"""Most samples per rule."""


class RemovedPair(NamedTuple):
    """A pair that a rule removed, and its line number in the corpus."""

    line: int
    source: str
    target: str


@dataclass(frozen=True)
class FilterReport:
    """How many pairs were kept, and how many each rule removed; a pair counts for the first rule in `RULES` that it breaks.

    Attributes:
        counts: how many pairs were `kept`, and how many each rule removed; what is 0 may be left out.
        filters: the limits that the rules had.
        samples: by rule, the first few pairs that it removed, if the text was at hand.
        unit: what lengths are measured in.
    """

    counts: Mapping[str, int]
    filters: FiltersConfig | None = None
    samples: Mapping[str, Sequence[RemovedPair]] = field(default_factory=dict)
    unit: str = "token"

    @property
    def kept(self) -> int:
        """Number of pairs that no rule removed."""
        return self.counts.get("kept", 0)

    @property
    def removed(self) -> dict[str, int]:
        """The number of pairs that each rule removed, in the order of `RULES`, without rules that removed none."""
        return {rule: count for rule in RULES if (count := self.counts.get(rule, 0))}

    @property
    def total(self) -> int:
        """Number of pairs before filtering."""
        return self.kept + sum(self.removed.values())

    def __add__(self, other: "FilterReport") -> "FilterReport":
        rules = self.samples.keys() | other.samples.keys()
        samples = {rule: [*self.samples.get(rule, ()), *other.samples.get(rule, ())][:_SAMPLES] for rule in rules}
        return replace(self, counts=Counter(self.counts) + Counter(other.counts), samples=samples)

    def reason(self, rule: str) -> str:
        """What the pairs that a rule removed are: `longer than 100 tokens`."""
        limits, is_single = self.filters or FiltersConfig(), self.counts.get(rule) == 1
        return {
            "empty": "empty",
            "too_long": f"longer than {counted(limits.max_length, self.unit)}",
            "ratio": f"beyond ratio {limits.max_ratio or 0:g}",
            "duplicate": "duplicate" if is_single else "duplicates",
            "copy": "copy" if is_single else "copies",
            "long_word": f"with a word of more than {counted(limits.max_word_length or 0, 'character')}",
            "letters": f"with less than {100 * (limits.min_letters or 0):g} % letters",
            "script": "in another script",
            "marks": "with marks of subwords or HTML",
            "language": "in another language",
        }[rule]

    def __str__(self) -> str:
        removed = ", ".join(f"{count:,} {self.reason(rule)}" for rule, count in self.removed.items())
        return f"kept {self.kept:,} of {counted(self.total, 'pair')}" + (f"; dropped {removed}" if removed else "")


def keep(
    source_lengths: npt.NDArray[np.integer],
    target_lengths: npt.NDArray[np.integer],
    filters: FiltersConfig | None,
    *,
    first: npt.NDArray[np.bool_] | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    rules: Sequence[TextRule] = (),
    start: int = 0,
) -> tuple[npt.NDArray[np.bool_], FilterReport]:
    """Decide which pairs to keep, and count why the others are dropped.

    Args:
        source_lengths: tokens of each source line, [N].
        target_lengths: tokens of each target line, [N].
        filters: the limits; None keeps every pair, empty ones too.
        first: False where the pair occurred before, [N]; see `first_occurrences`.
        pairs: the text, [N], for `rules` and for the samples of the report; it may be left out if both are not needed.
        rules: the rules on text, which see only pairs that break no other; see `text_rules`.
        start: number of lines of the corpus before these.

    Returns:
        A mask [N], True = keep, and the report.
    """
    longer, shorter = np.maximum(source_lengths, target_lengths), np.minimum(source_lengths, target_lengths)
    broken: dict[str, npt.NDArray[np.bool_]] = {}
    if filters is not None:
        broken |= {"empty": shorter == 0, "too_long": longer > filters.max_length}
        if filters.max_ratio is not None:
            broken["ratio"] = longer > shorter * filters.max_ratio
        if not filters.duplicates and first is not None:
            broken["duplicate"] = ~first
    mask = np.ones(len(longer), dtype=np.bool_)
    removed: dict[str, list[int]] = {}
    for name, rows in broken.items():
        removed[name] = np.flatnonzero(mask & rows).tolist()
        mask[removed[name]] = False
    for rule in rules:
        removed[rule.name] = [row for row in np.flatnonzero(mask).tolist() if rule.removes(*pairs[row])]
        mask[removed[rule.name]] = False
    removed = {name: rows for name, rows in removed.items() if rows}
    counts = {"kept": int(np.count_nonzero(mask)), **{name: len(rows) for name, rows in removed.items()}}
    samples = {
        name: [RemovedPair(start + row + 1, *pairs[row]) for row in rows[:_SAMPLES]]
        for name, rows in removed.items()
        if pairs
    }
    return mask, FilterReport(counts, filters, samples)


def clean(corpus: ParallelCorpus, filters: FiltersConfig) -> Iterator[tuple[list[tuple[str, str]], FilterReport]]:
    """Filter a corpus without subwords: lengths are in words, which are the characters of a side that is written without spaces.

    Yields:
        For each batch of lines, the pairs to keep, and a report with samples of the others.

    Raises:
        UsageError: a rule does not know one of the languages, or needs a package that is not installed.
    """
    rules = text_rules(filters, corpus.languages)
    splits = [splitter(side) for side in (corpus.source, corpus.target)]
    first = None if filters.duplicates else first_occurrences(corpus.pairs(), len(corpus))
    batches = zip(corpus.source.batches(BATCH), corpus.target.batches(BATCH), strict=True)
    for start, texts in zip(range(0, len(corpus), BATCH), batches, strict=True):
        pairs = list(zip(*texts, strict=True))
        lengths = [np.array([len(split(text)) for text in side]) for split, side in zip(splits, texts, strict=True)]
        seen = None if first is None else first[start : start + len(pairs)]
        mask, report = keep(lengths[0], lengths[1], filters, first=seen, pairs=pairs, rules=rules, start=start)
        yield [pairs[row] for row in np.flatnonzero(mask)], replace(report, unit="word")


def first_occurrences(pairs: Iterable[tuple[str, str]], count: int) -> npt.NDArray[np.bool_]:
    """True for each of `count` pairs unless the same pair came before. Pairs are compared by a 64-bit hash.

    The hashes are in a temporary file, and compared part by part: it takes one byte per pair, and some 50 MB.
    """
    texts = (f"{len(source)} {source}{target}".encode() for source, target in pairs)
    hashed = (int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts)
    hashes = collect_array(iter(lambda: list(islice(hashed, BATCH)), []), np.uint64)
    first = np.zeros(count, dtype=np.bool_)
    parts = 1 + count // _HASHES
    for part in range(parts):  # equal hashes are in the same part
        blocks = [
            start + np.flatnonzero(hashes[start : start + _HASHES] % parts == part)
            for start in range(0, count, _HASHES)
        ]
        rows = np.concatenate([np.empty(0, np.intp), *blocks])
        first[rows[np.unique(hashes[rows], return_index=True)[1]]] = True
    return first
