"""Read XLIFF 1.2 and 2.x."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.data.formats.elements import child_of, child_text, local_name, read_elements
from nmt.data.tables import Pairs
from nmt.errors import DataError
from nmt.runtime.archive_members import ArchiveMember
from nmt.runtime.wording import counted
from nmt.text.languages import is_swapped

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_log = logging.getLogger(__name__)


def read_xliff(place: Path | ArchiveMember, languages: tuple[str, str]) -> Pairs:
    """Read the translated segments, with swapped sides if the file translates in the other direction.

    Segments that are marked as unfinished (states `new`, `initial`, `needs-...`) or as not to be translated are skipped.

    Raises:
        DataError: the file is not valid XML, or in other languages.
    """
    swapped: bool | None = None
    skipped = 0
    elements = read_elements(place, starts=("xliff", "file"), ends=("trans-unit", "unit"), inherited=("translate",))
    for name, element in elements:
        if name in ("xliff", "file"):
            source = element.get("source-language") or element.get("srcLang")
            target = element.get("target-language") or element.get("trgLang")
            if source or target:
                swapped = is_swapped((source, target), languages, place)
            continue
        if swapped is None:
            raise DataError(f"{place} does not name its languages (source-language, or srcLang in version 2).")
        for holder in _segments(element):
            source, target = (child_text(holder, side) for side in ("source", "target"))
            if not target or _is_unfinished(holder) or element.get("translate") == "no":
                skipped += 1
            else:
                yield (target, source) if swapped else (source, target)
    if skipped:
        _log.warning(
            "%s: skipped %s without translation, unfinished, or not to be translated.", place, counted(skipped, "unit")
        )


def _segments(unit: "Element") -> "list[Element]":
    """What holds a source and its target: the unit itself in 1.2, its segments in 2.x."""
    return [unit] if local_name(unit) == "trans-unit" else [part for part in unit if local_name(part) == "segment"]


def _is_unfinished(segment: "Element") -> bool:
    """Whether the state, of the target in 1.2, of the segment in 2.x, says that the target is no finished translation."""
    target = child_of(segment, "target")
    states = [part.get("state", "").lower() for part in (segment, target) if part is not None]
    return any(state in ("new", "initial") or state.startswith("needs-") for state in states)
