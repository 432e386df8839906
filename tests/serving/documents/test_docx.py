"""Documents of Word, made here of as little as Word reads."""

from __future__ import annotations

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from nmt.errors import DataError
from nmt.serving.documents.docx import read_docx
from tests.serving.fakes import in_reverse

LANGUAGES = ("en", "de")
UNSAFE = "The file declares entities or refers to other documents, which is not safe to read."
NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)
BOLD = "<w:rPr><w:b/></w:rPr>"
STYLES = '<w:rPr><w:lang w:val="en-US" w:eastAsia="ja-JP"/></w:rPr>'


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def packed(body: str, **parts: str) -> bytes:
    """A document with this body."""
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", part(f"<w:body>{body}</w:body>", "document"))
        archive.writestr("word/media/image1.png", b"\x89PNG")
        for name, text in parts.items():
            archive.writestr(f"word/{name}.xml", part(text, name))
    return content.getvalue()


def part(text: str, name: str) -> str:
    return f"<w:{name} {NAMESPACES}>{text}</w:{name}>"


def filled(content: bytes) -> tuple[list[str], dict[str, str]]:
    """What is to be translated, and the parts with the words of each text in reverse."""
    document = read_docx(content, LANGUAGES)
    texts = list(document.texts)
    with ZipFile(BytesIO(document.write([in_reverse(text) for text in texts]))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert parts["word/media/image1.png"] == b"\x89PNG"
    assert parts["[Content_Types].xml"] == b"<Types/>"
    read = {name: data.decode() for name, data in parts.items() if name.startswith("word/") and "media" not in name}
    return [text.plain for text in texts if text.has_letters], {
        name.removeprefix("word/").removesuffix(".xml"): text[text.index(NAMESPACES[-9:]) + 10 :]
        for name, text in read.items()
    }


def body(content: str) -> tuple[list[str], str]:
    """What is to be translated in a paragraph, and the paragraph afterwards."""
    texts, parts = filled(packed(f"<w:p>{content}</w:p>"))
    return texts, parts["document"].removeprefix("<w:body><w:p>").removesuffix("</w:p></w:body></w:document>")


def test_formats_go_with_their_words() -> None:
    style = '<w:pPr><w:jc w:val="center"/></w:pPr>'
    content = style + run("the ") + run("ol", BOLD) + "<w:proofErr/>" + run("d", BOLD) + run(" dog runs")
    texts, written = body(content)
    assert texts == ["the old dog runs"]
    assert written == style + run("runs dog ") + run("old", BOLD) + run(" the")


def test_the_format_of_most_of_the_text_is_the_usual_one() -> None:
    texts, written = body(run("a ", BOLD) + run("long line", BOLD) + run(" b"))
    assert texts == ["a long line b"]
    assert written == run("b") + run(" line long a", BOLD)


def test_links_and_ranges_go_round_their_words() -> None:
    link = '<w:hyperlink r:id="r1">{}</w:hyperlink>'
    start, end = '<w:bookmarkStart w:id="1" w:name="x"/>', '<w:bookmarkEnd w:id="1"/>'
    texts, written = body(run("see ") + link.format(run("this", BOLD)) + run(" ") + start + run("page") + end)
    assert texts == ["see this page"]
    assert written == start + run("page") + end + run(" ") + link.format(run("this", BOLD)) + run(" see")


def test_fields_stay_in_one_piece() -> None:
    number = field("begin") + "<w:r><w:instrText>PAGE</w:instrText></w:r>" + field("separate") + run("7") + field("end")
    texts, written = body(run("page ") + number + run(" of text"))
    assert texts == ["page  of text"]
    assert number in written
    assert written == run("text ") + number + run(" of page")


def test_a_field_without_its_end_is_no_reason_to_fail() -> None:
    for marks in (field("begin") + field("separate"), field("end")):
        texts, written = body(marks + run("a b"))
        assert texts == ["a b"]
        assert written == marks + run("b a")


def test_tabs_separate_words_and_pictures_stay() -> None:
    content = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:drawing/></w:r>"
    document = read_docx(packed(f"<w:p>{content}</w:p>"), LANGUAGES)
    [text] = document.texts
    assert text.plain == "a b"
    with ZipFile(BytesIO(document.write([text.restore("x y")]))) as archive:
        written = archive.read("word/document.xml").decode()
    assert f"<w:p>{run('x')}<w:r><w:tab/></w:r>{run('y')}<w:r><w:drawing/></w:r></w:p>" in written


def test_addresses_and_placeholders_are_kept() -> None:
    texts, written = body(run("see https://example.org/a-b "))
    assert [text.split() for text in texts] == [["see"]]
    assert "https://example.org/a-b" in written


def test_paragraphs_in_text_boxes_are_translated() -> None:
    box = "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>"
    texts, written = body(run("a b") + box.format(run("c d")))
    assert texts == ["a b", "c d"]
    assert box.format(run("d c")) in written
    assert run("b a") in written


def test_what_is_deleted_and_what_has_no_letters_stays() -> None:
    deleted = "<w:del><w:r><w:delText>x</w:delText></w:r></w:del>"
    assert deleted in body(run("a b") + deleted)[1]
    plain = "<w:r><w:t>1</w:t><w:t>2</w:t></w:r>"
    assert body(plain) == ([], plain)


def test_headers_and_notes_are_translated_and_the_language_is_named() -> None:
    paragraph = f"<w:p>{run('a b')}</w:p>"
    texts, parts = filled(packed(paragraph, header1=paragraph, footnotes=paragraph, styles=STYLES, settings=paragraph))
    assert texts == ["a b"] * 3
    for name in ("document", "header1", "footnotes"):
        assert run("b a") in parts[name]
    assert run("a b") in parts["settings"]
    assert '<w:lang w:val="de" w:eastAsia="ja-JP"/>' in parts["styles"]


def test_characters_that_xml_cannot_have_are_left_out() -> None:
    document = read_docx(packed(f"<w:p>{run('a')}</w:p>"), LANGUAGES)
    assert len(list(document.texts)) == 1
    with ZipFile(BytesIO(document.write([["b\x00\ud800\u00a0c"]]))) as archive:
        assert "b\u00a0c<" in archive.read("word/document.xml").decode()


def zipped(name: str, content: bytes) -> bytes:
    archive = BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return archive.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_of_one_name_count_each() -> None:
    archive = BytesIO(packed(""))
    with ZipFile(archive, "a", ZIP_DEFLATED) as file:
        for _ in range(3):
            file.writestr("word/media/image1.png", bytes(7_000_000))
    with pytest.raises(DataError, match="too much in it"):
        read_docx(archive.getvalue(), LANGUAGES)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"PK", "The file is no document of Word, or is encrypted or damaged."),
        (packed("")[:-60], "The file is no document of Word, or is encrypted or damaged."),
        (packed("").replace(b"PK\x03\x04", b"PK\x03\x05"), "The file is no document of Word, or is encrypted or damaged."),
        (zipped("a.txt", b""), "The file is no document of Word: it has no word/document.xml."),
        (zipped("word/document.xml", b"<a>"), "The file is not valid XML: no element found, line 1."),
        (zipped("word/document.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), UNSAFE),
        (zipped("word/document.xml", b" " * 4_000_001), "The file has too much in it: 20,000,000 bytes are allowed, 4,000,000 of text."),
        (packed("<w:p/>" * 100_000), "The file has more than 100,000 elements."),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        read_docx(content, LANGUAGES)
    assert str(caught.value) == sentence
