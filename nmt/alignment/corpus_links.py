"""Word links of a parallel text, and their conversion to token links of a batch.

Links are stored by row of the unfiltered corpus, apart from the encoded text, and become token links in each batch. Filters,
shuffling and subword sampling therefore do not affect them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool
from torch import Tensor

from nmt.alignment.gold import gold_links
from nmt.alignment.link_files import parse_pharaoh
from nmt.alignment.links import Links, check_within
from nmt.alignment.statistical.aligner import HMMAligner
from nmt.data.arrays import Lists, collect_lists
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import EncodedCorpus
from nmt.data.lines import any_compression, read_lines, unequal
from nmt.data.locators import split_rows
from nmt.errors import DataError
from nmt.recipe import REST
from nmt.runtime.cache import expand_home
from nmt.runtime.wording import counted
from nmt.text.scripts import Split, split_characters, split_spaces, splitter, word_spans
from nmt.text.subwords import Subwords
from nmt.text.words import words_read_as

_BLOCK = 10_000
_Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


def links(source: Sequence[str], target: Sequence[str]) -> list[Links]:
    """Link the words of parallel text without a model, as `nmt links` does (`HMMAligner`).

    Args:
        source: the source lines; 1,000 or more, for links that are mostly right.
        target: their translations, line by line.

    Returns:
        The linked (source word, target word) positions of each pair, counted from 0; none for blank and too long pairs.

    Raises:
        DataError: the sides differ in length, or no line has words on both.
    """
    if len(source) != len(target):
        raise unequal(("source", "target"), (len(source), len(target)))
    text = list(zip(source, target, strict=True))
    return list(HMMAligner.learn(text).links(text))


class WordLinks:
    """The linked (source, target) word positions of every sentence pair of a corpus, in temporary files.

    Args:
        pairs: the links of each pair, in order; positions are counted from 0 in their own sentences.
    """

    def __init__(self, pairs: Iterable[Links]) -> None:
        positions = (list(chain.from_iterable(sorted(links))) for links in pairs)
        blocks = iter(lambda: list(islice(positions, _BLOCK)), [])
        [self._positions] = collect_lists(([Lists.of(block, np.int32)] for block in blocks), 1, np.int32)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all links."""
        digest = blake2b(digest_size=16)
        starts = self._positions.starts
        for first in range(0, len(starts), _BLOCK):
            digest.update((starts[first : first + _BLOCK] // 2).data)  # a link is two positions
        digest.update(self._positions.values.data)
        return digest.hexdigest()

    def of_rows(self, rows: npt.ArrayLike) -> list[npt.NDArray[np.int32]]:
        """[links, 2] of each of these pairs."""
        return [positions.reshape(-1, 2) for positions in self._positions[rows]]


class TokenLinks:
    """Converts word links to token links of a batch: two tokens are linked if their words are.

    `splits` says what a word is. Where words are characters, a token has the links of all its characters.
    """

    def __init__(
        self,
        words: WordLinks,
        corpus: EncodedCorpus,
        source: Subwords,
        target: Subwords,
        splits: Sequence[Split] = (split_spaces, split_spaces),
    ) -> None:
        self.words, self.corpus, self.sides = words, corpus, tuple(zip((source, target), splits, strict=True))

    def of_batch(self, pairs: _Pairs, rows: Sequence[int]) -> Bool[Tensor, "B T S"]:
        """Which tokens of a batch are linked.

        Both sides are padded as in a `Batch`, with an end mark. End marks and padding have no links.

        Args:
            pairs: source and target ids.
            rows: their rows in the encoded corpus; pairs beyond it, which training made of others, have no links.
        """
        sources, targets = (
            _spans(texts, *side) for texts, side in zip(zip(*pairs, strict=True), self.sides, strict=True)
        )
        known = np.flatnonzero(np.less(rows, len(self.corpus)))
        links = self.words.of_rows(self.corpus.rows[np.take(rows, known)])
        batch_row = np.repeat(known, [len(pair_links) for pair_links in links])
        positions = np.concatenate([np.zeros((0, 2), np.int32), *links])
        width, height = (
            max(side.max(), positions[:, i].max(initial=0) + 1) for i, side in ((0, sources), (1, targets))
        )
        # counts[b, t, s]: the number of links among the first t target and the first s source words.
        counts = np.zeros((len(rows), height + 1, width + 1), dtype=np.int64)
        counts[batch_row, positions[:, 1] + 1, positions[:, 0] + 1] = 1
        counts = counts.cumsum(1).cumsum(2)
        pair = np.arange(len(rows))[:, None, None]
        first, end = (targets[:, :, None, i] for i in (0, 1))
        left, right = (sources[:, None, :, i] for i in (0, 1))
        inside = counts[pair, end, right] - counts[pair, first, right]
        before = counts[pair, end, left] - counts[pair, first, left]
        return torch.from_numpy(inside > before)


def _spans(texts: Iterable[Sequence[int]], subwords: Subwords, split: Split) -> npt.NDArray[np.int64]:
    """The words of every token as (first, last + 1), [rows, longest + 1, 2]; (0, 0) for end mark and padding."""
    rows = [
        word_spans(subwords.characters(ids))
        if split is split_characters
        else [(word, word + 1) for word in subwords.word_of(ids)]
        for ids in texts
    ]
    padded = np.zeros((len(rows), max(map(len, rows)) + 1, 2), dtype=np.int64)
    for row, spans in enumerate(rows):
        padded[row, : len(spans)] = np.reshape(spans, (-1, 2))
    return padded


def load_links(name: str, corpus: ParallelCorpus, *, source: str) -> WordLinks:
    """Load the links of every pair of a corpus. Sure (`i-j`) and possible (`ipj`) links count alike.

    Args:
        name: a file in Pharaoh format, also compressed; `gold` for the links of the sample corpus; `hmm` for links learned
            from the corpus by `HMMAligner`. Those of a file count words of the text as it was read, between plain spaces; the
            result counts words of the normalized text, and the tags of a mixture.
        corpus: the sentence pairs.
        source: language code of the source side.

    Raises:
        DataError: the file does not exist, has another number of lines than the corpus has pairs, or has a malformed link or
            one beyond its sentences. The message names file and line.
    """
    if name == "gold":
        return WordLinks(links.possible for links in gold_links(corpus.name, source=source) or ())
    if name == "hmm":
        plain = corpus.untagged
        return WordLinks(_after_tags(HMMAligner.learn(plain).links(plain), corpus))
    path = expand_home(name)
    return WordLinks(_after_tags(_of_file(any_compression(path) or path, corpus), corpus))


def _after_tags(links: Iterable[Links], corpus: ParallelCorpus) -> Iterator[Links]:
    """Move links to the places that source words have after the tag of their part of a mixture."""
    split = splits_of(corpus)[0]
    words = chain.from_iterable(
        repeat(sum(len(split(tag)) for tag in tags), len(part))
        for part, tags in zip(corpus.parts, corpus.tags, strict=True)
    )
    for pair, offset in zip(links, words if any(corpus.tags) else repeat(0), strict=False):
        yield frozenset((i + offset, j) for i, j in pair) if offset else pair


def splits_of(corpus: ParallelCorpus) -> tuple[Split, Split]:
    """How to split source and target lines into the words that links refer to."""
    return splitter(corpus.untagged.source), splitter(corpus.target)


def _of_file(path: Path, corpus: ParallelCorpus) -> Iterator[Links]:
    """The links of each line, checked against its sentence pair as it was read, between the words that training reads."""
    original, splits = corpus.original, splits_of(corpus)
    pairs = zip(original.pairs(), corpus.untagged.pairs(), strict=True)
    numbered: Iterable[tuple[int, str]] = enumerate(read_lines(path), start=1)
    _, rows = split_rows(corpus.name)
    if rows is not None and corpus.name.endswith(REST):  # the file has links of the pairs that are kept back too
        all_lines = list(numbered)
        numbered = chain.from_iterable(all_lines[block] for block in rows(len(all_lines)))
    for numbered_line, forms in zip_longest(numbered, pairs):
        if numbered_line is None or forms is None:
            lines = sum(1 for _ in read_lines(path))
            raise DataError(
                f"{path} has {counted(lines, 'line')}, but {corpus.name} has {counted(len(corpus), 'pair')}: "
                "line n must hold the links of pair n."
            )
        number, line = numbered_line
        where = f"{path}, line {number}"
        links = parse_pharaoh(line, where).possible
        source_words, target_words = (len(split(side)) for side, split in zip(forms[0], splits, strict=True))
        check_within(links, source_words, target_words, where)
        if forms[0] == forms[1]:
            yield links
            continue
        # between the words of the normal form, of which each was a word of the original or a part of one
        of_source, of_target = (
            words_read_as(len(split(normal)), split(side), split)
            for side, normal, split in zip(*forms, splits, strict=True)
        )
        if of_source is None or of_target is None:
            raise DataError(
                f"{where}: data.normalization changes the words of its sentence pair, so that no link can be told: "
                "set it to none, or make the links from normalized text."
            )
        yield frozenset(
            (i, j)
            for i, source in enumerate(of_source)
            for j, target in enumerate(of_target)
            if (source, target) in links
        )
