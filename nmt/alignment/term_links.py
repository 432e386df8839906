"""Links between the words of given terms and of their translations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from nmt.alignment.links import Links
from nmt.text.terms import find_term, join_words, whole_words


def link_terms(source: Sequence[str], target: Sequence[str], terms: Mapping[str, str]) -> Links:
    """Link all words of each term to all words of its translation; a term that occurs again, to where that occurs again.

    Args:
        source, target: words.
        terms: translations by source term.
    """
    pattern = whole_words(tuple(terms))
    if pattern is None:
        return frozenset()
    (source_text, source_words), (target_text, target_words) = join_words(source), join_words(target)
    places: dict[str, Iterator[tuple[int, int]]] = {}
    links = set[tuple[int, int]]()
    for match in pattern.finditer(source_text):
        translation = terms[match[0]]
        start, end = next(places.setdefault(translation, iter(find_term(translation, target_text))), (0, 0))
        links |= set(product(source_words[match.start() : match.end()], target_words[start:end]))
    return frozenset(link for link in links if min(link) >= 0)


def with_given(links: Links, given: Links) -> Links:
    """Links, but between words that have given ones only these."""
    sources, targets = {source for source, _ in given}, {target for _, target in given}
    return given | {(source, target) for source, target in links if source not in sources and target not in targets}
