"""Inline codes are taken out of a text and put back into its translation."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.inline import Code, InlineText, Piece
from nmt.text.unit_links import LinkedWords


def marked(text: str) -> InlineText:
    """A text with tags (`<b>`, `</b>`, `<br/>`), placeholders (`{0}`) and kept words (`[New York]`)."""
    return InlineText(map(_piece, filter(None, re.split(r"(</?\w+/?>|\{\w*\}|\[.*?\])", text))))


def _piece(text: str) -> Piece:
    if text.startswith("{"):
        return Code(text)
    if text.startswith("["):
        return Code(text, words=text[1:-1])
    if not text.startswith("<"):
        return text
    kind = "close" if text[1] == "/" else "mark" if text.endswith("/>") else "open"
    return Code(text, kind, text.strip("</>"))  # type: ignore[arg-type] # mypy widens the conditional expression


def written(pieces: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def restored(source: str, translation: str, links: str) -> str:
    text = marked(source)
    pairs = {(int(left), int(right)) for left, right in (link.split("-") for link in links.split())}
    return written(text.restore(translation, LinkedWords(text.plain.split(), translation.split(), pairs)))


GERMAN = "Der alte Lehrer öffnet heute das Fenster."
GERMAN_LINKS = "0-0 1-1 2-2 3-3 4-5 5-6 6-4"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("The <b>old</b> teacher opens the window today.", "Der <b>alte</b> Lehrer öffnet heute das Fenster."),
        ("The old teacher opens the window <b>today</b>.", "Der alte Lehrer öffnet <b>heute</b> das Fenster."),
        ("<b>The old</b> teacher opens the window today.", "<b>Der alte</b> Lehrer öffnet heute das Fenster."),
        ("<b>The old teacher opens the window today.</b>", "<b>Der alte Lehrer öffnet heute das Fenster.</b>"),
        (
            "<i>The <b>old</b> teacher</i> opens the window today.",
            "<i>Der <b>alte</b> Lehrer</i> öffnet heute das Fenster.",
        ),
        ("The old teacher opens {0} the window today.", "Der alte Lehrer öffnet heute {0} das Fenster."),
        ("The old teacher <br/>opens the window today.", "Der alte Lehrer <br/>öffnet heute das Fenster."),
        ("The old teacher<br/> opens the window today.", "Der alte Lehrer<br/> öffnet heute das Fenster."),
        ("The old teacher opens the window {0}today.", "Der alte Lehrer öffnet {0}heute das Fenster."),
        ("The old teacher opens the window today {0}.", "Der alte Lehrer öffnet heute {0} das Fenster."),
        ("<img/> The old teacher opens the window today. <img/>", f"<img/> {GERMAN} <img/>"),
        ("The <b>old {0}</b> teacher opens the window today.", "Der <b>alte {0}</b> Lehrer öffnet heute das Fenster."),
        (
            "The <b></b><i> {0}</i> old teacher opens the window today.",
            "Der <b></b><i> {0}</i> alte Lehrer öffnet heute das Fenster.",
        ),
        ("The old</b> teacher opens the <i>window today.", "Der alte</b> Lehrer öffnet heute das <i>Fenster."),
    ],
)
def test_codes_follow_their_words(source: str, expected: str) -> None:
    assert restored(source, GERMAN, GERMAN_LINKS) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("an <b>old</b>, wise man", "ein alter, weiser Mann", "0-0 1-1 2-2 3-3", "ein <b>alter</b>, weiser Mann"),
        ("an <b>old,</b> wise man", "ein alter, weiser Mann", "0-0 1-1 2-2 3-3", "ein <b>alter,</b> weiser Mann"),
        ("say “<b>no</b>”!", "sag „nein“!", "0-0 1-1", "sag „<b>nein</b>“!"),
        ("He <b>gives up</b> <i>it</i>", "Er gibt das auf", "0-0 1-1 2-3 3-2", "Er <b>gibt</b> <i>das</i> auf"),
        ("He <b>gives up</b> it", "Er gibt das auf", "0-0 1-1 2-3 3-2", "Er <b>gibt das auf</b>"),
        ("H<sub>2</sub>O boils", "H2O kocht", "0-0 1-1", "H<sub>2</sub>O kocht"),
        ("<b>un</b>fair game", "unfaires Spiel", "0-0 1-1", "<b>unfaires</b> Spiel"),
        ("{0} files found", "Es wurden Dateien gefunden", "1-3 0-2", "Es wurden {0} Dateien gefunden"),
        ("Hello, {0}!", "Hallo!", "0-0", "Hallo {0}!"),
        ("See {0}.", "Siehe.", "0-0", "Siehe {0}."),
        ("from {0}, a town", "aus einer Stadt", "0-0 1-1 2-2", "aus {0} einer Stadt"),
        ("a <b>x</b> c", "A C", "0-0 2-1", "A<b></b> C"),
        ("a <b>x</b> c", "A X C", "0-0 2-2", "A <b>X</b> C"),
        ("<b>It rains</b> now", "Es regnet jetzt", "1-1 2-2", "<b>Es regnet</b> jetzt"),
        ("<b>a</b> b", "", "", "<b></b>"),
        ("a <b>b</b> c d", "w x y z", "", "w <b>x</b> y z"),
    ],
)
def test_punctuation_order_and_missing_links(source: str, translation: str, links: str, expected: str) -> None:
    assert restored(source, translation, links) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("The [dog] runs.", "Der Hund rennt.", "0-0 1-1 2-2", "Der [dog] rennt."),
        ("The old [dog], runs", "Der alte Hund, rennt", "0-0 1-1 2-2 3-3", "Der alte [dog], rennt"),
        ("I [New York] like", "Ich mag das neue York", "0-0 1-3 2-4 3-1", "Ich mag das [New York]"),
        (
            "like [New York] now",
            "mag neues und schönes York jetzt",
            "0-0 1-1 2-4 3-5 0-2",
            "mag [New York] und schönes jetzt",
        ),
        ("like [New York] now", "mag neues schönes York jetzt", "0-0 1-1 2-3 3-4", "mag [New York] jetzt"),
        ("The [dog] runs", "Hund der Hund rennt", "0-1 1-0 1-2 2-3", "[dog] der rennt"),
        ("I like [Yahoo!] a lot", "Ich mag Yahoo! sehr", "0-0 1-1 2-2 3-3 4-3", "Ich mag [Yahoo!] sehr"),
        ("See [GitHub]'s page", "Siehe GitHub's Seite", "0-0 1-1 2-2", "Siehe [GitHub]'s Seite"),
        ("an [X]-based tool", "ein X-basiertes Werkzeug", "0-0 1-1 2-2", "ein [X]-basiertes Werkzeug"),
        ("the [X] page here", "die X-Seite hier", "0-0 1-1 2-1 3-2", "die [X]-Seite hier"),
        ("<b>old [dog]</b> runs", "rennt alter Hund", "0-1 1-2 2-0", "rennt <b>alter [dog]</b>"),
        ("<b>[dog]</b> runs <i>[on]</i>", "Hund rennt", "0-0 1-1 2-0", "<i>[on]</i> <b>[dog]</b> rennt"),
        ("a [b] [c]", "x y z", "0-0 1-1 2-1 2-2", "x [b] [c]"),
        ("{0}[dog] runs", "Hund rennt", "0-0 1-1", "{0}[dog] rennt"),
        ("The [dog] runs", "Es rennt", "0-0 2-1", "Es [dog] rennt"),
        ("The [a 1] [{}] runs", "Es ist nun so", "", "Es [a 1] [{}] so"),
        ("[dog]", "", "", "[dog]"),
    ],
)
def test_kept_words_take_the_place_of_those_linked_to_them(
    source: str, translation: str, links: str, expected: str
) -> None:
    assert restored(source, translation, links) == expected


def test_kept_words_are_read_but_are_nothing_to_translate() -> None:
    text = marked("[New York] [1] 2")
    assert (text.plain, text.has_letters) == ("New York  2", False)
    assert marked("[New York] a").has_letters


def test_any_character_may_be_in_a_translation_with_kept_words() -> None:
    text, translation = marked("a [b]"), "\U000f0000 \U000f0001"
    words = LinkedWords(["a", "b"], translation.split(), {(0, 0), (1, 1)})
    assert written(text.restore(translation, words)) == "\U000f0000 [b]"


def test_characters_may_be_words() -> None:
    text = marked("<b>赤い</b>花 {0}")
    words = LinkedWords(["赤い", "花"], ["red", "flower"], {(0, 0), (1, 1)})
    assert written(text.restore("red flower", words)) == "<b>red</b> flower {0}"
    text = marked("a <b>red</b> flower")
    words = LinkedWords(["a", "red", "flower"], ["赤い", "花"], {(1, 0), (2, 1)})
    assert written(text.restore("赤い花", words)) == "<b>赤い</b>花"


def test_words_that_the_model_spells_otherwise_are_found_by_their_number() -> None:
    text = marked("ﬁne <b>DAY</b>")
    words = LinkedWords(["fine", "day"], ["schöner", "tag"], {(0, 0), (1, 1)})
    assert written(text.restore("Schöner Tag", words)) == "Schöner <b>Tag</b>"


def test_what_a_model_reads_has_no_space_where_a_word_was_taken_out_before_punctuation() -> None:
    assert marked("See <i>{0}</i>, please ({1} here).").plain == "See, please (here)."
    assert marked("Text <br/>.").plain == "Text ."


def test_tags_that_cross_and_tags_at_any_depth_come_back() -> None:
    assert restored("<b>a <i>b</b> c</i>", "A B C", "0-0 1-1 2-2") == "<b>A <i>B</b> C</i>"
    deep = "<b>" * 3000 + "a b" + "</b>" * 3000
    assert sorted(re.findall("<.*?>", restored(deep, "A B", "0-0 1-1"))) == sorted(re.findall("<.*?>", deep))


WORDS = st.sampled_from(["a", "bc", "d,", "“e”", "f.g", "(h", "i)", "!", "2"])


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """A text with well nested tags around words or parts of them, and with other codes, attached or not."""
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 4))
        if kind == 0 and depth:
            content = draw(WORDS) + draw(st.sampled_from([" ", ""])) + draw(texts(depth - 1)) + draw(WORDS)
            parts.append(f"<t{depth}>{content}</t{depth}>")
        else:
            codes = ["{0}", "{1}", "<br/>", "[a]", "[bc d,]", "[“e” (h]", "[2]"]
            parts.append(draw(st.sampled_from(codes)) if kind == 1 else draw(WORDS))
        parts.append(draw(st.sampled_from([" ", " ", ""])))
    return "".join(parts).strip()


LINKS = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12)


@given(texts())
def test_the_words_themselves_as_translation_give_the_text_back(source: str) -> None:
    text = marked(source)
    words = text.plain.split()
    translation = " ".join(words)
    links = {(number, number) for number in range(len(words))}
    assert written(text.restore(translation, LinkedWords(words, words, links))).split() == source.split()


@given(texts(), st.lists(WORDS, max_size=8).map(" ".join), LINKS)
def test_whatever_the_links_each_code_comes_back_once_and_tags_are_nested(
    source: str, translation: str, links: set[tuple[int, int]]
) -> None:
    text = marked(source)
    pieces = text.restore(translation, LinkedWords(text.plain.split(), translation.split(), links))
    codes = [piece for piece in pieces if isinstance(piece, Code)]
    assert sorted(map(id, codes)) == sorted(id(piece) for piece in text.pieces if isinstance(piece, Code))
    rest, letters = "".join(piece for piece in pieces if isinstance(piece, str)).split(), iter(translation)
    assert all(letter in letters for letter in "".join(rest))
    if not any(code.words for code in codes):
        assert "".join(rest) == "".join(translation.split())
    path: list[str] = []
    for code in codes:
        if code.kind == "open":
            path.append(code.name)
        elif code.kind == "close":
            assert path.pop() == code.name
    assert not path


@given(st.lists(st.sampled_from(["{}", "[{}]", "<b>{}</b>"]), min_size=1, max_size=6), st.integers(0, 6), LINKS)
def test_whatever_the_links_words_linked_to_kept_words_go_and_words_linked_to_others_stay(
    forms: list[str], length: int, links: set[tuple[int, int]]
) -> None:
    text = marked(" ".join(form.format(f"s{number}") for number, form in enumerate(forms)))
    target = [f"t{number}" for number in range(length)]
    links = {(left, right) for left, right in links if left < len(forms) and right < length}
    pieces = text.restore(" ".join(target), LinkedWords(text.plain.split(), target, links))
    rest = "".join(piece for piece in pieces if isinstance(piece, str)).split()
    replaced = {f"t{right}" for left, right in links if forms[left] == "[{}]"}
    others = {f"t{right}" for _, right in links} - replaced
    assert replaced.isdisjoint(rest)
    assert others <= set(rest)
    assert rest == sorted(set(rest), key=target.index)


@given(
    st.lists(st.sampled_from(["<b>", "</b>", "<i>", "</i>", "{0}", "<br/>", "[c]", "a", "b.", " "])).map("".join), LINKS
)
def test_broken_markup_loses_nothing(source: str, links: set[tuple[int, int]]) -> None:
    text = marked(source)
    pieces = text.restore("x y z", LinkedWords(text.plain.split(), ["x", "y", "z"], links))
    assert sorted(map(id, (piece for piece in pieces if isinstance(piece, Code)))) == sorted(
        id(piece) for piece in text.pieces if isinstance(piece, Code)
    )
