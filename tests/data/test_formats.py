"""TMX, XLIFF and PO files through translate-toolkit: directions, markup, unfinished translations, and files that are no such files."""

import gzip
import logging
import sys
from pathlib import Path

import pytest

from nmt.data.locators import load_corpus
from nmt.errors import DataError, UsageError

pytest.importorskip("translate")

TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="en"/><body>
<tu><prop>p</prop><tuv xml:lang="EN-us"><seg>Press <bpt i="1">{\\b </bpt><hi>the <hi>red</hi></hi> button<ept i="1">}</ept>.</seg></tuv>
<tuv xml:lang="de"><seg>eins
zwei</seg></tuv><tuv xml:lang="de"><seg>drei</seg></tuv></tu>
<tu><tuv lang="fr"><seg>deux</seg></tuv><tuv lang="deu"><seg>zwei</seg></tuv><tuv lang="en"><seg>one &amp; two</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="fr"><seg>b</seg></tuv></tu></body></tmx>"""
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-GB" target-language="DE" original="a"><body><group id="g"><trans-unit id="1">
<source>a <g id="1">red</g> <x id="2"/>dog<ph id="3">%s</ph></source>
<target>ein <mrk mtype="term">roter</mrk> Hund</target><alt-trans><source>no</source><target>nein</target></alt-trans></trans-unit></group>
<trans-unit id="2"><source>a cat</source></trans-unit>
<trans-unit id="3"><source>b</source><target state="needs-translation">b</target></trans-unit>
<trans-unit id="4" translate="no"><source>c</source><target>c</target></trans-unit>
<trans-unit id="5"><source>two</source><target state="translated">zwei</target></trans-unit></body></file></xliff>"""
XLIFF_2 = """<xliff version="2.1" srcLang="en" trgLang="de-AT" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="1">
<segment><source>a <pc id="1">red</pc> <ph id="2"/>dog</source><target>ein <mrk id="m">roter</mrk> Hund</target></segment>
<segment state="initial"><source>three</source><target>three</target></segment>
<segment><source>two</source><target>zwei</target></segment><segment><source>four</source></segment></unit></file></xliff>"""
PO = r"""msgid ""
msgstr "Language: de\nContent-Type: text/plain; charset=UTF-8\n"

#: main.c:12
msgctxt "menu"
msgid "Open \"%s\""
msgstr "\"%s\" "
"öffnen"

#, c-format, fuzzy
msgid "Close it"
msgstr "Schließen"

msgid "Untranslated"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#~ msgid "Old"
#~ msgstr "Alt"
"""
RED_DOG = [("a red dog", "ein roter Hund"), ("two", "zwei")]
FILES = {
    "x.tmx": (TMX, [("Press the red button.", "eins zwei"), ("one & two", "zwei")], "1 unit"),
    "x.xlf": (XLIFF, RED_DOG, "3 units"),
    "x.xliff": (XLIFF_2, RED_DOG, "2 units"),
    "x.po": (PO, [('Open "%s"', '"%s" öffnen'), ("%d file", "%d Datei"), ("%d files", "%d Dateien")], "2 units"),
}


def load(path: Path, source: str = "en", target: str = "de") -> list[tuple[str, str]]:
    return list(load_corpus(path, source=source, target=target))


@pytest.mark.parametrize("name", FILES)
def test_finished_translations_in_both_directions(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content, pairs, skipped = FILES[name]
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(content.encode()))
    with caplog.at_level(logging.WARNING):
        assert load(path) == pairs
    assert caplog.messages == [f"{path}: skipped {skipped} without finished translation."]
    assert load(path, "deu", "en-US") == [(target, source) for source, target in pairs]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.tmx", TMX[:-40], "x.tmx is damaged, or no .tmx file: "),
        ("x.tmx", "<html/>", "x.tmx is damaged, or no .tmx file: "),
        ("x.tmx", TMX.replace('"de', '"ja').replace("DE", "ja"), " has no unit that is translated between en and de."),
        ("x.xlf", XLIFF.replace("en-GB", "fr"), " translates fr to DE, but the languages are en and de."),
        ("x.xliff", XLIFF_2.replace("de-AT", "ja"), " translates en to ja, but the languages are en and de."),
        ("x.po", PO.replace("Language: de", "Language: fr"), " translates en to fr, but the languages are en and de."),
        ("x.po", 'msgid "a"\nmsgstr "b\n', "x.po is damaged, or no .po file: end-of-line within string on line 2"),
        ("x.po", "", "x.po is empty: it has no line."),
    ],
)
def test_what_cannot_be_read_is_refused(name: str, content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load(tmp_path / name)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("entity", ['a SYSTEM "file:///etc/passwd"', 'b "ha"><!ENTITY a "&b;&b;&b;"'])
def test_entities_are_not_expanded(entity: str, tmp_path: Path) -> None:
    """Neither files of the machine nor a bomb."""
    path = tmp_path / "x.tmx"
    path.write_text(TMX.replace('SYSTEM "tmx14.dtd"', f"[<!ENTITY {entity}>]").replace("eins", "&a;"))
    with pytest.raises(DataError, match="it declares entities"):
        load(path)


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.tmx").write_text(TMX)
    monkeypatch.setitem(sys.modules, "translate.storage", None)
    with pytest.raises(UsageError, match=r'pip install "attentional-nmt\[formats\]"'):
        load(tmp_path / "x.tmx")
