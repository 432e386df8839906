"""Language codes: which of them name the same language."""

import re
from collections.abc import Sequence

from nmt.errors import DataError

LANGUAGES = frozenset(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et
    eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk
    kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny
    oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk
    tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    """.split()
)
"""All codes of ISO 639-1."""


def base_language(name: str) -> str:
    """The first part of a name, which may be a language code: `de` of `de`, `de-AT`, `de_AT` and `de.tok`."""
    return re.split(r"[-_.@]", name, maxsplit=1)[0].lower()


def best_match(codes: Sequence[str], language: str, other: str) -> int | None:
    """The index of the first code that is a language, else of the first with the same base language; None if there is none.

    Case does not count, nor does `_` for `-`. If the other side has the same base language (zh-CN, zh-TW), only whole codes count.
    """
    whole = [_normalised(code) for code in codes]
    if _normalised(language) in whole:
        return whole.index(_normalised(language))
    bases = [base_language(code) for code in codes]
    if base_language(language) in bases and base_language(language) != base_language(other):
        return bases.index(base_language(language))
    return None


def is_swapped(codes: tuple[str | None, str | None], languages: tuple[str, str], place: object) -> bool:
    """Whether a text, whose languages are `codes`, must swap its sides to be in these languages. None fits any language.

    Raises:
        DataError: it is in other languages; `place` is its name.
    """
    for swapped, (source, target) in enumerate((languages, languages[::-1])):
        if _fits(codes[0], source, target) and _fits(codes[1], target, source):
            return bool(swapped)
    names = " to ".join(code or "an unnamed language" for code in codes)
    raise DataError(f"{place} translates {names}, but the languages are {' and '.join(languages)}.")


def _fits(code: str | None, language: str, other: str) -> bool:
    return code is None or best_match([code], language, other) is not None


def _normalised(code: str) -> str:
    return code.replace("_", "-").lower()
