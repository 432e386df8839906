"""Choose fonts for the words of a figure, and measure text.

matplotlib 3.11 and later shapes text: it joins Arabic letters and sets them from right to left. Earlier versions do not, and
a warning says so.
"""

import logging
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import matplotlib
from matplotlib import font_manager
from matplotlib.font_manager import FontEntry, FontProperties, findSystemFonts, fontManager, get_font
from matplotlib.textpath import TextToPath

from nmt.errors import DataError

BASE = "DejaVu Sans"  # ships with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew
_PREFERRED = (
    "Noto Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans JP",
    "Noto Sans SC",
    "Source Han Sans",
    "IPAexGothic",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
)
_JAPANESE = ("Noto Sans CJK JP", "Noto Sans JP", "IPAexGothic", "Hiragino Sans", "Yu Gothic")
"""Preferred if there are kana, because Chinese fonts draw the same characters differently."""
_KANA = frozenset(map(chr, range(0x3041, 0x3100)))
# Fonts with wrong code points, and color fonts, which matplotlib cannot draw.
_UNFIT = ("cm", "STIXNon", "STIXSize", "Last", "DejaVu Sans Display", "Noto Color Emoji", "Apple Color Emoji")
_ELLIPSIS_FROM = 100  # characters; the longest words of real languages stay whole
_REGULAR = ("normal", 400, "normal")
SHAPES_TEXT = hasattr(font_manager, "FontPath")
"""Whether matplotlib shapes text and opens all faces of a font collection, as from 3.11 on."""
_UNSHAPED = (
    f"matplotlib {matplotlib.__version__} cannot shape Arabic, Hebrew or Indic scripts: their letters stand apart, from left "
    "to right. Install matplotlib 3.11 or newer, or write an SVG or an HTML page, which the viewer shapes."
)
_log = logging.getLogger(__name__)


def label(word: str) -> str:
    """The drawable form of a word: control characters and lone surrogates become U+FFFD, a very long word is shortened."""
    clean = "".join("\ufffd" if unicodedata.category(char) in ("Cc", "Cs", "Cn") else char for char in word)
    if len(clean) <= _ELLIPSIS_FROM:
        return clean
    half = _ELLIPSIS_FROM // 2
    return f"{clean[:half]}…{clean[-half + 1 :]}"


def is_right_to_left(words: Iterable[str]) -> bool:
    """Whether a text is read from right to left. Its first letter with a direction decides, as in a browser."""
    directions = (unicodedata.bidirectional(character) for word in words for character in word)
    return next((direction != "L" for direction in directions if direction in ("L", "R", "AL")), False)


def add_font(path: Path) -> str:
    """Register a font file with matplotlib, and return the name of its family.

    Raises:
        DataError: the file cannot be read, or is not a font.
    """
    before = len(fontManager.ttflist)
    try:
        path.open("rb").close()  # its error message has a reason, unlike that of addfont
        fontManager.addfont(path)
    except OSError as error:
        raise DataError(f"Cannot read the font {path}: {error.strerror}.") from None
    except RuntimeError:
        raise DataError(f"{path} is not a font that can be drawn: give a .ttf, .otf or .ttc file.") from None
    added = fontManager.ttflist[before]
    forget_fonts()
    # Register it as a regular face whatever its weight, so that it is the one chosen.
    fontManager.ttflist.append(replace(added, style="normal", weight=400, stretch="normal"))
    return str(added.name)


def forget_fonts() -> None:
    """Forget what is known of the installed fonts: to be called after matplotlib's list of them has changed."""
    for cached in (_candidates, _characters, _regular_faces):
        cached.cache_clear()


