"""`nmt plot -o FILE.png|pdf|svg` as a user runs it: what of which sentences stands in the picture."""

import re
from pathlib import Path

import pytest

from nmt.bundle.folder import Bundle
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import bad, good, nmt
from tests.plotting.test_heatmap import diamonds, face, page_sizes, texts

SOURCE = ["the dog sees a cat", "", "a cat sleeps"]
TARGET = ["a cat sleeps", "", "the dog"]
GOLD = ["0-0 1p1 4-2", "", "0-0"]
WINDOW = {"kind": "local-p", "half_width": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, its translation and gold links; a model with a global and one with a local attention."""
    root = tmp_path_factory.mktemp("plotting")
    for name, lines in (("text.en", SOURCE), ("text.de", TARGET), ("gold", GOLD), ("line", GOLD[:1])):
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    for name, count in (("blank", 3), ("dogs", 26), ("many", 501)):
        (root / name).write_text(("a dog\n" if name != "blank" else " \n") * count)
    characters = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    words = Subwords.train(TEXT, kind="word", size=13, byte_fallback=False)
    Bundle.fresh(small_recipe(), words, words).save(root / "words")
    local = small_recipe(attention={"score": {"kind": "additive", "size": 8}, "window": WINDOW})
    Bundle.fresh(local, characters, characters).save(root / "local")
    return root


def draw(folder: Path, *arguments: object, name: str = "found.svg", model: str = "words") -> Path:
    """The picture that the command writes."""
    (folder / name).unlink(missing_ok=True)
    assert good(nmt("plot", model, *arguments, "-o", name, "-q", "--threads", "1", cwd=folder)).strip() == name
    return folder / name


def test_the_sentences_of_a_file_are_panels_of_one_figure_numbered_by_their_lines(folder: Path) -> None:
    found = texts(draw(folder, "-i", "text.en", "-r", "text.de", "--force"))
    assert [text for text in found if text.startswith("line")] == ["line 1", "line 3"]
    for sentence in (*SOURCE, *TARGET):
        assert set(sentence.split()) <= set(found)


def test_the_bar_says_whether_attention_or_the_posterior_is_drawn(folder: Path) -> None:
    plain, posterior = (texts(draw(folder, SOURCE[0], "--target", TARGET[0], *more)) for more in ([], ["--posterior"]))
    assert "attention weight" in plain
    assert "posterior weight" in posterior
    assert plain != posterior


def test_a_pdf_has_a_page_for_each_sentence_that_is_not_blank(folder: Path) -> None:
    both = page_sizes(draw(folder, "-i", "text.en", "-r", "text.de", "--force", name="all.pdf"))
    assert len(both) == 2
    [alone] = page_sizes(draw(folder, SOURCE[0], "--target", TARGET[0], name="one.pdf"))
    assert alone[0] == both[0][0]  # a page of its own measure
    assert alone[1] < both[0][1]  # with a title


@pytest.mark.slow
def test_a_pdf_may_have_more_pages_than_a_figure_has_matrices(folder: Path) -> None:
    assert len(page_sizes(draw(folder, "-i", "dogs", "-r", "dogs", "--force", name="all.pdf"))) == 26


def test_gold_links_of_several_sentences_are_outlined_and_counted(folder: Path) -> None:
    picture = draw(folder, "-i", "text.en", "-r", "text.de", "--gold", "gold")
    outlined = picture.read_text().count("stroke: #e8710a")
    assert outlined == 3 + 1 + 2  # and the legend
    titles = [text for text in texts(picture) if text.startswith("line")]
    assert [re.sub(r"[0-9.]+%", "%", title) for title in titles] == ["line 1 · AER %", "line 3 · AER %"]
    alone = draw(folder, SOURCE[0], "--target", TARGET[0], "--gold", "line")
    assert alone.read_text().count("stroke: #e8710a") == 3 + 2
    assert [text.removeprefix("line 1 · ") for text in titles[:1]] == [text for text in texts(alone) if "AER" in text]


def test_subwords_are_rows_and_columns_and_inherit_the_gold_links_of_their_words(folder: Path) -> None:
    picture = draw(folder, "a cat", "--target", "a dog", "--subwords", model="local")
    assert [text for text in texts(picture) if len(text) == 1] == [
        "▁",
        "a",
        "▁",
        "c",
        "a",
        "t",
        "▁",
        "a",
        "▁",
        "d",
        "o",
        "g",
    ]
    picture = draw(folder, SOURCE[0], "--target", TARGET[0], "--gold", "line", "--subwords", model="local")
    # the 2: ▁the, ▁dog, ▁cat with ▁a, ▁cat, ▁sleeps
    assert picture.read_text().count("stroke: #e8710a") == 4 * 2 + 4 * 4 + 4 * 7 + 2


def test_the_centers_of_a_local_window_are_drawn_between_words_and_between_subwords(folder: Path) -> None:
    given = [SOURCE[2], "--target", TARGET[2]]
    words, tokens = draw(folder, *given, model="local"), draw(folder, *given, "--subwords", model="local", name="b.svg")
    assert diamonds(words) == 2 + 1  # the rows, and the legend
    assert diamonds(tokens) == len("▁the▁dog") + 1
    assert diamonds(draw(folder, *given, model="words")) == 0


def test_words_are_set_in_the_font_that_is_given(folder: Path) -> None:
    assert (
        "'STIXGeneral', 'DejaVu Sans'"
        in draw(folder, "a dog", "--target", "a", "--font", face("STIXGeneral.ttf")).read_text()
    )


def test_a_translation_without_words_is_left_out_with_a_warning(folder: Path) -> None:
    (folder / "some.de").write_text("a dog\n\n \n")
    (folder / "some.en").write_text("a dog\nthe cat\na dog\n")
    ended = nmt("plot", "words", "-i", "some.en", "-r", "some.de", "--force", "-o", "some.pdf", cwd=folder)
    assert good(ended).strip() == "some.pdf"
    assert ended.stderr.decode().splitlines() == [
        "nmt: Line 2 is left out: its translation is empty.",
        "nmt: Line 3 is left out: its translation is empty.",
        "a dog",
    ]
    assert len(page_sizes(folder / "some.pdf")) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["-i", "blank", "-o", "a.png"], 1, "There is nothing to draw: all lines are blank"),
        (["-i", "-", "-o", "a.png"], 1, "There is no sentence to plot: the input is empty."),
        (["-i", "dogs", "-o", "a.png"], 1, "A figure holds at most 25 matrices, but there would be 26: write a .pdf"),
        (["a dog", "a cat", "--n-best", "13", "-o", "a.svg"], 1, "but there would be 26: write a .pdf"),
        (["a dog", "--n-best", "26", "-o", "a.pdf"], 1, "but there would be 26: choose fewer."),
        (["-i", "many", "-o", "a.pdf"], 1, "PDF holds at most 500 sentences, but there are 501: choose some"),
        (["a dog", "-o", "a.bmp"], 2, "a.bmp"),
        (
            ["a dog", "--compare", "local", "-o", "a.png"],
            2,
            "--compare is for pages: write to a name that ends with .html",
        ),
        (["a dog", "--rank", "2", "--n-best", "2", "-o", "a.png"], 2, "give only one"),
        (["a dog", "--rank", "3", "--beam-size", "2", "-o", "a.png"], 2, "n_best must be between 1 and beam_size"),
        (["a dog", "--target", "a", "--rank", "1", "-o", "a.png"], 2, "--rank choose from what the model finds"),
        (["-i", "text.en", "-r", "text.de", "--gold", "line", "-o", "a.pdf"], 1, "line has 1 line of links for"),
        (["a", "--target", "a", "--gold", "line", "-o", "a.png"], 1, "Gold links, line 1: the link 1-1 lies beyond"),
        (["a dog", "--target", "a", "--font", "text.en", "-o", "a.png"], 1, "text.en is not a font"),
        (["a dog", "--style", "sepia", "-o", "a.png"], 2, "sepia"),
    ],
)
def test_what_cannot_be_drawn(folder: Path, arguments: list[str], status: int, sentence: str) -> None:
    assert sentence in bad(nmt("plot", "words", *arguments, "-q", cwd=folder), status)
    assert not list(folder.glob("a.*"))
