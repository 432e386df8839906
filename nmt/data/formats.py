"""Translation memories (TMX), XLIFF and PO files, which translate-toolkit reads: the extra `formats`."""

import logging
import re
from pathlib import Path
from typing import Any

from nmt.data.lines import FORMATS, blocks
from nmt.data.tables import TABLES, Batches, Pairs, existing_file, in_batches, suffix_among
from nmt.errors import DataError, UsageError
from nmt.runtime.wording import counted, reason
from nmt.text.languages import is_swapped, matching

PAIR_FILES = (*TABLES, *FORMATS)
"""The suffixes of all files that hold both sides of a text."""
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_MARKUP = [f"{{*}}{name}" for name in ("bpt", "ept", "it", "ph", "ut")]
"""Elements whose text is markup of the original document."""
_log = logging.getLogger(__name__)


def read_units(locator: str, languages: tuple[str, str]) -> Batches:
    """Read the translated units of a file, in either direction; line ends inside texts become spaces.

    Raises:
        DataError: there is no such file, it is damaged, or it is in other languages.
        UsageError: translate-toolkit is not installed.
    """
    path = existing_file(locator)
    suffix = suffix_among(FORMATS, path) or ""
    store = _load(path, suffix)
    units = list(_variants(store, languages) if suffix == ".tmx" else _translations(store, languages, path))
    pairs = [(source, target) for source, target in units if source and target]
    if units and not pairs:
        raise DataError(f"{path} has no unit that is translated between {' and '.join(languages)}.")
    if len(pairs) < len(units):
        _log.warning("%s: skipped %s without finished translation.", path, counted(len(units) - len(pairs), "unit"))
    return in_batches(iter(pairs), 2)


def _load(path: Path, suffix: str) -> Any:
    """The file as a store of translate-toolkit. Raises DataError or UsageError."""
    try:
        from lxml import etree
        from translate.storage import factory, xliff2
    except ImportError:
        raise UsageError(f'{path} needs translate-toolkit: pip install "attentional-nmt[formats]".') from None
    content = b"".join(blocks(path))
    is_second = re.search(rb"<xliff\b[^>]*\b(version=[\"']2|srcLang=)", content) is not None
    try:
        kind: Any = xliff2.Xliff2File if is_second else factory.getclass(f"x{suffix}")  # type: ignore[no-untyped-call]
        store = kind.parsestring(content)
        doctype = None if suffix == ".po" else store.document.docinfo.internalDTD
        if doctype is not None and any(doctype.iterentities()):
            raise ValueError("it declares entities, which could stand for any amount of text")
    except Exception as error:  # noqa: BLE001 -- its parsers raise any
        raise DataError(f"{path} is damaged, or no {suffix} file: {reason(error)}.") from None
    if suffix != ".po":
        etree.strip_elements(store.document.getroot(), *_MARKUP, with_tail=False)
    return store


def _variants(store: Any, languages: tuple[str, str]) -> Pairs:
    """The texts of each unit of a translation memory in two languages, each the first variant in its language, or empty."""
    for unit in store.units:
        variants = unit.getlanguageNodes()
        codes = [variant.get(_LANG) or variant.get("lang") or "" for variant in variants]
        rows_of_sides = (matching(codes, language, [other]) for language, other in (languages, languages[::-1]))
        source, target = (unit.getNodeText(variants[rows[0]]) or "" if rows else "" for rows in rows_of_sides)
        yield source, target


def _translations(store: Any, languages: tuple[str, str], path: Path) -> Pairs:
    """Each form of each unit with its translation, which is empty if it is not finished. Raises DataError."""
    codes = (store.getsourcelanguage() or "en", store.gettargetlanguage() or None)
    swapped = is_swapped(codes, languages, path)
    for unit in store.units:
        if unit.isheader() or unit.isobsolete() or unit.isblank():
            continue
        target = unit.target if _is_finished(unit) else ""
        sources, targets = (
            [str(form) for form in getattr(text, "strings", [text or ""])] for text in (unit.source, target)
        )
        for number, form in enumerate(targets):  # the first is the singular
            source = sources[min(number, len(sources) - 1)]
            yield (form, source) if swapped else (source, form)


def _is_finished(unit: Any) -> bool:
    """Whether a translation is neither fuzzy nor, by its state in XLIFF, still to be made."""
    element = getattr(unit, "xmlelement", None)
    if element is None:
        return bool(unit.istranslated())
    states = [node.get("state", "") for node in (element, unit.target_dom) if node is not None]
    return unit.istranslatable() and not any(re.match("new|initial|needs-", state) for state in states)
