"""Addresses, placeholders and tags are inline codes; text that only looks like them is text."""

import pytest

from nmt.text.inline import Code
from nmt.text.protection import protect
from tests.growth import assert_linear


def codes(text: str) -> list[str]:
    return [piece.text for piece in protect(text).pieces if isinstance(piece, Code)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "See https://x.org/a?b=1,2, www.x.org/A_(b) (http://y.org).",
            ["https://x.org/a?b=1,2", "www.x.org/A_(b)", "(http://y.org)"],
        ),
        ("Mail me@x-y.org. or mailto:a@b.c!", ["me@x-y.org", "mailto:a@b.c"]),
        ("a {0} b {name} c {} d {price:.2f} e {a!r}", ["{0}", "{name}", "{}", "{price:.2f}", "{a!r}"]),
        ("a {{x}} b {{{y}}} c ${z} d #{w} e {0,number,#.##}", ["{{x}}", "{{{y}}}", "${z}", "#{w}", "{0,number,#.##}"]),
        ("a {n, plural, one {# item} other {# items {x}}} b", ["{n, plural, one {# item} other {# items {x}}}"]),
        ("a %1$s b %s, c %d%% d %(n)d e %5.2f", ["%1$s", "%s", "%d", "%%", "%(n)d", "%5.2f"]),
        ("a %@ b %ld c %n d %dMB e %1, %2 f %L2", ["%@", "%ld", "%n", "%d", "%1", "%2", "%L2"]),
        ("a %name% b $name c", ["%name%", "$name"]),
        ('<b>a</b> <a href="x y">b</a><br/> <Link to=\'z\' />', ["<b>", "</b>", '<a href="x y">', "</a>", "<br/>", "<Link to='z' />"]),
        ('File "%s" (%d) {0}', ['"%s"', "(%d)", "{0}"]),
        ("{0}: not found", ["{0}:"]),
    ],
)  # fmt: skip
def test_what_is_protected(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "100 % sure, 50% off, 50%off, 100%sure, 5 %discount, %increase, 50% d'accord, 20 % des, 100%",
        "It costs $5 or US$20 ($US), %50 indirim, 5%5.",
        "1 < 2 and 3 > 2, a<b and c>d, <3, i <- j",
        "He said {this is natural} and [x], a@b, http://, e.g. and so on... a.b C:\\x",
    ],
)
def test_what_is_text(text: str) -> None:
    assert codes(text) == []
    assert protect(text).plain == text


def test_tags_are_pairs() -> None:
    text = protect("a <b>b</b> c<br/>")
    assert [piece.kind for piece in text.pieces if isinstance(piece, Code)] == ["open", "close", "mark"]


@pytest.mark.parametrize(
    "part", ["<a ", "<a b='", "{", "{a,", "{a:{", "{a,{b{c}", "%(", "%0", "a@", "a.", "http://", "(", "www."]
)
def test_text_of_any_kind_takes_linear_time(part: str) -> None:
    assert_linear(lambda size: protect(part * (size // len(part))), 100_000)
