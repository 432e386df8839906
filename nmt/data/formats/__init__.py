"""Files that hold both sides of a parallel text: tables, translation memories, XLIFF and PO, chosen by suffix."""

from collections.abc import Callable
from pathlib import Path

from nmt.data.formats.po import read_po
from nmt.data.formats.tmx import read_tmx
from nmt.data.formats.xliff import read_xliff
from nmt.data.lines import Place
from nmt.data.tables import TABLES, Batches, Pairs, existing_file, in_batches, one_line, read_table, suffix_among
from nmt.runtime.archive_members import ArchiveMember

_READERS: dict[str, Callable[[Path | ArchiveMember, tuple[str, str]], Pairs]] = {
    ".tmx": read_tmx,
    ".xlf": read_xliff,
    ".xliff": read_xliff,
    ".po": read_po,
}
PAIR_FILES = (*TABLES, *_READERS)
"""The suffixes of files that hold both sides."""


def holds_pairs(place: Place) -> bool:
    """Whether a file holds both sides, by its suffix."""
    return suffix_among(PAIR_FILES, place) is not None


def read_pairs(place: Place, languages: tuple[str, str]) -> Batches:
    """Read both sides of such a file; line ends inside texts become spaces, so that each text is one line.

    Raises:
        DataError: there is no such file, it is not what its suffix says, or it is in other languages.
    """
    if suffix := suffix_among(_READERS, place):
        pairs = _READERS[suffix](existing_file(place), languages)
        return (tuple(map(one_line, batch)) for batch in in_batches(pairs, 2))
    return read_table(place, languages)
