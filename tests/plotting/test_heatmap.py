"""Heatmaps, judged by the files they leave: pixels of PNG, text of SVG, bytes of all three formats."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image

from nmt.errors import DataError, UsageError
from nmt.evaluation.alignment import Alignment, GoldLinks
from nmt.plotting import fonts
from nmt.plotting.heatmap import plot_alignment
from nmt.plotting.layout import Layout, Panel, cell_side, line_height
from nmt.plotting.style import house_style

SOURCE = ("Ein", "Hund", "läuft", "über", "Gras")
TARGET = ("A", "dog", "runs", "on", "grass", ".")
COMPOUND = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz"
GOLD = GoldLinks(frozenset({(0, 0), (1, 1)}), frozenset({(3, 3)}))


def random_alignment(source: tuple[str, ...] = SOURCE, target: tuple[str, ...] = TARGET) -> Alignment:
    weights = np.random.default_rng(1).random((len(target), len(source))) ** 6
    return Alignment(weights / weights.sum(axis=1, keepdims=True), source, target)


def pixels(path: Path) -> np.ndarray:
    """[height, width, 3] of a PNG, 0 to 255."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def texts(path: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def orange(picture: np.ndarray) -> int:
    red, green, blue = picture[..., 0], picture[..., 1], picture[..., 2]
    return int(((red > 200) & (green < 150) & (blue < 60)).sum())


# --- what is drawn ----------------------------------------------------------------------------------------------


def test_rows_are_target_words_from_above_and_columns_source_words_from_the_left(tmp_path: Path) -> None:
    plot_alignment(Alignment(np.array([[0.0, 0, 1], [1, 0, 0]]), ("x", "y", "z"), ("p", "q")), tmp_path / "a.png")
    picture = pixels(tmp_path / "a.png")
    picture = picture[:, : picture.shape[1] * 2 // 3]  # without the colour bar
    down, right = np.nonzero((abs(picture - [8, 38, 79]).sum(axis=-1)) < 12)
    upper = down < (down.min() + down.max()) / 2
    assert right[upper].min() > right[~upper].max() + 50  # a column lies between them
    for part in (upper, ~upper):  # each a square
        assert np.ptp(down[part]) == pytest.approx(np.ptp(right[part]), abs=2)
        assert part.sum() > 0.8 * np.ptp(down[part]) ** 2


def test_all_words_stand_in_the_svg_as_text_and_never_as_formulas(tmp_path: Path) -> None:
    odd = ("$x_1$", "a<b&c", "Übergröße", "100%", "\\frac")
    plot_alignment(random_alignment(odd), tmp_path / "a.svg", title="It costs $5 and $6")
    found = texts(tmp_path / "a.svg")
    assert {*odd, *TARGET, "It costs $5 and $6", "attention weight"} <= set(found)


def test_control_characters_neither_break_the_file_nor_the_drawing(tmp_path: Path) -> None:
    plot_alignment(random_alignment(("a\x00b", "\x1b[0m", "\ud800", "", "x" * 5000)), tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    assert {"a\ufffdb", "\ufffd[0m"} <= set(found)
    assert max(map(len, found)) == 100
    plot_alignment(random_alignment(("a\x00b", "\x1b[0m", "\ud800", "", "x")), tmp_path / "a.png")


def test_only_small_matrices_carry_their_weights(tmp_path: Path) -> None:
    for words, shown in ((12, True), (13, False)):
        weights = np.full((words, words), 0.001)
        weights[0, 0] = 0.37
        plot_alignment(Alignment(weights, ("a",) * words, ("b",) * words), tmp_path / "a.svg")
        found = texts(tmp_path / "a.svg")
        assert ("0.37" in found) is shown
        assert found.count("0.00") == 1  # on the colour bar alone


def test_gold_links_are_outlined_and_only_possible_ones_dashed(tmp_path: Path) -> None:
    plot_alignment(random_alignment(), tmp_path / "plain.png")
    plot_alignment(random_alignment(), tmp_path / "gold.png", gold=GOLD)
    assert orange(pixels(tmp_path / "plain.png")) == 0
    assert orange(pixels(tmp_path / "gold.png")) > 500
    plot_alignment(random_alignment(), tmp_path / "gold.svg", gold=GOLD)
    drawing = (tmp_path / "gold.svg").read_text()
    assert drawing.count("stroke: #e8710a") == 3 + 2  # and the legend
    assert drawing.count("stroke-dasharray: 4") == 1 + 1
    assert {"sure link", "possible link"} <= set(texts(tmp_path / "gold.svg"))
    plot_alignment(random_alignment(), tmp_path / "set.svg", gold={(0, 0)})
    assert "stroke: #e8710a" in (tmp_path / "set.svg").read_text()


def test_grey_is_grey_and_runs_from_black_to_white(tmp_path: Path) -> None:
    gold = GoldLinks(frozenset({(0, 0)}), frozenset({(2, 1)}))
    plot_alignment(Alignment(np.eye(3), tuple("abc"), tuple("def")), tmp_path / "a.png", style="grey", gold=gold)
    picture = pixels(tmp_path / "a.png")
    assert (np.ptp(picture, axis=-1) == 0).all()
    assert (picture == 0).all(axis=-1).sum() > 6 * 60 * 60  # six cells of at least 60 pixels at 150 dpi


def test_several_panels_share_a_figure(tmp_path: Path) -> None:
    items = [random_alignment(), random_alignment(SOURCE[:2], TARGET[:1]), random_alignment(("only",), ("one",))]
    plot_alignment(items, tmp_path / "a.svg", title=["(a)", "(b)", "(c)"], gold=[None, {(1, 0)}])
    found = texts(tmp_path / "a.svg")
    assert {"(a)", "(b)", "(c)", "only", "one"} <= set(found)
    assert found.count("A") == 2
    assert found.count("attention weight") == 1
    with pytest.raises(ValueError, match="4 titles"):
        plot_alignment(items, tmp_path / "a.svg", title=["1", "2", "3", "4"])


# --- legible at every size --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (("a",), ("b",)),
        (SOURCE, TARGET),
        ((COMPOUND, "ist", COMPOUND), ("a", COMPOUND)),
        (SOURCE * 8, TARGET * 7),
        (SOURCE * 12, TARGET * 10),
        (SOURCE * 30, TARGET[:2]),
    ],
)
def test_nothing_is_cut_off_at_the_edge(tmp_path: Path, source: tuple[str, ...], target: tuple[str, ...]) -> None:
    title = "A title that is a good deal longer than the matrix is wide " * 2
    plot_alignment(random_alignment(source, target), tmp_path / "a.png", title=title, gold={(0, 0)}, dpi=72)
    picture = pixels(tmp_path / "a.png")
    frame = np.concatenate(
        [picture[:4], picture[-4:], picture[:, :4].swapaxes(0, 1), picture[:, -4:].swapaxes(0, 1)], 1
    )
    assert (frame == 255).all()
    assert (picture < 128).any(axis=-1).sum() > 100  # and yet there is ink


