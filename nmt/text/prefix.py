"""A text that a translation must begin with, as the tokens that may come next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from nmt.text.subwords import BOS, EOS, PAD, UNK, Subwords


class Prefix:
    """All segmentations of all texts that begin with a text; a place in it is the number of bytes before it.

    A token may follow if it spells the next bytes, or all that are left and more. Where no token does, the unknown token stands for
    the bytes up to where one does again. Beyond the text, any token may follow, but not every one may be the first.
    """

    def __init__(self, subwords: Subwords, text: str, otherwise: frozenset[int] = frozenset()) -> None:
        """The prefix that a text is; `otherwise` has the tokens that may not be the first one beyond it."""
        self.spelling = subwords.spelling(text) if text else b""
        self.otherwise = otherwise
        self.following = cache(self._following)
        self._subwords, self._text = subwords, text

    def _following(self, place: int) -> dict[int, int]:
        """The tokens that may follow at a place, each with the place after it. There are none where any token may."""
        end = len(self.spelling)
        if place > end or (place == end and not self.otherwise):
            return {}
        if place == end:
            return {token: end + 1 for token in range(len(self._subwords)) if token not in self.otherwise}
        places = (0, 1) if place == 0 and self.spelling[:1] == b" " else (place,)  # the first word needs no mark
        tokens = dict[int, int]()
        for start in places:
            tokens |= self._subwords.spelling_on(self.spelling, start)
        if not tokens:
            return {UNK: self._next_known(place)}
        if not self.otherwise:
            return tokens
        allowed = {token: after for token, after in tokens.items() if after <= end or token not in self.otherwise}
        return allowed or {PAD: end}  # which no output has

    def _next_known(self, place: int) -> int:
        """The first place after this one where a token may follow, or the end."""
        places = range(place + 1, len(self.spelling))
        return next((place for place in places if self._subwords.spelling_on(self.spelling, place)), len(self.spelling))

    def after(self, place: int, token: int) -> int:
        """The place after a token, the same after the start mark or one that may not follow; beyond the text, all places are one."""
        if token == BOS:
            return place
        end = len(self.spelling)
        return self.following(place).get(token, place if place < end else end + 1)

    def other_than(self, ids: Sequence[int]) -> Prefix:
        """The same prefix, beyond which the first token may not be that of an output; it may be the end mark."""
        place, first = 0, EOS
        for index in ids:
            place = self.after(place, index)
            if place > len(self.spelling):
                first = index
                break
        return Prefix(self._subwords, self._text, self.otherwise | {first})

    def unknown(self, ids: Sequence[int]) -> list[str]:
        """The text that each unknown token of the prefix stands for."""
        if not self.spelling:
            return []
        place, texts = 0, []
        for index in ids:
            start, place = place, self.after(place, index)
            if index == UNK and start < place <= len(self.spelling):
                texts.append(self.spelling[start:place].decode().strip())
        return texts
