"""Texts are cut into lines and put together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.serving.texts import split_html, split_lines


@pytest.mark.parametrize(
    ("text", "lines", "result"),
    [
        ("", [], ""),
        ("a b", ["a b"], "A B"),
        ("a\n\nb\r\nc\n", ["a", "b", "c"], "A\n\nB\r\nC\n"),
        ("\n  \n a ", [" a "], "\n\n A "),
        ("a\rb\u2028c", ["a\rb\u2028c"], "A\rB\u2028C"),
    ],
)
def test_line_ends_and_blank_lines_are_kept(text: str, lines: list[str], result: str) -> None:
    split = split_lines(text)
    assert split.lines == lines
    assert split.join([line.upper() for line in lines]) == result


@given(st.lists(st.sampled_from(["a", "b c", "\n", "\r\n", "", "x"])).map("".join))
def test_texts_of_lines_come_back(text: str) -> None:
    split = split_lines(text)
    assert split.join(split.lines) == text


@pytest.mark.parametrize(
    ("text", "lines", "result"),
    [
        ("<p>a <b>c</b>\n d</p>", ["a", "c", "d"], "<p>A <b>C</b>\n D</p>"),
        ("a &amp; b", ["a & b"], "A &amp; B"),
        (
            "<script>a</script>b<!-- c --><code>d <i>e</i></code>",
            ["b"],
            "<script>a</script>B<!-- c --><code>d <i>e</i></code>",
        ),
        ("1 < 2", ["1 < 2"], "1 &lt; 2"),
        ("<pre>never ends <b>x", [], "<pre>never ends <b>x"),
        ("<br/>a<pre/>b", ["a", "b"], "<br/>A<pre/>B"),
    ],
)
def test_tags_are_kept_and_text_is_escaped(text: str, lines: list[str], result: str) -> None:
    split = split_html(text)
    assert split.lines == lines
    assert split.join([line.upper() for line in lines]) == result


def test_a_translation_cannot_bring_in_a_tag() -> None:
    assert split_html("<p>a</p>").join(["<script>"]) == "<p>&lt;script&gt;</p>"


@given(
    st.lists(st.sampled_from(["a", "<", ">", "<b>", "</b>", "<!--", "-->", "<script>", "</script>", " ", "\n"])).map(
        "".join
    )
)
def test_any_markup_comes_back(text: str) -> None:
    split = split_html(text)
    assert "".join(split.parts) == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('a <span translate="no">b <span>c</span> d</span> e', ["a", "e"]),
        ("a <b class='x notranslate'>b</b> e", ["a", "e"]),
        ("a <i translate=no>b</i> e", ["a", "e"]),
        ('a <img translate="no"> e', ["a", "e"]),
        ('a <i translate="no"/> e', ["a", "e"]),
        ('a <b translate="no">b</blockquote> c <br/> d</b> e', ["a", "e"]),
        ('a <i translate="yes" title="translate=no">b</i> e', ["a", "b", "e"]),
    ],
)
def test_elements_that_are_not_to_be_translated_are_kept(text: str, lines: list[str]) -> None:
    split = split_html(text)
    assert split.lines == lines
    assert split.join(split.lines) == text
