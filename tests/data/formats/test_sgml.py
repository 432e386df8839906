"""Test sets of WMT: two files, whose documents and segments must be the same."""

import gzip
import re
from pathlib import Path

import pytest

from tests.data.formats.loading import load, refusal

SOURCE = """<srcset setid="newstest" srclang="any">
<doc sysid="ref" docid="a.1" genre="news"><hl><seg id="1">A  headline
of two lines</seg></hl>
<p><seg id="2"> AT&amp;T &lt;b&gt; &amp;lt; R&D </seg></p></doc>
<DOC docid='a.2'><seg id=1>third</seg></DOC>
</srcset>"""
TARGET = """<refset setid="newstest" srclang="any" trglang="de">
<doc docid="a.1" sysid="ref"><seg id="1">Eine Überschrift</seg><seg id="2">zwei</seg></doc>
<doc docid="a.2"><seg id="1">drei</seg></doc>
</refset>"""
PAIRS = [("A headline of two lines", "Eine Überschrift"), ("AT&T <b> &lt; R&D", "zwei"), ("third", "drei")]


def write(folder: Path, target: str = TARGET) -> str:
    (folder / "newstest-ende-src.en.sgm").write_text(SOURCE, encoding="utf-8")
    (folder / "newstest-ende-ref.de.sgm").write_text(target, encoding="utf-8")
    return f"{folder}/newstest-ende-{{src.en,ref.de}}.sgm"


def test_the_segments_are_the_lines(tmp_path: Path) -> None:
    locator = write(tmp_path)
    assert load(locator) == PAIRS
    assert load(locator, "de", "en") == [(target, source) for source, target in PAIRS], "the codes count, not the order"
    for code, content in (("en", SOURCE), ("de", TARGET)):
        (tmp_path / f"a.{code}.sgml.gz").write_bytes(gzip.compress(content.encode()))
    assert load(f"{tmp_path}/a.{{en,de}}.sgml") == PAIRS
    assert "src.en and ref.de, but the languages are en and fr" in refusal(locator, "en", "fr")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (
            TARGET.replace('<seg id="2">', '<seg id="3">'),
            "Segment 2 is number 2 of document a.1 in .*, but number 3 of document a.1",
        ),
        (TARGET.replace("a.2", "a.3"), "Segment 3 is number 1 of document a.2 in .*, but number 1 of document a.3 in"),
        (
            TARGET.replace('<seg id="1">drei</seg>', ""),
            r"src.en.sgm has 3 segments, but .*ref.de.sgm has 2: segment n of",
        ),
        (TARGET.replace("Überschrift</seg>", ""), "ref.de.sgm, line 2: <seg> without </seg>."),
        ("", "has 3 segments, but .*ref.de.sgm has 0"),
    ],
)
def test_other_documents_are_refused_in_a_sentence(tmp_path: Path, target: str, problem: str) -> None:
    locator = write(tmp_path, target)
    assert re.search(problem, refusal(locator))


def test_text_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    locator = write(tmp_path)
    path = tmp_path / "newstest-ende-ref.de.sgm"
    path.write_bytes(TARGET.encode("latin-1"))
    assert refusal(locator) == f"{path}, line 2: not valid UTF-8."
