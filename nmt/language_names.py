"""English names of languages, by ISO 639-1 code."""

from __future__ import annotations

from collections.abc import Iterable

_NAMES = """
af Afrikaans|am Amharic|ar Arabic|az Azerbaijani|be Belarusian|bg Bulgarian|bn Bengali|bs Bosnian|ca Catalan|cs Czech|cy Welsh|da Danish
de German|el Greek|en English|eo Esperanto|es Spanish|et Estonian|eu Basque|fa Persian|fi Finnish|fr French|ga Irish|gl Galician|gu Gujarati
ha Hausa|he Hebrew|hi Hindi|hr Croatian|hu Hungarian|hy Armenian|id Indonesian|ig Igbo|is Icelandic|it Italian|ja Japanese|ka Georgian
kk Kazakh|km Khmer|kn Kannada|ko Korean|ky Kyrgyz|la Latin|lb Luxembourgish|lo Lao|lt Lithuanian|lv Latvian|mg Malagasy|mk Macedonian
ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese|my Burmese|nb Norwegian Bokmål|ne Nepali|nl Dutch|nn Norwegian Nynorsk|no Norwegian
oc Occitan|pa Punjabi|pl Polish|ps Pashto|pt Portuguese|ro Romanian|ru Russian|sd Sindhi|se Northern Sami|si Sinhala|sk Slovak|sl Slovenian
so Somali|sq Albanian|sr Serbian|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai|tk Turkmen|tl Tagalog|tr Turkish|ug Uyghur
uk Ukrainian|ur Urdu|uz Uzbek|vi Vietnamese|wo Wolof|xh Xhosa|yi Yiddish|yo Yoruba|zh Chinese|zu Zulu
"""
_BY_CODE = {
    code: name for entry in _NAMES.replace("\n", "|").split("|") if entry for code, name in [entry.split(" ", 1)]
}
_BY_NAME = {name.lower(): code for code, name in _BY_CODE.items()}


def language_name(code: str) -> str:
    """The English name of a language; the code itself if it is unknown. A region or script (`pt-BR`) stands in brackets."""
    base, separator, rest = code.replace("_", "-").partition("-")
    name = _BY_CODE.get(base.lower())
    return code if name is None else f"{name} ({rest})" if separator else name


def closest_code(code: str, codes: Iterable[str]) -> str | None:
    """The code among `codes` that a code means: the same in any case, without its region, or the first with one."""
    by_tag = {each.lower().replace("_", "-"): each for each in codes}
    tag = code.lower().replace("_", "-")
    broader = ["-".join(tag.split("-")[:length]) for length in range(tag.count("-") + 1, 0, -1)]
    narrower = [each for each in by_tag if each.startswith(f"{tag}-")]
    return next((by_tag[each] for each in (*broader, *narrower) if each in by_tag), None)


def code_of_name(name: str) -> str | None:
    """The code of a language by its English name in any case; None if it is unknown."""
    return _BY_NAME.get(name.lower())
