"""Languages by their codes or English names, through langcodes."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from nmt.errors import DataError

SIDES = frozenset({"src", "tgt", "trg"})
"""Words for the sides of a text, although ISO 639-3 has languages of these codes."""


@lru_cache(maxsize=10_000)
def find_language(name: str) -> str | None:
    """The language that a code (`de`, `deu`, `deu_Latn`, `de-AT`) or an English name (`German`) stands for, as a BCP 47 tag.

    None if it stands for none. Only languages with a code of two letters are found: longer codes are words as well, such as `the`.
    """
    import langcodes  # not at the top: commands without text start faster

    name = name.strip()
    if "\0" in name:  # the mark between names and codes in the trie of langcodes, which would read beyond its end
        return None
    try:
        language = langcodes.Language.get(langcodes.standardize_tag(name, macro=True))
    except (LookupError, ValueError):
        try:
            language = langcodes.find(name, "en")
        except LookupError:
            return None
    is_known = len(language.language or "") == 2 and language.is_valid() and name.lower() not in SIDES
    return language.to_tag() if is_known else None


def base_language(name: str) -> str:
    """The language without region and script: `de` of `deu`, `de_AT` and `German`; the first part of a name that is none."""
    return (find_language(name) or name).replace("_", "-").partition("-")[0].lower()


def matching(names: Sequence[str], language: str, others: Iterable[str] = ()) -> list[int]:
    """The indices of all names that are a language with its region and script, else of all with the same base language.

    If another side has that base language too (zh-CN, zh-TW), only whole names count.
    """
    if whole := [at for at, name in enumerate(names) if _tag(name) == _tag(language)]:
        return whole
    base = base_language(language)
    if base in map(base_language, others):
        return []
    return [at for at, name in enumerate(names) if find_language(name) and base_language(name) == base]


def is_swapped(codes: tuple[str | None, str | None], languages: tuple[str, str], place: object) -> bool:
    """Whether a text, whose languages are `codes`, must swap its sides to be in these languages. None fits any language.

    Raises:
        DataError: it is in other languages; `place` is its name.
    """
    for swapped, (source, target) in enumerate((languages, languages[::-1])):
        sides = ((codes[0], source, target), (codes[1], target, source))
        if all(code is None or matching([code], language, [other]) for code, language, other in sides):
            return bool(swapped)
    names = " to ".join(code or "an unnamed language" for code in codes)
    raise DataError(f"{place} translates {names}, but the languages are {' and '.join(languages)}.")


def closest_code(code: str, codes: Iterable[str]) -> str | None:
    """The code among `codes` that a code means: the same in any case, without its region, or the first with one."""
    by_tag = {known.lower().replace("_", "-"): known for known in codes}
    tag = code.lower().replace("_", "-")
    broader = ["-".join(tag.split("-")[:length]) for length in range(tag.count("-") + 1, 0, -1)]
    narrower = [known for known in by_tag if known.startswith(f"{tag}-")]
    return next((by_tag[known] for known in (*broader, *narrower) if known in by_tag), None)


def language_name(code: str) -> str:
    """The English name of a language, such as `Portuguese (Brazil)` of `pt-BR`; the code itself if it has none."""
    import langcodes

    try:
        language = langcodes.Language.get(code)
    except ValueError:
        return code
    return language.display_name("en") if language.is_valid() and code.lower() not in SIDES else code


def _tag(name: str) -> str:
    return find_language(name) or name.strip().replace("_", "-").lower()