def choose_families(texts: Iterable[str], *, first: Sequence[str] = (), warn: bool = True) -> list[str]:
    """Choose font families that together have all characters of the texts, as far as installed fonts do.

    `first` and the base font come first. Further families are added greedily for the characters still missing. With `warn`,
    one warning lists characters that no font has, another one says if matplotlib cannot shape a script.
    """
    characters = set[str]().union(*texts)
    codes = {ord(character) for character in characters if _is_visible(character)}
    families = [*first, BASE]
    missing = codes.difference(*map(_characters, families))
    candidates = _candidates() if missing else []
    if not any(chr(code) in _KANA for code in codes):
        candidates = sorted(candidates, key=_JAPANESE.__contains__)
    while missing:
        best = max(candidates, key=lambda family: len(missing & _characters(family)), default=BASE)
        if not missing & _characters(best):
            break
        families.append(best)
        missing -= _characters(best)
    if missing and warn:
        _log.warning("%s", _missing_message(missing))
    if warn and not SHAPES_TEXT and any(map(_needs_shaping, characters)):
        _log.warning("%s", _UNSHAPED)
    return families


def text_width(text: str, size: float, families: Sequence[str]) -> float:
    """The width of a line of text in points."""
    if not text:
        return 0.0
    properties = FontProperties(family=list(families), size=size)
    width, _, _ = TextToPath().get_text_width_height_descent(text, properties, ismath=False)
    # A missing glyph is measured as a narrow box. The viewer of an SVG may have the glyph, which needs up to a full em.
    available = frozenset[int]().union(*(_characters(family) for family in families))
    missing = sum(_is_visible(character) and ord(character) not in available for character in text)
    return float(width) + 0.4 * size * missing


def _is_visible(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character) not in ("Cf", "Mn", "Cc")


def _needs_shaping(character: str) -> bool:
    """Whether a character needs text shaping: it is written from right to left, or is a combining vowel sign."""
    return unicodedata.bidirectional(character) in ("R", "AL") or unicodedata.category(character) == "Mc"


@lru_cache(maxsize=1)
def _candidates() -> list[str]:
    """Installed families to fall back to, the preferred ones first."""
    _register_new_fonts()
    fit = sorted(name for name in _regular_faces() if not name.startswith(_UNFIT) and name != BASE)
    return [name for name in _PREFERRED if name in fit] + [name for name in fit if name not in _PREFERRED]


@lru_cache(maxsize=1024)
def _characters(family: str) -> frozenset[int]:
    """The code points for which the regular face of a family has glyphs."""
    try:
        return frozenset(get_font(_regular_faces()[family]).get_charmap())
    except (OSError, RuntimeError, ValueError):  # the font file is damaged or not scalable
        return frozenset()


@lru_cache(maxsize=1)
def _regular_faces() -> dict[str, str]:
    """The file of each family's regular face."""
    faces = fontManager.ttflist
    return {face.name: _file(face) for face in faces if (face.style, face.weight, face.stretch) == _REGULAR}


def _file(face: FontEntry) -> str:
    """The file of a face, with its index in a font collection; before 3.11 matplotlib reads only the first face."""
    return font_manager.FontPath(face.fname, face.index) if SHAPES_TEXT else str(face.fname)


def _register_new_fonts() -> None:
    """Register fonts that were installed after matplotlib made its cached list."""
    registered = {str(face.fname) for face in fontManager.ttflist}
    for path in sorted(set(findSystemFonts()) - registered):
        with suppress(OSError, RuntimeError):  # not a font that matplotlib can read
            fontManager.addfont(path)
    forget_fonts()


def _missing_message(missing: Iterable[int]) -> str:
    characters = [chr(code) for code in sorted(missing)]
    shown = " ".join(characters[:20]) + (f" and {len(characters) - 20} more" if len(characters) > 20 else "")
    asian = any(unicodedata.category(char) == "Lo" and unicodedata.east_asian_width(char) == "W" for char in characters)
    family, package = ("Noto Sans CJK", "fonts-noto-cjk") if asian else ("one of the Noto family", "fonts-noto-core")
    return (
        f"No installed font can draw {shown}: boxes stand in. Install a font that can, such as {family} (on Debian and "
        f"Ubuntu `apt install {package}`), give the file of one, or write an SVG, which takes the fonts of its viewer."
    )
