"""Which words people (or the sample's grammar) linked, and how far a model's links are from theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cache import expand_home
from nmt.data import catalogue
from nmt.decoding.words import words_of
from nmt.errors import DataError
from nmt.evaluation.alignment import GoldLinks, Links, read_pharaoh
from nmt.evaluation.error_rate import AlignmentErrorRate, alignment_error_rate

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.decoding.translation import Translation
    from nmt.recipe import Data

_SAMPLE = "sample:"
_LINKS = "align"


def error_rate(links: Sequence[Links], gold: Sequence[GoldLinks], *, bootstrap: int = 0) -> AlignmentErrorRate:
    """How far links are from the gold links. Raises DataError if there are not as many."""
    sure, possible = [item.sure for item in gold], [item.possible for item in gold]
    return alignment_error_rate(links, sure, possible, bootstrap=bootstrap)


def links_of_pieces(gold: GoldLinks, found: Translation, bundle: Bundle, rank: int = 0) -> GoldLinks:
    """Links between words as links between all their pieces, for the matrix of `piece_alignment`."""
    hypothesis = found.hypotheses[rank]
    source = _pieces_of(words_of(bundle.source, found.source_ids, found.source)[1])
    target = _pieces_of(words_of(bundle.target, hypothesis.ids, hypothesis.text)[1])
    sure, possible = (
        frozenset(pair for word, other in links for pair in product(source[word], target[other]))
        for links in (gold.sure, gold.possible)
    )
    return GoldLinks(sure, possible)


def _pieces_of(word_of: Sequence[int]) -> dict[int, list[int]]:
    """The pieces of each word."""
    pieces: defaultdict[int, list[int]] = defaultdict(list)
    for piece, word in enumerate(word_of):
        pieces[word].append(piece)
    return pieces


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


def aligned_text(data: Data, locator: str) -> str | None:
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
