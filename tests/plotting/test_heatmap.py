"""Heatmaps, judged by the files they leave: pixels of PNG, text of SVG, bytes of all three formats."""

import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager, get_font
from PIL import Image

from nmt.alignment.links import GoldLinks
from nmt.alignment.weights import Alignment
from nmt.errors import DataError, UsageError
from nmt.plotting import fonts, heatmap
from nmt.plotting.heatmap import Gold, Heatmap, plot_alignment, plot_heatmaps
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


def page_sizes(path: Path) -> list[tuple[float, float]]:
    """Width and height of each page of a PDF, in points."""
    boxes = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", path.read_bytes())
    return [(float(width), float(height)) for width, height in boxes]


# --- what is drawn ----------------------------------------------------------------------------------------------


def test_words_stand_in_the_svg_as_text_and_never_as_formulas_or_control_characters(tmp_path: Path) -> None:
    plain = ("$x_1$", "a<b&c", "Übergröße", "100%", "\\frac")
    odd = ("a\x00b", "\x1b[0m", "\ud800", "", "x" * 5000)
    plot_alignment(random_alignment(plain + odd), tmp_path / "a.svg", title="It costs $5 and $6")
    found = texts(tmp_path / "a.svg")
    assert {*plain, "a\ufffdb", "\ufffd[0m", *TARGET, "It costs $5 and $6", "attention weight"} <= set(found)
    assert max(map(len, found)) == 100
    plot_alignment(random_alignment(odd), tmp_path / "a.png")


def test_only_small_matrices_carry_their_weights(tmp_path: Path) -> None:
    for words, shown in ((12, True), (13, False)):
        weights = np.full((words, words), 0.09)
        weights[0, 0] = 0.37
        plot_alignment(Alignment(weights, ("a",) * words, ("b",) * words), tmp_path / "a.svg")
        found = texts(tmp_path / "a.svg")
        assert ("0.37" in found) is shown
        assert "0.09" not in found


def test_weights_of_0_are_white_but_not_the_smallest_or_a_missing_link(tmp_path: Path) -> None:
    def empty_cells(alignment: Alignment, **options: Any) -> int:
        """Cells in the color of the smallest weights."""
        plot_alignment(alignment, tmp_path / "a.svg", **options)
        return (tmp_path / "a.svg").read_text().count("fill: #edf2f8")

    weights = Alignment(np.array([[0.0, 0.4, 0.6], [1e-6, 1 - 1e-6, 0.0]]), tuple("abc"), tuple("xy"))
    assert empty_cells(weights) == empty_cells(weights, weights="posterior weight") == 1
    assert "weight 0" in texts(tmp_path / "a.svg")
    assert empty_cells(weights, style="gray") == 0
    assert "weight 0" not in texts(tmp_path / "a.svg")
    assert empty_cells(Alignment.of_links("a b c", "x y", "0-0 2-1")) == 4
    assert set(texts(tmp_path / "a.svg")) == {*"abcxy", "link"}


@pytest.mark.parametrize(
    ("gold", "sure", "possible"),
    [(None, 0, 0), (set(), 0, 0), ({(0, 0)}, 1, 0), (GoldLinks(frozenset(), frozenset({(0, 0)})), 0, 1), (GOLD, 2, 1)],
)
def test_gold_links_are_outlined_dashed_if_only_possible_and_named(
    tmp_path: Path, gold: Gold | None, sure: int, possible: int
) -> None:
    plot_alignment(random_alignment(), tmp_path / "a.svg", gold=gold)
    drawing, marks = (tmp_path / "a.svg").read_text(), {"sure gold link": sure, "possible gold link": possible}
    legend = {name for name, count in marks.items() if count}
    assert set(texts(tmp_path / "a.svg")) & set(marks) == legend
    assert drawing.count("stroke: #e8710a") == sure + possible + len(legend)
    assert drawing.count("stroke-dasharray: 4") == 2 * possible


