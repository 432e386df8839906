"""Language codes: which of them name the same language."""

import re
from collections.abc import Sequence

from nmt.errors import DataError
from nmt.text.language_names import code_of_name

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


_LONG_CODES = {
    long: code
    for entry in """
    af afr|am amh|ar ara|az aze|be bel|bg bul|bn ben|bs bos|ca cat|cs ces cze|cy cym wel|da dan|de deu ger|el ell gre|en eng|eo epo
    es spa|et est|eu eus baq|fa fas per|fi fin|fr fra fre|ga gle|gl glg|gn grn|gu guj|ha hau|he heb|hi hin|hr hrv|hu hun|hy hye arm
    id ind|ig ibo|is isl ice|it ita|ja jpn|ka kat geo|kk kaz|km khm|kn kan|ko kor|ky kir|la lat|lb ltz|lo lao|lt lit|lv lav|mg mlg
    mk mkd mac|ml mal|mn mon|mr mar|ms msa may|mt mlt|my mya bur|nb nob|ne nep|nl nld dut|nn nno|no nor|oc oci|pa pan|pl pol|ps pus
    pt por|ro ron rum|ru rus|sd snd|se sme|si sin|sk slk slo|sl slv|so som|sq sqi alb|sr srp|sv swe|sw swa|ta tam|te tel|tg tgk
    th tha|tk tuk|tl tgl|tr tur|ug uig|uk ukr|ur urd|uz uzb|vi vie|wo wol|xh xho|yi yid|yo yor|zh zho chi|zu zul
    """.strip()
    .replace("\n", "|")
    .split("|")
    for code, *longs in [entry.split()]
    for long in longs
}
"""Codes of ISO 639-2 (both kinds) and 639-3, with those of ISO 639-1."""


def base_language(name: str) -> str:
    """The first part of a name, which may be a language code: `de` of `de`, `de-AT`, `de_AT` and `de.tok`."""
    return re.split(r"[-_.@]", name, maxsplit=1)[0].lower()


def language_code(name: str) -> str | None:
    """The code, with region and script, of a language named by a code (`de`, `deu`, `de_DE`) or by a word; None if it is none."""
    name = name.strip()
    first, separator, rest = name.replace("_", "-").partition("-")
    base = _LONG_CODES.get(first.lower(), first.lower())
    if base in LANGUAGES and re.fullmatch(r"(-\w{2,8})*", separator + rest):
        return f"{base}{separator}{rest}"
    return code_of_name(name)


def iso_code(name: str) -> str:
    """The code of ISO 639-1 of a language: `de` of `deu`, `de_DE` and `German`; the first part of a name that is none."""
    return base_language(language_code(name) or name)


def best_match(codes: Sequence[str], language: str, other: str) -> int | None:
    """The index of the first code that is a language, else of the first with the same base language; None if there is none.

    Case does not count, nor does `_` for `-`. If the other side has the same base language (zh-CN, zh-TW), only whole codes count.
    """
    return next(iter(matching(codes, language, [other])), None)


def matching(codes: Sequence[str], language: str, others: Sequence[str]) -> list[int]:
    """The indices of all codes that are a language, else of all with its base language; as in `best_match`."""
    if whole := [at for at, code in enumerate(codes) if _normalized(code) == _normalized(language)]:
        return whole
    base = base_language(language)
    if base in map(base_language, others):
        return []
    return [at for at, code in enumerate(codes) if base_language(code) == base]


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


def _normalized(code: str) -> str:
    return code.replace("_", "-").lower()
