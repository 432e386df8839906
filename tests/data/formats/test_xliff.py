"""XLIFF 1.2 and 2.x: directions, markup, and units without translation."""

import logging
from pathlib import Path

import pytest

from tests.data.formats.loading import load, refusal

FIRST = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en-GB" target-language="DE" original="a">
<header><note>no text</note></header><body><group id="g">
<trans-unit id="1"><source>a <g id="1">red</g> <x id="2"/>dog<ph id="3">%s</ph></source>
  <target>ein <g id="1"><mrk mtype="term">roter</mrk></g> Hund</target>
  <alt-trans><source>no</source><target>nein</target></alt-trans></trans-unit>
</group>
<trans-unit id="2"><source>a cat</source></trans-unit><trans-unit id="3"><source>a bird</source><target/></trans-unit>
<trans-unit id="4"><source>two
lines</source><seg-source><mrk mtype="seg">two lines</mrk></seg-source><target>zwei
Zeilen</target></trans-unit>
</body></file></xliff>"""
SECOND = """<xliff version="2.1" srcLang="en" trgLang="de-AT" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="1">
<originalData><data id="d">no text</data></originalData>
<segment><source>a <pc id="1">red</pc> <ph id="2" dataRef="d"/>dog</source><target>ein <mrk id="m">roter</mrk> Hund</target></segment>
<ignorable><source> </source></ignorable>
<segment><source>two</source><target>zwei</target></segment><segment><source>three</source></segment></unit></file></xliff>"""
PAIRS = {FIRST: [("a red dog", "ein roter Hund"), ("two lines", "zwei Zeilen")]}
PAIRS[SECOND] = [("a red dog", "ein roter Hund"), ("two", "zwei")]


@pytest.fixture(params=["text.xlf", "text.xliff"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return tmp_path / str(request.param)


@pytest.mark.parametrize("content", PAIRS)
def test_both_versions_in_both_directions(path: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text(content)
    with caplog.at_level(logging.WARNING):
        assert load(path) == PAIRS[content]
    skipped = "2 units" if content is FIRST else "1 unit"
    assert caplog.messages == [f"{path}: skipped {skipped} without translation, unfinished, or not to be translated."]
    assert load(path, "de", "en") == [(target, source) for source, target in PAIRS[content]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (FIRST.replace("en-GB", "fr"), " translates fr to DE, but the languages are en and de."),
        (SECOND.replace("de-AT", "ja"), " translates en to ja, but the languages are en and de."),
        (FIRST.replace(' source-language="en-GB" target-language="DE"', ""), " does not name its languages"),
        (FIRST[:600], ", line 9: not valid XML (unclosed token)."),
        ('<!DOCTYPE xliff [<!ENTITY a "b">]>' + SECOND, " declares entities"),
        ("<xliff/>", ": it has no line."),
    ],
)
def test_bad_files_are_refused_in_a_sentence(path: Path, content: str, problem: str) -> None:
    path.write_text(content)
    assert problem in refusal(path)


def test_each_file_element_has_its_own_direction(path: Path) -> None:
    unit = "<body><trans-unit><source>{}</source><target>{}</target></trans-unit></body></file>"
    there = '<file source-language="en" target-language="de">' + unit.format("a", "b")
    back = '<file source-language="de">' + unit.format("d", "c")
    path.write_text(f'<!DOCTYPE xliff PUBLIC "-//XLIFF//DTD XLIFF//EN" "xliff.dtd"><xliff>{there}{back}</xliff>')
    assert load(path) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    "unfinished",
    [
        '<trans-unit id="2"><source>b</source><target state="new">b</target></trans-unit>',
        '<trans-unit id="2"><source>b</source><target state="needs-translation">b</target></trans-unit>',
        '<trans-unit id="2"><source>b</source><target state="needs-review-translation">x</target></trans-unit>',
        '<trans-unit id="2" translate="no"><source>b</source><target>b</target></trans-unit>',
        '<group translate="no"><group><trans-unit><source>b</source><target>b</target></trans-unit></group></group>',
        '<unit><segment state="initial"><source>b</source><target>b</target></segment></unit>',
        '<unit translate="no"><segment state="final"><source>b</source><target>b</target></segment></unit>',
    ],
)
def test_unfinished_translations_are_no_pairs(path: Path, unfinished: str, caplog: pytest.LogCaptureFixture) -> None:
    last = '<trans-unit translate="yes"><source>a</source><target state="translated">x</target></trans-unit>'
    path.write_text(f'<file source-language="en" target-language="de">{unfinished}{last}</file>')
    with caplog.at_level(logging.WARNING):
        assert load(path) == [("a", "x")]
    assert caplog.messages == [f"{path}: skipped 1 unit without translation, unfinished, or not to be translated."]
