"""Texts are cut into lines and put together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.serving.texts import SplitText, split_html, split_lines
from tests.growth import assert_linear
from tests.serving.fakes import in_reverse


def shouted(split: SplitText) -> str:
    """The text with its lines in capitals, words in reverse."""
    translations = (
        [piece.upper() if isinstance(piece, str) else piece for piece in in_reverse(line)] for line in split.lines
    )
    return split.join([split.write(pieces) for pieces in translations])


def unchanged(split: SplitText) -> str:
    return split.join([split.write(line.pieces) for line in split.lines])


@pytest.mark.parametrize(
    ("text", "lines", "result"),
    [
        ("", [], ""),
        ("a b", ["a b"], "B A"),
        ("a\n\nb\r\nc\n", ["a", "b", "c"], "A\n\nB\r\nC\n"),
        ("\n  \nb a", ["b a"], "\n  \nA B"),
        ("a {0} b\nhttps://c.d e", ["a  b", " e"], "{0} B A\nhttps://c.d E"),
        ("a <b>b</b> c", ["a b c"], "C <b>B</b> A"),
        ("{0}\na", ["", "a"], "{0}\nA"),
    ],
)
def test_line_ends_and_blank_lines_are_kept(text: str, lines: list[str], result: str) -> None:
    split = split_lines(text)
    assert [line.plain for line in split.lines] == lines
    assert shouted(split) == result


def test_protection_may_be_off() -> None:
    assert [line.plain for line in split_lines("a {0} <b>", protects=False).lines] == ["a {0} <b>"]
    assert [line.plain for line in split_html("a {0} <b>c</b>", protects=False).lines] == ["a {0} c"]


@given(st.lists(st.sampled_from(["a", "b c", "\n", "\r\n", "", "x", "{0}"])).map("".join))
def test_texts_of_lines_come_back(text: str) -> None:
    assert unchanged(split_lines(text)) == text


@pytest.mark.parametrize(
    ("text", "lines", "result"),
    [
        ("<p>a <b>c</b>\n d</p>", ["a c d"], "<p>D <b>C</b> A</p>"),
        ("<p>a</p>\n<p>b</p> c", ["a", "b", "c"], "<p>A</p>\n<p>B</p> C"),
        ("a<br>b <br/> c", ["a", "b", "c"], "A<br>B <br/> C"),
        ("<ul><li>a b<li>c</ul>", ["a b", "c"], "<ul><li>B A<li>C</ul>"),
        ("<TD>a <A HREF='x?a>b'>c</A></TD>", ["a c"], "<TD><A HREF='x?a>b'>C</A> A</TD>"),
        ("a <a href=http://x.org/>b</a> c", ["a b c"], "C <a href=http://x.org/>B</a> A"),
        ("a <img src=x> b", ["a  b"], "<img src=x> B A"),
        ("<p><b> </b><i></i></p>", [], "<p><b> </b><i></i></p>"),
        ("a &amp; b", ["a & b"], "B &amp; A"),
        ("a &lt;b&gt;c&lt;/b&gt; {0}", ["a c "], "&lt;b&gt;C&lt;/b&gt; {0} A"),
        ("b<!-- c --><code>d <i>e</i></code> f", ["b f"], "F B<!-- c --><code>d <i>e</i></code>"),
        ("<script>a<p>b</script>c <style>d<</style>e", ["c e"], "<script>a<p>b</script> <style>d<</style>E C"),
        ("<title>a <b>c</title>d", ["a c", "d"], "<title>&lt;b&gt;C A</title>D"),
        ("1 < 2 b", ["1 < 2 b"], "B 2 &lt; 1"),
        ("<pre>never ends <b>x", [], "<pre>never ends <b>x"),
        ("<br/>a<pre/>b", ["a", "b"], "<br/>A<pre/>B"),
        ("a <b", ["a"], "A <b"),
        ("a</i> b<p>c <b>d</p>", ["a b", "c d"], "B A</i><p><b>D C</p>"),
    ],
)
def test_tags_are_kept_and_text_is_escaped(text: str, lines: list[str], result: str) -> None:
    split = split_html(text)
    assert [line.plain.strip() for line in split.lines] == [line.strip() for line in lines]
    assert shouted(split) == result


def test_a_translation_cannot_bring_in_a_tag() -> None:
    split = split_html("<p>a <b>c</b></p>")
    [line] = split.lines
    assert split.join([split.write(line.restore("<script> x"))]) == "<p>&lt;script&gt; <b>x</b></p>"


MARKUP = "a < > <b> </b> <p> </p> <!-- --> <script> </script> </i>".split()


@given(st.lists(st.sampled_from([*MARKUP, " ", "<i translate=no>", "<i translate=yes>"])).map("".join))
def test_any_markup_comes_back(text: str) -> None:
    same = unchanged(split_html(text)).replace("&lt;", "<").replace("&gt;", ">")
    assert same.split() == text.split()


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ('<span translate="no">b <span>c</span> d</span>', "b c d"),
        ("<b class='x notranslate'> b&amp;c </b>", "b&c"),
        ("<i Translate = NO>b</i>", "b"),
        ('<b translate="no">see https://b.c</b>', "see"),
        ('<b translate="no">b</blockquote> c <br/> d</b>', ""),
        ('<b translate="no">b <script>c</script></b>', ""),
        ('<b translate="no">1.2</b>', ""),
        ("<code>b</code>", ""),
    ],
)
def test_elements_that_are_not_to_be_translated_are_kept_and_the_model_reads_their_words(kept: str, words: str) -> None:
    split = split_html(f"a {kept} f")
    assert [line.plain.split() for line in split.lines] == [["a", *words.split(), "f"]]
    assert shouted(split) == (f"F {kept} A" if words else f"{kept} F A")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('<b translate="no">x <i translate="yes">b c</i> y</b>', '<b translate="no">y <i translate="yes">C B</i> x</b>'),
        ('a <b class=notranslate>x&amp; <u>y <i translate>b</i></u></b>', '<b class=notranslate><u><i translate>B</i> y</u> x&amp;</b> A'),
        ('<div translate=no>x<p translate>a <u>z</u></p></div>', '<div translate=no>x<p translate><u>Z</u> A</p></div>'),
        ('<p translate=no>x</p><p translate>a <u translate=no>z</u>', '<p translate=no>x</p><p translate><u translate=no>z</u> A'),
        ('<code>x = <i translate="yes">a b</i></code>', '<code><i translate="yes">B A</i> x =</code>'),
        ('<code translate="yes">a b</code>', '<code translate="yes">B A</code>'),
        ('<script translate="yes">a b</script>', '<script translate="yes">a b</script>'),
        ('<b translate=no>x <i>y</b> <i translate=yes>a', '<i translate=yes>A <b translate=no>x <i>y</b>'),
        ('<b translate=no>x <u><i translate=yes>a</u> y</b>', '<b translate=no>y <u><i translate=yes>A</u> x</b>'),
    ],
)  # fmt: skip
def test_what_is_to_be_translated_inside_what_is_not_is(text: str, result: str) -> None:
    assert shouted(split_html(text)) == result


@pytest.mark.parametrize("text", ['<p><b translate="no">a b</b> 2</p>', '<p><b translate="no">a b</b></p>'])
def test_a_text_of_kept_words_alone_is_not_translated(text: str) -> None:
    assert not any(line.has_letters for line in split_html(text).lines)


def test_only_the_attributes_translate_and_class_say_so() -> None:
    [line] = split_html('a <i translate="yes" title="translate=no" class=no>b</i> e').lines
    assert line.plain == "a b e"


TAGS = ["<a ", "<", '<a ="', "<a ='=\"", "<i translate=no>", "<i translate=no>x</i> y ", "<b>x", "<b>x</b>"]


@pytest.mark.parametrize("part", [*TAGS, "<!--", "<script>", "</b>", "&"])
def test_markup_of_any_kind_takes_linear_time(part: str) -> None:
    def translate(size: int) -> None:
        for line in split_html(part * (size // len(part))).lines:
            line.restore("x y")

    assert_linear(translate, 15_000)
