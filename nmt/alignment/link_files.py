"""Read and write files of links: Pharaoh format; read also the NAACL format of the shared tasks of 2003 and 2005.

Pharaoh has one line per sentence pair: `i-j` is sure, `ipj` or `i?j` possible, 0-based, source first. A confidence may follow,
as in `3-4:0.97`; it is ignored when links are read.

NAACL has one line per link (Mihalcea and Pedersen 2003, section 3):

    sentence source target [S|P] [confidence]        all three counted from 1

A link without a mark is sure. Links to position 0, the empty word, are ignored.
"""

import re
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from nmt.alignment.links import ConfidentLinks, GoldLinks
from nmt.data.lines import read_lines
from nmt.errors import DataError
from nmt.runtime.wording import counted

_PHARAOH = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})(?::[0-9.eE+-]+)?")
_NAACL = re.compile(r"([0-9]{1,7})\s+([0-9]{1,9})\s+([0-9]{1,9})(?:\s+([SP]))?(?:\s+[0-9.eE+-]+)?")


def read_gold(path: Path, sentences: int | None = None) -> list[GoldLinks]:
    """Read gold links in Pharaoh or NAACL format; the first link tells which.

    Args:
        path: a file in Pharaoh format (`0-0 1p2`, one line per sentence pair) or NAACL format (`1 1 1 S`, one line per link),
            also compressed.
        sentences: the number of sentence pairs, if known; NAACL files leave out pairs without links.

    Raises:
        DataError: the file cannot be read, is malformed, or has another number of sentence pairs.
    """
    lines = list(read_lines(path))
    first = next((line for line in lines if line.strip()), "")
    if _NAACL.fullmatch(first.strip()):
        return _from_naacl(lines, path, sentences)
    if sentences is not None and len(lines) != sentences:
        raise DataError(f"{path} has {counted(len(lines), 'line')} of links for {counted(sentences, 'sentence pair')}.")
    return [parse_pharaoh(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


# --- Pharaoh format ---------------------------------------------------------------------------------------------


def parse_pharaoh(line: str, where: str) -> GoldLinks:
    """Parse a line in Pharaoh format: `i-j` is sure, `ipj` or `i?j` possible, 0-based, source first.

    Raises:
        DataError: the line has anything else. The message begins with `where`, the file and line.
    """
    links: dict[str, set[tuple[int, int]]] = {"-": set(), "p": set(), "?": set()}
    for token in line.split():
        match = _PHARAOH.fullmatch(token)
        if match is None:
            raise DataError(
                f"{where}: '{token[:60]}' is not a link; write i-j (sure), ipj or i?j (possible), counted from 0."
            )
        links[match[2]].add((int(match[1]), int(match[3])))
    return GoldLinks(frozenset(links["-"]), frozenset(links["p"] | links["?"]))


def format_pharaoh(links: GoldLinks | Collection[tuple[int, int]]) -> str:
    """Format links as a line in Pharaoh format, sorted by source and then target position, without line end."""
    gold = links if isinstance(links, GoldLinks) else GoldLinks(frozenset(links), frozenset())
    marked = ((source, target, "-" if (source, target) in gold.sure else "p") for source, target in gold.possible)
    return " ".join(f"{source}{mark}{target}" for source, target, mark in sorted(marked))


def format_confident(links: ConfidentLinks) -> str:
    """Format links and their confidences as a line `i-j:0.97 ...`, sorted by source and then target position, without line end."""
    return " ".join(f"{source}-{target}:{confidence:.2f}" for (source, target), confidence in sorted(links.items()))


# --- NAACL format -----------------------------------------------------------------------------------------------


def _from_naacl(lines: list[str], path: Path, sentences: int | None) -> list[GoldLinks]:
    """The links of every sentence pair up to the last."""
    marked: dict[str, defaultdict[int, set[tuple[int, int]]]] = {"S": defaultdict(set), "P": defaultdict(set)}
    last = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        match = _NAACL.fullmatch(line.strip())
        if match is None:
            raise DataError(
                f"{where}: '{line.strip()[:60]}' is not a link; write 'sentence source target S' or P, counted from 1."
            )
        sentence, source, target = (int(match[group]) for group in (1, 2, 3))
        if sentence == 0 or (sentences is not None and sentence > sentences):
            count = "" if sentences is None else f" to {sentences}"
            raise DataError(f"{where}: there is no sentence pair {sentence}; they count from 1{count}.")
        last = max(last, sentence)
        if source and target:
            marked[match[4] or "S"][sentence].add((source - 1, target - 1))
    sure, possible = marked["S"], marked["P"]
    return [
        GoldLinks(frozenset(sure[sentence]), frozenset(possible[sentence]))
        for sentence in range(1, (last if sentences is None else sentences) + 1)
    ]
