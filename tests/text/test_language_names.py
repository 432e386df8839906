"""Names and codes of languages."""

import pytest

from nmt.text.language_names import closest_code, language_name


def test_names_of_languages() -> None:
    assert [language_name(code) for code in ("de", "pt-BR", "xx", "zh_Hant")] == [
        "German", "Portuguese (BR)", "xx", "Chinese (Hant)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "codes", "closest"),
    [
        ("EN", ["en"], "en"),
        ("en-US", ["de", "en"], "en"),
        ("zh-Hant-TW", ["zh", "zh_Hant"], "zh_Hant"),
        ("zh", ["zh-Hans", "zh-Hant"], "zh-Hans"),
        ("zh-Hant", ["zh-Hans"], None),
        ("e", ["en"], None),
        ("", ["en"], None),
        ("english", ["en"], None),
    ],
)
def test_the_closest_code(code: str, codes: list[str], closest: str | None) -> None:
    assert closest_code(code, codes) == closest
