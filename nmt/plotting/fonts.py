"""Choose fonts for the words of a figure, and measure text."""

import logging
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.textpath import TextToPath

from nmt.errors import DataError

BASE = "DejaVu Sans"
"""Ships with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew."""
_UNFIT = ("cm", "STIXNon", "STIXSize", "Last Resort", "DejaVu Sans Display", "Noto Color Emoji", "Apple Color Emoji")
"""Fonts with wrong code points, and color fonts, which matplotlib cannot draw."""
_LONGEST = 100  # characters; the longest words of real languages stay whole
_log = logging.getLogger(__name__)


def label(word: str) -> str:
    """The drawable form of a word: control characters and lone surrogates become U+FFFD, a very long word is shortened."""
    clean = "".join("\ufffd" if unicodedata.category(char) in ("Cc", "Cs", "Cn") else char for char in word)
    return clean if len(clean) <= _LONGEST else f"{clean[: _LONGEST - 1]}…"


def is_right_to_left(words: Iterable[str]) -> bool:
    """Whether a text is read from right to left. Its first letter with a direction decides, as in a browser."""
    directions = (unicodedata.bidirectional(character) for word in words for character in word)
    return next((direction != "L" for direction in directions if direction in ("L", "R", "AL")), False)


def add_font(path: Path) -> str:
    """Register a font file with matplotlib, and return the name of its family.

    Raises:
        DataError: the file cannot be read, or is not a font.
    """
    try:
        path.open("rb").close()  # its error message has a reason, unlike that of addfont
        fontManager.addfont(path)
    except OSError as error:
        raise DataError(f"Cannot read the font {path}: {error.strerror}.") from None
    except RuntimeError:
        raise DataError(f"{path} is not a font that can be drawn: give a .ttf, .otf or .ttc file.") from None
    return str(get_font(path).family_name)


def choose_families(texts: Iterable[str], *, first: Sequence[str] = ()) -> list[str]:
    """Choose font families that together have all characters of the texts, as far as installed fonts do.

    `first` and the base font come first; further families are added for the characters still missing, Noto before others.
    A warning lists characters that no font has.
    """
    characters = set[str]().union(*texts)
    families = [*first, BASE]
    visible = {
        char for char in characters if unicodedata.category(char) not in ("Cf", "Mn", "Cc") and not char.isspace()
    }
    missing = set(map(ord, visible)).difference(*map(_characters, families))
    regular = {
        face.name
        for face in fontManager.ttflist
        if (face.style, face.weight, face.stretch) == ("normal", 400, "normal") and not face.name.startswith(_UNFIT)
    }
    for family in sorted(regular, key=lambda name: (not name.startswith("Noto Sans"), name)) if missing else ():
        if missing & _characters(family):
            families.append(family)
            missing -= _characters(family)
    if missing:
        _log.warning(
            "No installed font can draw %s: boxes stand in. Install one that can, such as Noto Sans, or give the file of one.",
            " ".join(map(chr, sorted(missing))),
        )
    return families


def text_width(text: str, size: float, families: Sequence[str]) -> float:
    """The width of a line of text in points, at least an em for each wide character: the viewer of an SVG may have its glyph."""
    if not text:
        return 0.0
    properties = FontProperties(family=list(families), size=size)
    width, _, _ = TextToPath().get_text_width_height_descent(text, properties, ismath=False)
    return max(float(width), size * sum(unicodedata.east_asian_width(character) in "WF" for character in text))


@lru_cache(maxsize=1024)
def _characters(family: str) -> frozenset[int]:
    """The code points for which a family has glyphs."""
    try:
        return frozenset(get_font(findfont(FontProperties(family), fallback_to_default=False)).get_charmap())
    except (OSError, RuntimeError, ValueError):  # the font file is damaged or not scalable
        return frozenset()
