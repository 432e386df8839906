"""Quality against length: every model has its line and its name."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from nmt.errors import DataError, UsageError
from nmt.plotting import by_length
from nmt.plotting.by_length import ScoreLine, plot_by_length


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that the test draws, in place of files."""
    figures: list[Figure] = []
    monkeypatch.setattr(by_length, "save", lambda drawn, output, *, dpi: figures.extend(drawn))
    return figures


def lines(count: int) -> list[ScoreLine]:
    return [ScoreLine(f"model-{number}", [30.0 - number / 10, 25.0, 20.0 + number / 50]) for number in range(count)]


@pytest.mark.parametrize("count", [1, 18])
def test_pictures_have_room_for_every_name(tmp_path: Path, count: int) -> None:
    plot_by_length(lines(count), ["1–9", "10–19", "20"], [100, 1000, 30], tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert all(f">model-{number}<" in drawn for number in range(count))
    assert all(f">{label}<" in drawn for label in ("1–9", "(1,000)", "BLEU"))


def test_there_must_be_something_to_draw(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to draw"):
        plot_by_length([], ["7"], [40], tmp_path / "a.png")
    with pytest.raises(UsageError, match="Cannot tell the picture format"):
        plot_by_length(lines(1), ["1", "2", "3"], [1, 1, 1], tmp_path / "a.txt")


def test_groups_share_a_color_and_variants_their_marker(figures: list[Figure]) -> None:
    four = [ScoreLine(f"{group}{variant}", [1.0, 2.0, 3.0], group, variant) for group in "ab" for variant in "xy"]
    for models in (four, lines(18)):
        plot_by_length(models, ["1", "2", "3"], [40, 40, 40], Path("a.png"))
    looks = [[(line.get_color(), line.get_marker()) for line in figure.axes[0].lines] for figure in figures]
    colors, markers = zip(*looks[0], strict=True)
    assert colors[0] == colors[1] != colors[2] == colors[3]
    assert markers[0] == markers[2] != markers[1] == markers[3]
    assert len(set(looks[1])) == 18


def test_names_stand_in_the_order_in_which_the_lines_end(figures: list[Figure]) -> None:
    ends = {"low": 0.1, "high": 0.9, "middle": 0.5}
    plot_by_length([ScoreLine(name, [end]) for name, end in ends.items()], ["1"], [40], Path("a.png"))
    legend = figures[0].axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["high", "middle", "low"]
    assert figures[0].axes[0].get_ylim() == pytest.approx((0, 1.05 * 0.9))
