"""XLIFF and TMX, filled in."""

import pytest

from nmt.errors import DataError
from nmt.serving.documents.document import InlineDocument
from nmt.serving.documents.tmx import read_tmx
from nmt.serving.documents.xliff import read_xliff
from tests.serving.fakes import in_reverse

LANGUAGES = ("en", "de")
UNSAFE = "The file declares entities or refers to other documents, which is not safe to read."
XLIFF_1 = """<?xml version='1.0' encoding='UTF-8'?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:x="urn:other" version="1.2">
  <!-- made by hand -->
  <file original="a.html" source-language="en-US" datatype="html">
    <body>
      <trans-unit id="1" x:note="kept">
        <source xml:lang="en">the <g id="1">old</g> dog {0}</source>
        <note>stays</note>
      </trans-unit>
      <trans-unit id="2"><source>done</source><target state="final">fertig</target></trans-unit>
      <trans-unit id="3"><source>again</source><target state="new">again</target></trans-unit>
      <trans-unit id="4" translate="no"><source>ACME</source></trans-unit>
      <group translate="no"><trans-unit id="5"><source>code</source></trans-unit></group>
      <trans-unit id="6"><source>a b. c d.</source>
        <seg-source><mrk mid="1" mtype="seg">a b.</mrk> <mrk mid="2" mtype="seg">c d.</mrk></seg-source></trans-unit>
    </body>
  </file>
</xliff>"""
XLIFF_2 = """<?xml version='1.0' encoding='UTF-8'?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.1" srcLang="en">
  <file id="f"><unit id="1">
    <originalData><data id="d1">&lt;br/&gt;</data></originalData>
    <segment><source>a <ph id="1" dataRef="d1"/>b</source></segment>
    <ignorable><source> </source></ignorable>
    <segment state="reviewed"><source>c</source><target>C</target></segment>
  </unit><unit id="2" translate="no"><segment><source>d</source></segment></unit></file>
</xliff>"""
TMX = """<?xml version='1.0' encoding='UTF-8'?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
  <tu tuid="1"><prop type="x">kept</prop><tuv xml:lang="EN-US"><seg>a <bpt i="1">&lt;b&gt;</bpt>b<ept i="1">&lt;/b&gt;</ept> c</seg></tuv>
  </tu>
  <tu><tuv xml:lang="en"><seg>done</seg></tuv><tuv xml:lang="de"><seg>fertig</seg></tuv></tu>
  <tu><tuv xml:lang="fr"><seg>chien</seg></tuv></tu>
  <tu><tuv lang="en"><seg>d &amp; e</seg></tuv></tu>
</body></tmx>"""


def filled(document: InlineDocument) -> tuple[list[str], str]:
    """What is to be translated, and the file with the words of each text in reverse."""
    texts = list(document.texts)
    return [text.plain for text in texts], document.write([in_reverse(text) for text in texts]).decode()


def test_xliff_1_gets_targets_to_review() -> None:
    texts, written = filled(read_xliff(XLIFF_1.encode(), LANGUAGES))
    assert texts == ["the old dog ", "again", "a b.", "c d."]
    new = 'state="needs-review-translation" state-qualifier="leveraged-mt"'
    expected = XLIFF_1.replace('datatype="html">', 'datatype="html" target-language="de">')
    expected = expected.replace(
        "{0}</source>", f'{{0}}</source>\n        <target xml:lang="de" {new}>dog {{0}} <g id="1">old</g> the</target>'
    )
    expected = expected.replace('<target state="new">again</target>', f"<target {new}>again</target>")
    segments = '<mrk mid="1" mtype="seg">b. a</mrk> <mrk mid="2" mtype="seg">d. c</mrk>'
    expected = expected.replace("</seg-source>", f"</seg-source><target {new}>{segments}</target>")
    assert written == expected


def test_xliff_2_says_that_segments_are_translated() -> None:
    texts, written = filled(read_xliff(XLIFF_2.encode(), LANGUAGES))
    assert texts == ["a b"]
    expected = XLIFF_2.replace('srcLang="en"', 'srcLang="en" trgLang="de"').replace(
        '<segment><source>a <ph id="1" dataRef="d1"/>b</source>',
        '<segment state="translated"><source>a <ph id="1" dataRef="d1"/>b</source><target><ph id="1" dataRef="d1"/>b a</target>',
    )
    assert written == expected


