"""Read translation memories: TMX 1.4 (https://www.gala-global.org/tmx-14b)."""

import logging
from pathlib import Path

from nmt.data.formats.elements import child_text, local_name, read_elements
from nmt.data.tables import Pairs
from nmt.errors import DataError
from nmt.runtime.archive_members import ArchiveMember
from nmt.runtime.wording import counted
from nmt.text.languages import best_match

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_NAMED = 10
"""Most languages that an error names."""
_log = logging.getLogger(__name__)


def read_tmx(place: Path | ArchiveMember, languages: tuple[str, str]) -> Pairs:
    """Read the pairs of two languages, each the first variant in its language. Units without one of them are skipped.

    Raises:
        DataError: the file is not valid XML, or no unit has both languages.
    """
    count, skipped = 0, 0
    others: dict[str, None] = {}
    for _, unit in read_elements(place, ends=("tu",)):
        variants = [child for child in unit if local_name(child) == "tuv"]
        codes = [variant.get(_LANGUAGE) or variant.get("lang") or "" for variant in variants]
        source, target = (best_match(codes, *pair) for pair in (languages, languages[::-1]))
        if source is None or target is None:
            skipped += 1
            others |= dict.fromkeys(codes) if len(others) < _NAMED else {}
        else:
            count += 1
            yield child_text(variants[source], "seg"), child_text(variants[target], "seg")
    if skipped and not count:
        languages_there = ", ".join([*others][:_NAMED]) or "no language"
        raise DataError(f"{place} has no unit in {' and '.join(languages)}, only in {languages_there}.")
    if skipped:
        _log.warning("%s: skipped %s where %s is missing.", place, counted(skipped, "unit"), " or ".join(languages))
