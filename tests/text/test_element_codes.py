"""Inline elements of XLIFF and TMX are put back into translations."""

import re
from xml.etree.ElementTree import fromstring, tostring

import pytest

from nmt.text.element_codes import read_codes, write_codes
from nmt.text.unit_links import LinkedWords

PRE = '<ph id="7">&lt;img alt="<sub>dog</sub>"/&gt;</ph>'


def reversed_words(content: str) -> str:
    """The content of a segment whose translation has the words in reverse."""
    element = fromstring(f'<seg xmlns:x="u" a="1">{content}</seg>')
    text = read_codes(element)
    words = text.plain.split()
    links = {(number, len(words) - 1 - number) for number in range(len(words))}
    write_codes(element, text.restore(" ".join(reversed(words)), LinkedWords(words, words[::-1], links)))
    assert element.get("a") == "1"
    return tostring(element, "unicode").partition(">")[2].removesuffix("</seg>")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a b", "b a"),
        ('a <g id="1">b c</g> d', 'd <g id="1">c b</g> a'),
        ('a <pc id="1">b <ph id="2" /></pc>', '<pc id="1">b <ph id="2" /></pc> a'),
        ('a <bpt i="1">&lt;b&gt;</bpt>b<ept i="1">&lt;/b&gt;</ept> c d', 'd c <bpt i="1">&lt;b&gt;</bpt>b<ept i="1">&lt;/b&gt;</ept> a'),
        ('<bx id="1" rid="5" />a b<ex id="2" rid="5" /> c', 'c <bx id="1" rid="5" />b a<ex id="2" rid="5" />'),
        ('<sc id="1" />a b<ec startRef="1" /> c', 'c <sc id="1" />b a<ec startRef="1" />'),
        ('a <mrk mtype="term">b</mrk> c d', 'd c <mrk mtype="term">b</mrk> a'),
        ('a <mrk mtype="protected">X Y</mrk> c d', 'd c <mrk mtype="protected">X Y</mrk> a'),
        ('<x id="1" ctype="lb" />a b', '<x id="1" ctype="lb" />b a'),
        (f"a{PRE} b", f"b a{PRE}"),
        ('a <it pos="begin">i</it>b c', 'c <it pos="begin">i</it>b a'),
    ],
)  # fmt: skip
def test_elements_follow_their_words(content: str, expected: str) -> None:
    assert reversed_words(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<no>X <yes>b c</yes> Y</no> d", "d <no>Y <yes>c b</yes> X</no>"),
        ('<no>X <yes>b<ph id="1" /> c</yes></no>', '<no><yes>c b<ph id="1" /></yes> X</no>'),
        ('<no>X <g id="1">Y <yes>b</yes></g></no>', '<no><g id="1"><yes>b</yes> Y</g> X</no>'),
        ("a <no>X <yes>b <no>Y</no> c</yes></no>", "<no><yes>c <no>Y</no> b</yes> X</no> a"),
    ],
)
def test_the_nearest_element_that_says_so_decides_what_is_translated(content: str, expected: str) -> None:
    marks = (
        re.sub("<(/?)(no|yes)>", lambda tag: "</mrk>" if tag[1] else f'<mrk translate="{tag[2]}">', text)
        for text in (content, expected)
    )
    assert reversed_words(next(marks)) == next(marks)
    text = read_codes(fromstring("<seg>a <mrk>b</mrk> <mrk translate='yes'>c</mrk></seg>"), is_kept=True)
    assert [piece for piece in text.pieces if isinstance(piece, str) and piece.strip()] == ["c"]


@pytest.mark.parametrize(
    "content",
    [
        '<bpt i="1" /> a <g id="1">b <ept i="1" /></g> c',
        '<g id="1">a <bpt i="1" /></g> b <ept i="1" /> c',
        '<bpt i="1" />a <bpt i="2" />b <ept i="1" />c <ept i="2" />',
        '<g id="1">' * 80 + "a b" + "</g>" * 80,
    ],
)
def test_elements_that_cross_or_are_deep_are_all_there_and_valid(content: str) -> None:
    before, after = (fromstring(f"<seg>{each}</seg>") for each in (content, reversed_words(content)))
    assert sorted(element.tag for element in after.iter()) == sorted(element.tag for element in before.iter())
    assert sorted("".join(after.itertext()).split()) == sorted("".join(before.itertext()).split())


def test_namespaces_and_what_a_model_reads() -> None:
    element = fromstring('<source xmlns="urn:x">Read <ph id="1">code</ph>, <g id="2">please</g>.</source>')
    text = read_codes(element)
    assert text.plain == "Read, please."
    write_codes(
        element, text.restore("Lies bitte.", LinkedWords(["Read,", "please."], ["Lies", "bitte."], {(0, 0), (1, 1)}))
    )
    expected = '<n:source xmlns:n="urn:x">Lies <n:ph id="1">code</n:ph> <n:g id="2">bitte</n:g>.</n:source>'
    assert tostring(element, "unicode").replace("ns0", "n") == expected
