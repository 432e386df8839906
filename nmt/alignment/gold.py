"""Find the gold links of a text: annotated ones, or the sample's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmt.alignment.link_files import read_gold
from nmt.alignment.links import GoldLinks
from nmt.data import catalogue, sample
from nmt.data.catalogue import fetching
from nmt.data.locators import split_rows
from nmt.errors import DataError
from nmt.runtime.cache import expand_home

if TYPE_CHECKING:
    from nmt.recipe import DataConfig

_SAMPLE = "sample:"
_LINKS_EXTENSION = "align"


def gold_links(locator: str, *, source: str) -> list[GoldLinks] | None:
    """The gold links of a parallel text, source words first; None if it has none.

    There are gold links for:

    * the embedded sample,
    * some splits of catalogue corpora (`hansards-en-fr/gold.trial`),
    * text with a Pharaoh file beside it (`dir/test.align` for `dir/test.{en,fr}`), source words first.

    Raises:
        DataError: the file of links cannot be read or is malformed.
    """
    text, rows = split_rows(locator)
    if rows is not None:
        links = gold_links(text, source=source)
        return None if links is None else [link for block in rows(len(links)) for link in links[block]]
    name, _, split = locator.partition("/")
    if locator.startswith(_SAMPLE):
        return [GoldLinks(links, links) for links in sample.links(locator.removeprefix(_SAMPLE), source=source)]
    if corpus := catalogue.lookup(name):
        if _LINKS_EXTENSION not in corpus.sides(split):
            return None
        gold, first = read_gold(fetching.find(name, split, _LINKS_EXTENSION)), corpus.languages[0]
    else:
        stem = locator.partition("{")[0].removesuffix(".") if "{" in locator else locator
        path = expand_home(f"{stem}.{_LINKS_EXTENSION}")
        if locator.startswith(("hf:", "mtdata:", "sacrebleu:")) or not path.is_file():
            return None
        gold, first = read_gold(path), source
    return gold if source == first else [links.flipped() for links in gold]


def aligned_text(data: DataConfig, locator: str) -> str | None:
    """A text with gold links: the given one, else another split of the (first) training corpus; None if there is none."""
    if gold_links(locator, source=data.source) is not None:
        return locator
    name = data.corpora[0].corpus.partition("/")[0]
    corpus = catalogue.lookup(name)
    for split in corpus.splits if corpus else ():
        if corpus and _LINKS_EXTENSION in corpus.sides(split):
            try:
                fetching.find(name, split, _LINKS_EXTENSION)
            except DataError:  # not on this machine, and nowhere to fetch it from
                return None
            return f"{name}/{split}"
    return None
