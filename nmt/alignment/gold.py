"""Which words people (or the sample's grammar) linked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nmt.alignment.formats import read_pharaoh
from nmt.alignment.links import GoldLinks
from nmt.cache import expand_home
from nmt.data import catalogue
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.recipe import DataConfig

_SAMPLE = "sample:"
_LINKS = "align"


def gold_links(locator: str, *, source: str) -> list[GoldLinks] | None:
    """The known links of a parallel text, source words first; None if it has none.

    Known are those of the embedded sample, those of a catalogue corpus (`hansards-en-fr/gold.trial`), and those in a
    Pharaoh file beside the text (`dir/test.align` for `dir/test.{en,fr}`), which has source words first.

    Raises:
        DataError: a file of links that cannot be read, or that holds something else.
    """
    name, _, split = locator.partition("/")
    if locator.startswith(_SAMPLE):
        from nmt.data import sample  # not at the top: it generates its sentences

        known = sample.links(locator.removeprefix(_SAMPLE), source=source)
        return [GoldLinks(links, links) for links in known]
    if name in catalogue.CATALOGUE:
        if catalogue.named(name).file(split, _LINKS) is None:
            return None
        gold, first = read_pharaoh(catalogue.find(name, split, _LINKS)), catalogue.named(name).languages[0]
    elif path := _links_beside(locator):
        gold, first = read_pharaoh(path), source
    else:
        return None
    return gold if source == first else [item.flipped() for item in gold]


def aligned_text(data: DataConfig, locator: str) -> str | None:
    """The text on which alignments can be judged: the one named if its links are known, else one of the same corpus."""
    if gold_links(locator, source=data.source) is not None:
        return locator
    name = data.train.partition("/")[0]
    files = catalogue.CATALOGUE[name].files if name in catalogue.CATALOGUE else ()
    for file in files:
        if file.language == _LINKS:
            try:
                catalogue.find(name, file.split, _LINKS)
            except DataError:  # not on this machine, and nowhere to fetch it from
                return None
            return f"{name}/{file.split}"
    return None


def _links_beside(locator: str) -> Path | None:
    """The file of links beside two files of text, if there is one."""
    head, brace, _ = locator.partition("{")
    stem = head.removesuffix(".") if brace else locator
    path = expand_home(f"{stem}.{_LINKS}")
    return path if not locator.startswith("hf:") and path.is_file() else None
