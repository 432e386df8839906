"""Languages by their codes and English names."""

import pytest

from nmt.errors import DataError
from nmt.text.languages import base_language, closest_code, find_language, is_swapped, language_name, matching


@pytest.mark.parametrize(
    ("names", "tag"),
    [
        ("de deu ger deu_Latn DE German german Deutsch", "de"),
        ("de-AT de_AT DEU-at", "de-AT"),
        ("zh zho cmn Chinese", "zh"),
        ("zh-TW zho_tw", "zh-TW"),
        ("zho_Hans zh-hans", "zh-Hans"),
        ("arb_Arab ara ar", "ar"),
        ("sr-Latn", "sr-Latn"),
        ("src tgt trg the das tok label text en_text de.tok Kauderwelsch 1 xx", None),
    ],
)
def test_codes_and_english_names_of_one_language(names: str, tag: str | None) -> None:
    assert {name: find_language(name) for name in names.split()} == dict.fromkeys(names.split(), tag)


def test_base_and_name_of_a_language() -> None:
    assert [base_language(name) for name in ("pt-BR", "English", "bzd_Latn", "src")] == ["pt", "en", "bzd", "src"]
    names = {"de": "German", "pt-BR": "Portuguese (Brazil)", "zh_Hant": "Chinese (Traditional)", "bzd": "Bribri"}
    names |= {name: name for name in ("xx", "src", "", "no code")}
    assert {code: language_name(code) for code in names} == names


@pytest.mark.parametrize(
    ("names", "language", "others", "expected"),
    [
        (["deu", "eng", "id"], "de", ["en"], [0]),
        (["de-AT", "en", "de-CH"], "de", ["en"], [0, 2]),
        (["de-AT", "en", "German"], "de", ["en"], [2]),
        (["zh-CN", "zh_TW"], "zh-TW", ["zh-CN"], [1]),
        (["zh-CN", "zh"], "zh-TW", ["zh-HK"], []),
        (["bzd", "bzd_x", "es"], "bzd", ["es"], [0]),
    ],
)
def test_whole_languages_match_before_others_with_their_base(
    names: list[str], language: str, others: list[str], expected: list[int]
) -> None:
    assert matching(names, language, others) == expected


def test_a_text_in_other_languages_is_refused() -> None:
    assert [is_swapped(codes, ("en", "de"), "x") for codes in (("eng", None), ("deu_Latn", "en"))] == [False, True]
    with pytest.raises(DataError, match="x translates fr to an unnamed language, but the languages are en and de"):
        is_swapped(("fr", None), ("en", "de"), "x")


@pytest.mark.parametrize(
    ("code", "codes", "closest"),
    [
        ("EN", "en", "en"),
        ("en-US", "de en", "en"),
        ("zh-Hant-TW", "zh zh_Hant", "zh_Hant"),
        ("zh", "zh-Hans zh-Hant", "zh-Hans"),
        ("zh-Hant", "zh-Hans", None),
        *((name, "en", None) for name in ("e", "", "english")),
    ],
)
def test_the_closest_code(code: str, codes: str, closest: str | None) -> None:
    assert closest_code(code, codes.split()) == closest