def test_gray_is_gray_and_runs_from_black_to_white(tmp_path: Path) -> None:
    gold = GoldLinks(frozenset({(0, 0)}), frozenset({(2, 1)}))
    plot_alignment(Alignment(np.eye(3), tuple("abc"), tuple("def")), tmp_path / "a.png", style="gray", gold=gold)
    picture = pixels(tmp_path / "a.png")
    assert (np.ptp(picture, axis=-1) == 0).all()
    assert (picture == 0).all(axis=-1).sum() > 6 * 60 * 60  # six cells of at least 60 pixels at 150 dpi


def test_several_panels_share_a_figure(tmp_path: Path) -> None:
    panels = [random_alignment(), random_alignment(SOURCE[:2], TARGET[:1]), random_alignment(("only",), ("one",))]
    plot_alignment(panels, tmp_path / "a.svg", title=["(a)", "(b)", "(c)"], gold=[None, {(1, 0)}])
    found = texts(tmp_path / "a.svg")
    assert {"(a)", "(b)", "(c)", "only", "one"} <= set(found)
    assert found.count("A") == 2
    assert found.count("attention weight") == 1


def columns_by_row(path: Path) -> np.ndarray:
    """Columns of pixels in the middle of the darkest cell of each of three rows, from above."""
    picture = pixels(path)
    picture = picture[:, : picture.shape[1] * 3 // 4]  # without the color bar
    down, right = np.nonzero((abs(picture - [8, 38, 79]).sum(axis=-1)) < 12)
    edges = np.linspace(down.min(), down.max() + 1, 4)
    return np.array([right[(down >= low) & (down < high)].mean() for low, high in pairwise(edges)])


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        (("the", "dog", "sleeps"), [-1, 1]),
        (("הכלב", "ישן", "עכשיו"), [1, -1]),
        (("«", "الكلب", "ينام"), [1, -1]),
    ],
)
def test_rows_are_target_words_and_columns_run_as_the_source_is_read(
    source: tuple[str, ...], steps: list[int], tmp_path: Path
) -> None:
    plot_alignment(Alignment(np.eye(3)[[2, 0, 1]], source, ("x", "y", "z")), tmp_path / "a.png")
    assert np.sign(np.diff(columns_by_row(tmp_path / "a.png"))).tolist() == steps


# --- pages ------------------------------------------------------------------------------------------------------


def test_a_pdf_has_pages_as_large_as_what_is_on_them(tmp_path: Path) -> None:
    small, large = Heatmap(random_alignment(("a",), ("x",)), "one"), Heatmap(random_alignment(), "two")
    pages = [[small], [large], [small, small]]
    files = [tmp_path / name for name in ("a.pdf", "b.pdf")]
    for path in files:
        plot_heatmaps(pages, path)
    assert files[0].read_bytes() == files[1].read_bytes()
    sizes = page_sizes(files[0])
    for page, size in zip(pages, sizes, strict=True):
        plot_heatmaps([page], tmp_path / "page.pdf")
        assert page_sizes(tmp_path / "page.pdf") == [size]
    assert len(set(sizes)) == 3


