"""A parallel corpus: lines of two languages. Columns are Arrow arrays; large ones are memory-mapped."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from nmt.data.columns import Column
from nmt.text.normalization import Normalizer


@dataclass(frozen=True)
class ParallelCorpus:
    """Lines of two languages; row n of one translates row n of the other."""

    source: Column
    target: Column
    name: str
    languages: tuple[str, str]
    """Language codes of source and target."""
    parts: tuple["ParallelCorpus", ...] = ()
    """What a mixture consists of, in order and without tags; empty if this is no mixture."""
    tags: tuple[str | None, ...] = ()
    """The word before every source line of each part, if any."""
    as_read: "ParallelCorpus | None" = None
    """The same pairs before they were normalized; None if they have not been."""

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return self.pairs()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs in order."""
        return zip(self.source, self.target, strict=True)

    def normalized(self, normalizer: Normalizer) -> "ParallelCorpus":
        """The same pairs in a normal form."""
        source, target = (side.mapped(normalizer.all) for side in (self.source, self.target))
        return replace(self, source=source, target=target, as_read=self)

    @cached_property
    def untagged(self) -> "ParallelCorpus":
        """The same pairs without the tags of a mixture."""
        return self._concatenated(self.parts) if any(self.tags) else self

    @cached_property
    def original(self) -> "ParallelCorpus":
        """The same pairs as they were read: not normalized, and without the tags of a mixture."""
        return self._concatenated([part.original for part in self.parts]) if self.parts else self.as_read or self

    def _concatenated(self, parts: Sequence["ParallelCorpus"]) -> "ParallelCorpus":
        sources, targets = zip(*((part.source, part.target) for part in parts), strict=True)
        return ParallelCorpus(Column.concatenated(sources), Column.concatenated(targets), self.name, self.languages)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all text, independent of the files it came from."""
        digest = blake2b(digest_size=16)
        for side in (self.source, self.target):
            for batch in side.batches():
                digest.update(json.dumps(batch).encode())
        return digest.hexdigest()
