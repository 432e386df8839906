"""A text that a translation must begin with, as the tokens that may come next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from nmt.text.subwords import UNK, Subwords


class Prefix:
    """All segmentations of all texts that begin with a text; a place in it is the number of bytes before it.

    A token may follow if it spells the next bytes, or all that are left and more. Where no token does, the unknown token stands for
    the bytes up to where one does again.
    """

    def __init__(self, subwords: Subwords, text: str) -> None:
        self.spelling = subwords.spelling(text) if text else b""
        self.following = cache(self._following)
        self._subwords = subwords

    def _following(self, place: int) -> dict[int, int]:
        """The tokens that may follow at a place, each with the place after it. At the end of the text there are none: any token may."""
        if place == len(self.spelling):
            return {}
        places = (0, 1) if place == 0 and self.spelling[:1] == b" " else (place,)  # the first word needs no mark
        tokens = dict[int, int]()
        for start in places:
            tokens |= self._subwords.spelling_on(self.spelling, start)
        return tokens or {UNK: self._next_known(place)}

    def _next_known(self, place: int) -> int:
        """The first place after this one where a token may follow, or the end."""
        places = range(place + 1, len(self.spelling))
        return next((place for place in places if self._subwords.spelling_on(self.spelling, place)), len(self.spelling))

    def after(self, place: int, token: int) -> int:
        """The place after a token, which is the same place if the token may not follow."""
        return self.following(place).get(token, place)

    def unknown(self, ids: Sequence[int]) -> list[str]:
        """The text that each unknown token of the prefix stands for."""
        if not self.spelling:
            return []
        place, texts = 0, []
        for index in ids:
            start, place = place, self.after(place, index)
            if index == UNK and place > start:
                texts.append(self.spelling[start:place].decode().strip())
        return texts