# --- legible at every size --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (("a",), ("b",)),
        ((COMPOUND, "ist", COMPOUND), ("a", COMPOUND)),
        (SOURCE * 12, TARGET * 10),
        (SOURCE * 30, TARGET[:2]),
        (tuple("ארוך" * length for length in (1, 2, 6)), TARGET[:3]),
    ],
)
def test_nothing_is_cut_off_at_the_edge(tmp_path: Path, source: tuple[str, ...], target: tuple[str, ...]) -> None:
    title = "A title that is a good deal longer than the matrix is wide " * 2
    plot_alignment(random_alignment(source, target), tmp_path / "a.png", title=title, gold={(0, 0)}, dpi=72)
    picture = pixels(tmp_path / "a.png")
    picture[4:-4, 4:-4] = 255
    assert (picture == 255).all(), "the frame is white"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that the test draws, in place of pictures."""
    figures: list[Figure] = []
    monkeypatch.setattr(heatmap, "render", lambda drawn, kind, dpi: figures.extend(drawn))
    return figures


def test_panels_do_not_touch_each_other_or_the_bar(figures: list[Figure]) -> None:
    wide, long = random_alignment(SOURCE * 2), random_alignment((COMPOUND, "b"), (COMPOUND, "y"))
    title = "a title that is a good deal longer than its matrix"
    plot_alignment([wide, long, long, wide], title=["", title, title, ""])
    *panels, bar = figures[0].axes
    for left, right in combinations(panels, 2):
        assert not heatmap._extent(left).overlaps(heatmap._extent(right))
    # slanted words beside the bar may reach over it
    assert not any(heatmap._extent(bar).overlaps(panel.get_position()) for panel in panels[:2])
    assert not any(heatmap._extent(bar).overlaps(heatmap._extent(panel)) for panel in panels[2:])


def test_short_sentences_stay_large_beside_a_long_one_and_fill_rows(figures: list[Figure]) -> None:
    short = random_alignment()
    plot_alignment([random_alignment(SOURCE * 12, TARGET * 8), *[short] * 6])
    plot_alignment(short)
    long, *rest, _ = (axes.get_position() for axes in figures[0].axes)
    assert [box.width for box in rest] == pytest.approx([figures[1].axes[0].get_position().width] * 6)
    assert len({round(box.y1, 6) for box in rest}) < 3 < len({round(box.x0, 6) for box in rest})
    assert max(box.x1 for box in rest) < long.x1 + 2


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


@pytest.mark.parametrize(
    ("name", "options", "error", "complaint"),
    [
        ("a.png", {"gold": {(5, 1)}}, DataError, r"5-1 lies beyond .* 5 source"),
        (f"{__file__}/a.png", {}, DataError, "Cannot write"),
        ("a.png", {"dpi": 100000}, UsageError, "100000"),
        ("a.png", {"style": "sepia"}, UsageError, "'sepia'"),
        ("a.jpg", {}, UsageError, r"\.png, \.pdf, \.svg"),
        ("a.png", {"title": ["1", "2"]}, ValueError, "2 titles"),
        ("a.png", {"font": __file__}, DataError, r"test_heatmap\.py is not a font"),
        ("a.png", {"font": "no.otf"}, DataError, r"Cannot read the font no\.otf"),
    ],
)
def test_impossible_requests_are_one_message(
    tmp_path: Path, name: str, options: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        plot_alignment(random_alignment(), tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_pages_that_are_empty_or_too_many_for_a_format_are_refused(tmp_path: Path) -> None:
    page = [Heatmap(random_alignment())]
    with pytest.raises(UsageError, match=r"has one page, but there are 2: write a \.pdf"):
        plot_heatmaps([page, page], tmp_path / "a.png")
    with pytest.raises(DataError, match="nothing to draw"):
        plot_heatmaps([page, []], tmp_path / "a.pdf")
    with pytest.raises(DataError, match="nothing to draw"):
        Heatmap(Alignment(np.zeros((0, 2)), ("a", "b"), ()))
    assert not list(tmp_path.iterdir())


# --- fonts ------------------------------------------------------------------------------------------------------


def face(name: str) -> Path:
    """A font file that comes with matplotlib."""
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name


def letters(name: str) -> set[str]:
    """The letters that such a file has."""
    return {chr(code) for code in get_font(str(face(f"{name}.ttf"))).get_charmap() if chr(code).isalpha()}


def test_a_font_that_has_missing_characters_is_found_and_those_of_none_are_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the fonts that come with matplotlib."""
    monkeypatch.setattr(fontManager, "ttflist", [font for font in fontManager.ttflist if "mpl-data" in str(font.fname)])
    character = min(letters("STIXGeneral") - letters("DejaVuSans") - letters("DejaVuSansMono") - letters("DejaVuSerif"))
    assert fonts.choose_families(["abc", "читает", "كتاب", "ξένος", "Größe"]) == [fonts.BASE]
    assert fonts.choose_families([f"a{character}"]) == [fonts.BASE, "STIXGeneral"]
    assert not caplog.records
    fonts.choose_families(["彼", "は", "は", "読む", "。"])
    (record,) = caplog.records
    assert "。 は む 彼 読" in record.getMessage()


def test_width_of_text_grows_with_its_size_and_leaves_room_for_wide_characters() -> None:
    assert fonts.text_width("MMM", 20, [fonts.BASE]) == pytest.approx(2 * fonts.text_width("MMM", 10, [fonts.BASE]))
    with house_style([fonts.BASE]):
        assert fonts.text_width("彼读", 10, [fonts.BASE]) >= 20  # an em each