def test_a_part_to_translate_of_a_unit_that_is_not_is_translated() -> None:
    unit = '<segment><source>X {0} <mrk id="1" translate="yes">a <mrk id="2" translate="no">Y</mrk> b</mrk> Z</source>'
    texts, written = filled(read_xliff(XLIFF_2.replace("<segment><source>d</source>", f"{unit}").encode(), LANGUAGES))
    assert texts == ["a b", "X  a Y b Z"]
    assert (
        '<target>Z <mrk id="1" translate="yes">b <mrk id="2" translate="no">Y</mrk> a</mrk> X {0}</target>' in written
    )


def test_tmx_gets_variants_in_the_target_language() -> None:
    texts, written = filled(read_tmx(TMX.encode(), LANGUAGES))
    assert texts == ["a b c", "d & e"]
    expected = TMX.replace(
        '</bpt>b<ept i="1">&lt;/b&gt;</ept> c</seg></tuv>\n',
        '</bpt>b<ept i="1">&lt;/b&gt;</ept> c</seg></tuv>\n  '
        '<tuv xml:lang="de"><seg>c <bpt i="1">&lt;b&gt;</bpt>b<ept i="1">&lt;/b&gt;</ept> a</seg></tuv>\n',
    ).replace("d &amp; e</seg></tuv>", 'd &amp; e</seg></tuv><tuv lang="de"><seg>e &amp; d</seg></tuv>')
    assert written == expected


def test_characters_that_xml_cannot_have_are_left_out() -> None:
    document = read_tmx(TMX.encode(), LANGUAGES)
    written = document.write([["a\x00b\ud800c\ufffe"], ["\u00a0é"]])
    assert b"<seg>abc</seg>" in written
    assert "<seg>\u00a0é</seg>".encode() in written


def test_a_file_keeps_its_encoding() -> None:
    content = TMX.replace("UTF-8", "utf-16").encode("utf-16")
    document = read_tmx(content, LANGUAGES)
    assert "<seg>x\u0416</seg>" in document.write([["x\u0416"], ["y"]]).decode("utf-16")
    latin = TMX.replace("UTF-8", "iso-8859-1").encode()
    assert b"<seg>&#1046;</seg>" in read_tmx(latin, LANGUAGES).write([["\u0416"], ["y"]])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("<xliff>", "The file is not valid XML: no element found, line 1."),
        ("", "The file is not valid XML: no element found, line 1."),
        ("<tmx/>", "The file is no XLIFF: its first element is another."),
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', UNSAFE),
        ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><xliff>&a;</xliff>', UNSAFE),
        ('<?xml version="1.0" encoding="no-such"?><xliff/>', "The file cannot be read as XML: unknown encoding: no-such."),
        (f"<xliff>{'<a/>' * 100_000}</xliff>", "The file has more than 100,000 elements."),
        (XLIFF_1.replace("en-US", "fr"), "The file is in fr and an unnamed language, not in en and de."),
        (XLIFF_2.replace('srcLang="en"', 'srcLang="en" trgLang="fr"'), "The file is in en and fr, not in en and de."),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_sentence(content: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        read_xliff(content.encode(), LANGUAGES)
    assert str(caught.value) == sentence


def test_texts_with_very_much_in_them_are_refused() -> None:
    for seg in ("a" * 50_001, "a<ph/>" * 2501):
        document = read_tmx(f'<tmx><tu><tuv xml:lang="en"><seg>{seg}</seg></tuv></tu></tmx>'.encode(), LANGUAGES)
        with pytest.raises(DataError, match=r"^A text has more than 50,000 characters, or 5,000 elements"):
            next(document.texts)


def test_deep_files_and_other_files_are_refused() -> None:
    with pytest.raises(DataError, match=r"^The file cannot be read as XML: .*depth.*\.$"):
        read_xliff(b"<a>" * 5000 + b"</a>" * 5000, LANGUAGES)
    with pytest.raises(DataError, match=r"^The file is no TMX"):
        read_tmx(XLIFF_1.encode(), LANGUAGES)
