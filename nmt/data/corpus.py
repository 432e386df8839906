"""A parallel corpus: lines of two languages. Columns are Arrow arrays; large ones are memory-mapped."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, pairwise

from nmt.data.columns import Column
from nmt.text.normalization import Normalizer


@dataclass(frozen=True)
class ParallelCorpus:
    """Lines of two languages; row n of one translates row n of the other."""

    source: Column
    target: Column
    name: str
    languages: tuple[str, str]
    """Language codes of source and target; those of the first part of a mixture."""
    parts: tuple["ParallelCorpus", ...] = ()
    """What a mixture consists of, in order and without tags; empty if this is no mixture."""
    tags: tuple[tuple[str, ...], ...] = ()
    """The words before every source line of each part."""
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

    @property
    def ranges(self) -> list[range]:
        """The rows of each corpus of a mixture, or of the one corpus."""
        ends = accumulate(map(len, self.parts or [self]), initial=0)
        return [range(start, end) for start, end in pairwise(ends)]

    @cached_property
    def untagged(self) -> "ParallelCorpus":
        """The same pairs without the tags of a mixture."""
        return concatenate(self.parts) if any(self.tags) else self

    @cached_property
    def directions(self) -> dict[tuple[str, str], "ParallelCorpus"]:
        """The pairs of each source and target language of a mixture, with their tags."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for number, part in enumerate(self.parts or [self]):
            numbers.setdefault(part.languages, []).append(number)
        if len(numbers) == 1:
            return dict.fromkeys(numbers, self)
        tagged = [self.source.part(slice(rows.start, rows.stop)) for rows in self.ranges]
        return {
            languages: replace(
                concatenate([self.parts[number] for number in selected]),
                source=Column.concatenated(tagged[number] for number in selected),
                parts=tuple(self.parts[number] for number in selected),
                tags=tuple(self.tags[number] for number in selected),
            )
            for languages, selected in numbers.items()
        }

    @cached_property
    def original(self) -> "ParallelCorpus":
        """The same pairs as they were read: not normalized, and without the tags of a mixture."""
        return concatenate([part.original for part in self.parts]) if self.parts else self.as_read or self

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all text, independent of the files it came from."""
        digest = blake2b(digest_size=16)
        for side in (self.source, self.target):
            for batch in side.batches():
                digest.update(json.dumps(batch).encode())
        return digest.hexdigest()


def concatenate(parts: Sequence[ParallelCorpus]) -> ParallelCorpus:
    """The pairs of several corpora, in the languages of the first."""
    source = Column.concatenated(part.source for part in parts)
    target = Column.concatenated(part.target for part in parts)
    return ParallelCorpus(source, target, " + ".join(part.name for part in parts), parts[0].languages)
