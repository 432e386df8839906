"""Links as the shared tasks of NAACL 2003 and ACL 2005 wrote them, a link a line (Mihalcea and Pedersen 2003, section 3).

    sentence source target [S|P] [confidence]        all three counted from 1

A link without a mark is sure. Position 0 is the empty word, which the links of this toolkit do without.
"""

import re
from collections import defaultdict
from collections.abc import Set as AbstractSet
from pathlib import Path

from nmt.errors import DataError
from nmt.evaluation.alignment import GoldLinks, parse_pharaoh, read_link_lines
from nmt.wording import counted

_LINE = re.compile(r"([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})(?:\s+([SP]))?(?:\s+[0-9.eE+-]+)?")

_MOST = 10_000_000
"""Sentence pairs of a text whose length is not known: what is not written is kept as a pair without links."""


def format_naacl(links: AbstractSet[tuple[int, int]], sentence: int) -> str:
    """The lines of a sentence pair, all sure, sorted, each with its line end. `sentence` counts from 1."""
    return "".join(f"{sentence} {source + 1} {target + 1} S\n" for source, target in sorted(links))


def read_gold(path: Path, sentences: int | None = None) -> list[GoldLinks]:
    """The links of every sentence pair of a file, whichever of the two formats it has: its first link tells.

    Args:
        path: a file in Pharaoh format (`0-0 1p2`, a line a sentence pair) or in that of NAACL (`1 1 1 S`, a line a link).
        sentences: how many sentence pairs there are, if known; in NAACL's format those without links are not written.

    Raises:
        DataError: a file that cannot be read, or has links of another number of sentence pairs, or something else in it.
    """
    lines = read_link_lines(path)
    first = next((line for line in lines if line.strip()), "")
    if _LINE.fullmatch(first.strip()):
        return _from_naacl(lines, path, sentences)
    if sentences is not None and len(lines) != sentences:
        raise DataError(f"{path} has {counted(len(lines), 'line')} of links for {counted(sentences, 'sentence pair')}.")
    return [parse_pharaoh(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _from_naacl(lines: list[str], path: Path, sentences: int | None) -> list[GoldLinks]:
    """The links of every sentence pair up to the last."""
    marked: dict[str, defaultdict[int, set[tuple[int, int]]]] = {"S": defaultdict(set), "P": defaultdict(set)}
    last, most = 0, _MOST if sentences is None else sentences
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        sentence, source, target, mark = _parse(line.strip(), where)
        if not 1 <= sentence <= most:
            count = "" if sentences is None else f" to {sentences}"
            raise DataError(f"{where}: there is no sentence pair {sentence}; they count from 1{count}.")
        last = max(last, sentence)
        if source and target:
            marked[mark][sentence].add((source - 1, target - 1))
    sure, possible = marked["S"], marked["P"]
    return [
        GoldLinks(frozenset(sure[sentence]), frozenset(possible[sentence]))
        for sentence in range(1, (last if sentences is None else sentences) + 1)
    ]


def _parse(line: str, where: str) -> tuple[int, int, int, str]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise DataError(f"{where}: '{line[:60]}' is not a link; write 'sentence source target S' or P, counted from 1.")
    return int(match[1]), int(match[2]), int(match[3]), match[4] or "S"
