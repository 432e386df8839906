"""Translation memories: languages, inline markup, and files that are not what they should be."""

import gzip
import logging
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.formats.tmx import read_tmx
from tests.data.formats.loading import load, refusal

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>\n'
BOMB = """<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<tmx><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu></body></tmx>"""


def unit(**segments: str) -> str:
    """A unit with a variant per language, whose code has `_` for `-`."""
    variants = (f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in segments.items())
    return f"<tu><prop>p</prop>{''.join(variants)}</tu>\n"


def memory(*units: str) -> str:
    return f"{HEAD}{''.join(units)}</body></tmx>"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.tmx"


def test_both_directions_compressed_and_in_utf_16(path: Path, tmp_path: Path) -> None:
    content = memory(unit(en="one &amp; two", de="eins"), unit(de="zwei", fr="deux", en="two"))
    path.write_text(content)
    expected = [("one & two", "eins"), ("two", "zwei")]
    assert load(path) == expected
    assert load(path, "de", "en") == [(target, source) for source, target in expected]
    (tmp_path / "memory.tmx.gz").write_bytes(gzip.compress(content.encode()))
    assert load(tmp_path / "memory.tmx.gz") == expected
    path.write_bytes(content.replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"))
    assert load(path) == expected


@pytest.mark.parametrize(
    ("languages", "segments", "expected"),
    [
        (("en", "de"), {"EN_US": "a", "de_AT": "b"}, ("a", "b")),
        (("en", "de"), {"en_GB": "a", "en": "b", "de": "c"}, ("b", "c")),
        (("en-GB", "de"), {"en_US": "a", "EN_gb": "b", "de": "c"}, ("b", "c")),
        (("en-GB", "de"), {"en": "a", "de": "c"}, ("a", "c")),
        (("zh-TW", "zh-CN"), {"zh_CN": "a", "zh_TW": "b"}, ("b", "a")),
    ],
)
def test_languages_match_as_a_whole_first(
    path: Path, languages: tuple[str, str], segments: dict[str, str], expected: tuple[str, str]
) -> None:
    path.write_text(memory(unit(**segments)))
    assert load(path, *languages) == [expected]


def test_of_two_variants_the_first_counts_and_lang_is_a_language_too(path: Path) -> None:
    twice = (
        '<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>b</seg></tuv><tuv lang="de"><seg>c</seg></tuv></tu>'
    )
    path.write_text(memory(twice))
    assert load(path) == [("a", "b")]


def test_markup_goes_and_its_text_stays(path: Path) -> None:
    marked = (
        'Press <bpt i="1">{\\b </bpt><hi>the <hi>red</hi></hi> button<ept i="1">}</ept><ph>&lt;img title="<sub>a <hi>dog</hi>'
        '</sub>"&gt;</ph> now<it>x</it><ut>y</ut>.<!-- no --><?not this?>'
    )
    path.write_text(memory(unit(en=marked, de="eins\r\nzwei\n\ndrei")))
    assert load(path) == [("Press the red buttona dog now.", "eins zwei drei")]


def test_units_without_a_language_are_skipped_and_counted(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text(memory(unit(en="a", fr="b"), unit(en="c", de="d"), "<tu/>"))
    with caplog.at_level(logging.WARNING):
        assert load(path) == [("c", "d")]
    assert f"{path}: skipped 2 units where en or de is missing." in caplog.messages
    assert refusal(path, "en", "ja") == f"{path} has no unit in en and ja, only in en, fr, de."


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (BOMB, " declares entities or refers to other documents"),
        ('<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx>&a;</tmx>', " declares entities or refers"),
        ('<!DOCTYPE tmx [<!ENTITY % a SYSTEM "http://x/y">%a;]><tmx/>', " declares entities or refers"),
        (memory(unit(en="a", de="b"))[:-20], ", line 4: not valid XML (unclosed token)."),
        (memory(unit(en="a", de="b"), unit(en="<hi>a", de="b")), ", line 5: not valid XML (mismatched tag)."),
        (memory(unit(en="&nbsp;", de="b")), ", line 4: not valid XML (undefined entity &nbsp;)."),
        (memory(unit(en="\x01", de="b")), ", line 4: not valid XML (not well-formed (invalid token))."),
        ('<?xml version="1.0" encoding="klingon"?><tmx/>', "unknown encoding"),
        ("", ", line 1: not valid XML (no element found)."),
        ("<html/>", ": it has no line."),
    ],
)
def test_bad_files_are_refused_in_a_sentence(path: Path, content: str, problem: str) -> None:
    path.write_text(content)
    assert problem in refusal(path)


def test_text_of_another_encoding_is_a_sentence(path: Path) -> None:
    path.write_bytes(memory(unit(en="\xe9", de="b")).encode("latin-1"))
    assert refusal(path).startswith(f"{path}, line 4: not valid XML")


def test_markup_may_nest_to_any_depth(path: Path) -> None:
    path.write_text(memory(unit(en="<hi>" * 20_000 + "a" + "</hi>b" * 20_000, de="c")))
    assert load(path) == [("a" + "b" * 20_000, "c")]


def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    import tracemalloc

    with path.open("w") as file:
        file.write(HEAD)
        for number in range(10_000):
            file.write(unit(en=f"a {number}", fr="x" * 1000, de=f"b {number}"))
        file.write("</body></tmx>")
    pairs = read_tmx(path, ("en", "de"))
    next(pairs)
    tracemalloc.start()
    assert sum(1 for _ in pairs) == 9_999
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 3


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1)


@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), code=st.sampled_from(["en", "EN-us"]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], code: str
) -> None:
    path = tmp_path_factory.mktemp("round") / "trip.tmx"
    units = (
        f"<tu><tuv xml:lang={quoteattr(code)}><seg>{escape(source)}</seg></tuv>"
        f'<tuv xml:lang="de"><seg>{escape(target)}</seg></tuv></tu>'
        for source, target in pairs
    )
    path.write_text(memory(*units), encoding="utf-8")
    assert load(path) == pairs
