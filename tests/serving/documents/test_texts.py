"""Plain text, pages and subtitles."""

import pytest

from nmt.errors import DataError
from nmt.serving.documents.plain import read_plain
from nmt.serving.documents.subtitles import read_subtitles
from nmt.serving.documents.web import read_web_page

LANGUAGES = ("en", "de")
CUES = """1
00:00:01,000 --> 00:00:02,500 X1:0
The <i>old</i> dog
runs & barks.

2
00:00:03,000 --> 00:00:04,000
- Does it?
- It does, and the line
goes on.

3
00:00:05,000 --> 00:00:06,000

"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_plain_text_keeps_its_encoding(encoding: str) -> None:
    document = read_plain("é\r\nb\n".encode(encoding), LANGUAGES)
    assert document.texts == ["é\r\nb\n"]
    assert document.write(["É\r\nB\n"]) == "É\r\nB\n".encode(encoding)


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(DataError, match=r"^The file is not text in UTF-8\.$"):
        read_plain(b"\x89PNG\r\n", LANGUAGES)


def test_a_page_keeps_its_encoding_and_names_its_new_language() -> None:
    page = '<html dir=ltr lang="en-US"><meta charset="iso-8859-1"><p lang="en">é</p>'
    document = read_web_page(page.encode("latin-1"), LANGUAGES)
    assert (document.texts, document.markup) == ([page], "html")
    written = document.write([page.replace("é", "é \u0416")])
    assert written == page.replace("en-US", "de").encode("latin-1").replace(b"\xe9", b"\xe9 &#1046;")


def test_what_one_speaker_says_is_one_text() -> None:
    document = read_subtitles(CUES.encode(), LANGUAGES)
    assert document.texts == ["The <i>old</i> dog runs &amp; barks.", "- Does it?", "- It does, and the line goes on."]
    written = document.write(["a &amp; b", "- c", "- " + "long " * 10 + '<font color="red">d</font>']).decode()
    assert written == CUES.replace("The <i>old</i> dog\nruns & barks.", "a & b").replace(
        "- Does it?\n- It does, and the line\ngoes on.",
        '- c\n- long long long long long long long long\nlong long <font color="red">d</font>',
    )


def test_a_file_without_times_has_no_subtitles() -> None:
    assert read_subtitles(b"\n", LANGUAGES).write([]) == b"\n"
    with pytest.raises(DataError, match="no line has two times"):
        read_subtitles(b"just text", LANGUAGES)
