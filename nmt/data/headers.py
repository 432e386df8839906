"""Headers of tables: which column holds which language, whatever words name it."""

import re
from collections.abc import Sequence

from nmt.errors import DataError
from nmt.text.language_names import code_of_name
from nmt.text.languages import base_language, iso_code, language_code, matching

_SIDES = tuple(
    re.compile(rf"({side})([ _-](text|txt|sentence|segment))?", re.IGNORECASE)
    for side in ("source|src", "target|tgt|trg|translation")
)


def find_columns(
    header: Sequence[str], names: Sequence[str], place: object, *, exact: bool = False
) -> list[int] | None:
    """The columns of these names; None if the header lacks one.

    Unless `exact`, a name that is a language also is the column that another code (`deu`, `de_DE`) or a word (`German`) names, and
    two languages are the columns `source` and `target` where the header does not name both.

    Raises DataError if several columns could be one of them; `place` is the name of the table.
    """
    columns = [_columns(header, name, names, exact=exact) for name in names]
    if not all(columns) and len(names) == 2 and not exact:
        columns = [[at for at, name in enumerate(header) if side.fullmatch(name.strip())] for side in _SIDES]
    if not all(columns):
        return None
    for name, places in zip(names, columns, strict=True):
        if len(places) > 1:
            several = " and ".join(header[at] for at in places)
            raise DataError(f"{place}: the columns {several} could both be {name}: rename or remove all but one.")
    pair = [at for [at] in columns]
    return pair if len(set(pair)) == len(names) else None


def is_pair(cells: Sequence[str], languages: Sequence[str]) -> bool:
    """Whether the first line of a table without a header is a pair: two cells that name no languages.

    Short codes are words too (`is`, `so`), so that one of them beside a word counts only if it is a language of the table. A language
    in both languages (`English`, `Englisch`) is a pair of a dictionary.
    """
    codes = [language_code(cell) for cell in cells]
    if len(cells) != 2 or any(side.fullmatch(cell.strip()) for side in _SIDES for cell in cells):
        return False
    if all(codes):
        return codes[0] == codes[1] and cells[0] != cells[1] and all(map(code_of_name, cells))
    bases = list(map(iso_code, languages))
    return not any(
        cell in languages or code_of_name(cell) or (code and base_language(code) in bases)
        for cell, code in zip(cells, codes, strict=True)
    )


def _columns(header: Sequence[str], name: str, names: Sequence[str], *, exact: bool) -> list[int]:
    """The columns that could be the one of a name."""
    code = None if exact else language_code(name)
    if code is None:
        return [at for at, other in enumerate(header) if other == name]
    codes = [language_code(other) or "" for other in header]
    others = [language_code(other) or other for other in names if other != name]
    return matching(codes, code, others)
