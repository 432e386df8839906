"""`nmt plot -o FILE.png|pdf|svg` as a user runs it: what of which sentences stands in the picture."""

import re
from pathlib import Path

from tests.cli.conftest import SOURCE, TARGET
from tests.commands import good, nmt
from tests.plotting.test_heatmap import face, page_sizes, texts

BOTH = ["-s", "text.en", "-t", "text.de"]
GOLD = "stroke: #e8710a"


def draw(folder: Path, output: Path, *arguments: object, model: str = "words-en-de") -> Path:
    """The picture that the command writes."""
    ended = nmt("plot", model, *arguments, "-o", output, "-q", "--threads", "1", cwd=folder)
    assert good(ended).strip() == str(output)
    return output


def test_the_sentences_of_a_file_are_panels_numbered_by_their_lines(untrained: Path, tmp_path: Path) -> None:
    found = texts(draw(untrained, tmp_path / "a.svg", *BOTH))
    assert [text for text in found if text.startswith("line")] == ["line 1", "line 3"]
    for sentence in (SOURCE[0], SOURCE[2], TARGET[0], TARGET[2]):
        assert set(sentence.split()) <= set(found)


def test_the_bar_says_whether_attention_or_the_posterior_is_drawn(untrained: Path, tmp_path: Path) -> None:
    given = [SOURCE[0], "--translation", TARGET[0]]
    plain, posterior = (texts(draw(untrained, tmp_path / "a.svg", *given, *more)) for more in ([], ["--posterior"]))
    assert "attention weight" in plain
    assert "posterior weight" in posterior
    assert plain != posterior


def test_a_pdf_has_a_page_for_each_sentence_that_is_not_blank(untrained: Path, tmp_path: Path) -> None:
    both = page_sizes(draw(untrained, tmp_path / "all.pdf", *BOTH))
    assert len(both) == 2
    [alone] = page_sizes(draw(untrained, tmp_path / "one.pdf", SOURCE[0], "--translation", TARGET[0]))
    assert alone[0] == both[0][0]  # a page of its own measure
    assert alone[1] < both[0][1]  # with a title


def test_gold_links_of_several_sentences_are_outlined_and_counted(untrained: Path, tmp_path: Path) -> None:
    picture = draw(untrained, tmp_path / "a.svg", *BOTH, "--gold", "gold")
    assert picture.read_text().count(GOLD) == 3 + 1 + 2  # and the legend
    titles = [text for text in texts(picture) if text.startswith("line")]
    assert [re.sub(r"[0-9.]+%", "%", title) for title in titles] == ["line 1 · AER %", "line 3 · AER %"]
    alone = draw(untrained, tmp_path / "b.svg", SOURCE[0], "--translation", TARGET[0], "--gold", "line.gold")
    assert [text.removeprefix("line 1 · ") for text in titles[:1]] == [text for text in texts(alone) if "AER" in text]


def test_rows_and_columns_may_be_subwords(untrained: Path, tmp_path: Path) -> None:
    picture = draw(untrained, tmp_path / "a.svg", "a cat", "--translation", "a dog", "--subwords", model="en-de")
    assert "".join(text for text in texts(picture) if len(text) == 1) == "▁a▁cat▁a▁dog"


def test_words_are_set_in_the_font_that_is_given(untrained: Path, tmp_path: Path) -> None:
    font = ["--font", face("STIXGeneral.ttf")]
    picture = draw(untrained, tmp_path / "a.svg", "a dog", "--translation", "a", *font)
    assert "'STIXGeneral', 'DejaVu Sans'" in picture.read_text()


def test_a_translation_without_words_is_left_out_with_a_warning(untrained: Path, tmp_path: Path) -> None:
    (tmp_path / "some.de").write_text("a dog\n\n \n")
    (tmp_path / "some.en").write_text("a dog\nthe cat\na dog\n")
    files = ["-s", "some.en", "-t", "some.de", "-o", "some.pdf"]
    ended = nmt("plot", untrained / "words-en-de", *files, cwd=tmp_path)
    assert good(ended).strip() == "some.pdf"
    left_out = [f"nmt: Line {line} is left out: its translation is empty." for line in (2, 3)]
    assert ended.stderr.decode().splitlines() == [*left_out, "a dog"]
    assert len(page_sizes(tmp_path / "some.pdf")) == 1


def test_several_sentences_are_drawn_with_how_good_their_translations_are(model: Path, tmp_path: Path) -> None:
    (tmp_path / "some.en").write_text("dog sees the old\n\nthe dog\n")
    (tmp_path / "some.de").write_text("Hund sieht der alte\n\nnichts davon\n")
    drawn = texts(draw(tmp_path, tmp_path / "a.svg", "-s", "some.en", "-r", "some.de", model=str(model)))
    assert [text for text in drawn if text.startswith("line")] == ["line 1 · BLEU 100.0", "line 3 · BLEU 0.0"]
