"""Terms: words of the source whose translations are given, matched on words, the longest first."""

from __future__ import annotations

from collections.abc import Mapping

from nmt.errors import UsageError
from nmt.search.terms import Term
from nmt.text.regularization import MARK
from nmt.text.subwords import UNK, Subwords
from nmt.text.terms import whole_words


class Terms:
    """The target tokens that the translation of a text must hold."""

    def __init__(self, target: Subwords, terms: Mapping[str, str]) -> None:
        """Encode the translations; `terms` has both sides in their normal form. Raises UsageError if no tokens spell one."""
        self._ids = {source: tuple(target.encode(translation)) for source, translation in terms.items()}
        for translation, ids in zip(terms.values(), self._ids.values(), strict=True):
            if UNK in ids:
                raise UsageError(f"The model cannot write the term {translation!r}: no tokens spell it.")
        self._pattern = whole_words(tuple(terms))
        tokens = target.tokens(range(len(target)))
        self.inner = frozenset(
            index for index, token in enumerate(tokens) if token[:1].isalnum() and not token.startswith(MARK)
        )
        """The tokens that go on in a word."""

    def of(self, text: str) -> list[Term]:
        """The terms of a text, in its order; none twice at a place."""
        if self._pattern is None:
            return []
        return [ids for match in self._pattern.finditer(text) if (ids := self._ids[match[0]])]