@pytest.mark.parametrize("words", [1, 3, 12, 20, 21, 40, 60, 100, 300])
def test_lines_of_words_keep_their_distance(words: int) -> None:
    alignment = Alignment(np.zeros((words, words)), ("Nähe",) * words, ("Ähre",) * words)
    cell = cell_side([alignment])
    panel = Panel.measure(alignment, "", cell, [fonts.BASE])
    assert line_height(panel.font_size) <= cell * (np.sqrt(0.5) if panel.slant else 1)
    assert panel.font_size >= (9 if words <= 60 else 2)


def test_the_figure_grows_with_the_words_to_a_limit(tmp_path: Path) -> None:
    sizes = []
    for words in (3, 20, 40, 60, 400):
        item = Alignment(np.zeros((words, words)), ("a",) * words, ("b",) * words)
        sizes.append(Layout.arrange([Panel.measure(item, "", cell_side([item]), [fonts.BASE])], legend=False).width)
    assert sizes == sorted(sizes)
    assert 15 < sizes[3] < 20
    assert sizes[4] < 30


def test_the_resolution_is_what_was_asked_for(tmp_path: Path) -> None:
    for dpi in (50, 100):
        plot_alignment(random_alignment(), tmp_path / f"{dpi}.png", dpi=dpi)
    small, large = (pixels(tmp_path / f"{dpi}.png").shape for dpi in (50, 100))
    assert large[0] == pytest.approx(2 * small[0], abs=2)
    assert large[1] == pytest.approx(2 * small[1], abs=2)


