"""Names of languages, by ISO 639 code: in English, and what the languages themselves and their neighbors say."""

from __future__ import annotations

from collections.abc import Iterable

_NAMES = """
af Afrikaans|am Amharic|ar Arabic|ay Aymara|az Azerbaijani|be Belarusian|bg Bulgarian|bn Bengali|bs Bosnian|bzd Bribri|ca Catalan|cs Czech
cy Welsh|da Danish|de German|ee Ewe|el Greek|en English|eo Esperanto|es Spanish|et Estonian|eu Basque|fa Persian|fi Finnish|fr French
ga Irish|gl Galician|gn Guarani|gu Gujarati|ha Hausa|he Hebrew|hi Hindi|hr Croatian|hu Hungarian|hy Armenian|id Indonesian|ig Igbo
is Icelandic|it Italian|ja Japanese|ka Georgian|kk Kazakh|km Khmer|kn Kannada|ko Korean|ky Kyrgyz|la Latin|lb Luxembourgish|lo Lao
lt Lithuanian|lv Latvian|mg Malagasy|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese|my Burmese|nah Nahuatl
nb Norwegian Bokmål|ne Nepali|nl Dutch|nn Norwegian Nynorsk|no Norwegian|oc Occitan|pa Punjabi|pl Polish|ps Pashto|pt Portuguese
qu Quechua|ro Romanian|ru Russian|sd Sindhi|se Northern Sami|shp Shipibo-Konibo|si Sinhala|sk Slovak|sl Slovenian|so Somali|sq Albanian
sr Serbian|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai|tk Turkmen|tl Tagalog|tr Turkish|ug Uyghur|uk Ukrainian|ur Urdu
uz Uzbek|vi Vietnamese|wo Wolof|xh Xhosa|yi Yiddish|yo Yoruba|zh Chinese|zu Zulu
"""
_OTHER_NAMES = """
af Afrikaans|ar Arabisch arabe árabe arabo Arabiska العربية|bg Bulgarisch bulgare Български|ca Katalanisch catalan Català catalán
cs Tschechisch tchèque Čeština Česky checo ceco Tsjechisch|cy Walisisch gallois Cymraeg|da Dänisch danois Dansk danés danese Deens
de Deutsch Allemand Alemán Tedesco Duits Alemão Tysk Tyska Niemiecki Němčina Saksa Немецкий ドイツ語 德语 德語
el Griechisch grec griego greco Ελληνικά Grieks|en Englisch Anglais Inglés Inglese Engels Inglês Engelsk Engelska Angielski Angličtina
en Englanti Английский 英語 英语 영어|es Spanisch Espagnol Español Castellano Spagnolo Spaans Espanhol Spansk Spanska Hiszpański Испанский
et Estnisch estonien Eesti|eu Baskisch basque Euskara vasco|fa Persisch persan Farsi فارسی|fi Finnisch finnois Suomi finlandés Finska
fr Französisch Français Francés Francese Frans Francês Fransk Franska Francuski Francouzština Ranska Французский フランス語 法语 法語
ga Irisch irlandais Gaeilge|gl Galicisch Galego gallego|gn Guaraní|he Hebräisch hébreu hebreo עברית|hi हिन्दी|hr Kroatisch croate Hrvatski
hu Ungarisch hongrois Magyar húngaro|hy Armenisch arménien Հայերեն|id Indonesisch indonésien|is Isländisch islandais Íslenska
it Italienisch Italien Italiano Italiaans Italiensk Italienska Włoski Italština Итальянский イタリア語 意大利语
ja Japanisch Japonais Japonés Giapponese Japans 日本語 日语 日語|ka Georgisch géorgien ქართული|ko Koreanisch coréen coreano 한국어
la Lateinisch latin Latein|lt Litauisch lituanien Lietuvių|lv Lettisch letton Latviešu|mk Mazedonisch Македонски|mt Maltesisch Malti
nl Niederländisch Holländisch Néerlandais Neerlandés Olandese Nederlands Holandés Hollandsk|no Norwegisch norvégien Norsk noruego
pl Polnisch polonais Polski polaco polacco|pt Portugiesisch Portugais Portugués Portoghese Portugees Português
ro Rumänisch roumain Română rumano|ru Russisch russe Русский ruso russo Russisk Ryska ロシア語 俄语|sk Slowakisch slovaque Slovenčina
sl Slowenisch slovène Slovenščina|sq Albanisch albanais Shqip|sr Serbisch serbe Српски Srpski|sv Schwedisch suédois Svenska svedese Zweeds
sw Kiswahili|th ไทย|tr Türkisch turc Türkçe turco|uk Ukrainisch ukrainien Українська|vi Vietnamesisch vietnamien
zh Chinesisch Chinois Chino Cinese Chinees 中文 汉语 漢語 中国語
"""
_BY_CODE = {
    code: name for entry in _NAMES.replace("\n", "|").split("|") if entry for code, name in [entry.split(" ", 1)]
}
_BY_NAME = {
    name.lower(): code
    for entry in _OTHER_NAMES.replace("\n", "|").split("|")
    if entry
    for code, *names in [entry.split()]
    for name in names
} | {name.lower(): code for code, name in _BY_CODE.items()}


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
    """The code of a language by one of its names, in any case; None if it is unknown."""
    return _BY_NAME.get(name.strip().lower())
