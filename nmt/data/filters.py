"""Filter training pairs by their lengths in tokens, and remove duplicates."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from nmt.recipe import FiltersConfig
from nmt.wording import counted


@dataclass(frozen=True)
class FilterReport:
    """How many pairs were kept, and how many were dropped for each reason (the first that applies, in this order)."""

    kept: int = 0
    empty: int = 0
    too_long: int = 0
    ratio: int = 0
    duplicate: int = 0
    filters: FiltersConfig | None = None

    @property
    def total(self) -> int:
        """Number of pairs before filtering."""
        return self.kept + self.empty + self.too_long + self.ratio + self.duplicate

    def __add__(self, other: "FilterReport") -> "FilterReport":
        counts = {item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)[:-1]}
        return FilterReport(**counts, filters=self.filters)

    def __str__(self) -> str:
        limits = self.filters or FiltersConfig()
        reasons = {
            "empty": self.empty,
            f"longer than {counted(limits.max_length, 'token')}": self.too_long,
            f"beyond ratio {limits.max_ratio or 0:g}": self.ratio,
            "duplicate" if self.duplicate == 1 else "duplicates": self.duplicate,
        }
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return f"kept {self.kept:,} of {counted(self.total, 'pair')}" + (f"; dropped {dropped}" if dropped else "")


def keep(
    source_lengths: npt.NDArray[np.integer],
    target_lengths: npt.NDArray[np.integer],
    filters: FiltersConfig | None,
    *,
    first: npt.NDArray[np.bool_] | None = None,
) -> tuple[npt.NDArray[np.bool_], FilterReport]:
    """Decide which pairs to keep, and count why the others are dropped.

    Args:
        source_lengths: tokens of each source line, [N].
        target_lengths: tokens of each target line, [N].
        filters: the limits; None keeps every pair, empty ones too.
        first: False where the pair occurred before, [N]; see `first_occurrences`.

    Returns:
        A mask [N], True = keep, and the report.
    """
    mask = np.ones(len(source_lengths), dtype=np.bool_)
    if filters is None:
        return mask, FilterReport(kept=len(mask))
    longer, shorter = np.maximum(source_lengths, target_lengths), np.minimum(source_lengths, target_lengths)
    reasons = {
        "empty": shorter == 0,
        "too_long": longer > filters.max_length,
        "ratio": ~mask if filters.max_ratio is None else longer > shorter * filters.max_ratio,
        "duplicate": ~mask if filters.duplicates or first is None else ~first,
    }
    counts = {}
    for name, applies in reasons.items():
        counts[name] = int(np.count_nonzero(mask & applies))
        mask &= ~applies
    return mask, FilterReport(kept=int(np.count_nonzero(mask)), **counts, filters=filters)


def first_occurrences(pairs: Iterable[tuple[str, str]], count: int) -> npt.NDArray[np.bool_]:
    """True for each of `count` pairs unless the same pair came before. Pairs are compared by a 64-bit hash."""
    hashes = np.fromiter((_hash(*pair) for pair in pairs), dtype=np.uint64, count=count)
    first = np.zeros(count, dtype=np.bool_)
    first[np.unique(hashes, return_index=True)[1]] = True
    return first


def _hash(source: str, target: str) -> int:
    text = f"{len(source)} {source}{target}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