# --- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_same_input_gives_the_same_bytes_whatever_the_users_settings(tmp_path: Path, suffix: str) -> None:
    plot_alignment(random_alignment(), tmp_path / f"1.{suffix}", gold=GOLD)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path", "savefig.dpi": 20}):
        before = dict(matplotlib.rcParams)
        plot_alignment(random_alignment(), tmp_path / f"2.{suffix}", gold=GOLD)
        assert dict(matplotlib.rcParams) == before
    first, second = ((tmp_path / f"{n}.{suffix}").read_bytes() for n in (1, 2))
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix])
    assert b"CreationDate" not in first
    assert b"dc:date" not in first


def test_neither_pyplot_nor_a_display_is_touched(tmp_path: Path) -> None:
    program = (
        "import sys, numpy, pathlib\n"
        "from nmt.evaluation.alignment import Alignment\n"
        "from nmt.plotting.heatmap import plot_alignment\n"
        "plot_alignment(Alignment(numpy.eye(2), ('a', 'b'), ('c', 'd')), pathlib.Path(sys.argv[1]))\n"
        "assert not {'matplotlib.pyplot', 'torch', 'tkinter'} & set(sys.modules)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"} | {"MPLBACKEND": "tkagg"}
    command = [sys.executable, "-W", "error", "-c", program, str(tmp_path / "a.PNG")]
    subprocess.run(command, check=True, env=environment)
    assert pixels(tmp_path / "a.PNG").size


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.png.gz", ".png"])
def test_an_unknown_suffix_names_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.png, \.pdf, \.svg"):
        plot_alignment(random_alignment(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_impossible_requests_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to draw"):
        plot_alignment(Alignment(np.zeros((0, 2)), ("a", "b"), ()), tmp_path / "a.png")
    with pytest.raises(DataError, match="nothing to draw"):
        plot_alignment([], tmp_path / "a.png")
    with pytest.raises(DataError, match=r"5-1 lies outside .* 5 source and 6 target"):
        plot_alignment(random_alignment(), tmp_path / "a.png", gold={(5, 1)})
    with pytest.raises(DataError, match="Cannot write"):
        plot_alignment(random_alignment(), tmp_path / "no" / "folder.png")
    with pytest.raises(UsageError, match="100000"):
        plot_alignment(random_alignment(), tmp_path / "a.png", dpi=100000)
    with pytest.raises(UsageError, match="'sepia'"):
        plot_alignment(random_alignment(), tmp_path / "a.png", style="sepia")  # type: ignore[arg-type]


# --- fonts ------------------------------------------------------------------------------------------------------


def test_missing_glyphs_are_named_once_and_only_where_they_are_drawn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "_candidates", list)
    alignment = random_alignment(("彼", "は", "は", "読む", "。"))
    plot_alignment(alignment, tmp_path / "a.svg")
    assert not caplog.records
    assert "読む" in texts(tmp_path / "a.svg")
    with caplog.at_level(logging.WARNING):
        plot_alignment(alignment, tmp_path / "a.png")
    (record,) = caplog.records
    assert "。 は む 彼 読" in record.getMessage()


def test_a_font_that_has_the_missing_characters_is_found(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "_candidates", lambda: ["DejaVu Sans Mono", "STIXGeneral"])
    lacking = fonts._characters("STIXGeneral") - fonts._characters(fonts.BASE) - fonts._characters("DejaVu Sans Mono")
    character = next(chr(code) for code in sorted(lacking) if chr(code).isprintable() and fonts._is_visible(chr(code)))
    assert fonts.choose_families(["abc"]) == [fonts.BASE]
    assert fonts.choose_families([f"a{character}"]) == [fonts.BASE, "STIXGeneral"]
    assert not caplog.records


def test_cyrillic_and_arabic_need_no_other_font() -> None:
    assert fonts.choose_families(["читает", "كتاب", "ξένος", "Größe"]) == [fonts.BASE]


def test_width_of_text_grows_with_its_size_and_leaves_room_for_missing_glyphs() -> None:
    narrow, wide = (fonts.text_width(text, 10, [fonts.BASE]) for text in ("ill", "MMM"))
    assert 0 < narrow < wide
    assert fonts.text_width("MMM", 20, [fonts.BASE]) == pytest.approx(2 * wide)
    assert fonts.text_width("", 10, [fonts.BASE]) == 0
    with house_style([fonts.BASE]):
        one, two = (fonts.text_width("\uf8f0" * count, 10, [fonts.BASE]) for count in (1, 2))
    assert two - one >= 10  # an em, which is what a character of China or Japan takes
