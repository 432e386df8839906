"""Quality against length: every model has its line and its name."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from nmt.errors import DataError
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
def test_pictures_have_room_for_the_names(tmp_path: Path, count: int) -> None:
    plot_by_length(lines(count), ["1–9", "10–19", "20"], [100, 1000, 30], tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.count(">model-") == min(count, 5)
    assert all(f">{label}<" in drawn for label in ("1–9", "(1,000)", "BLEU"))


def test_there_must_be_something_to_draw(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to draw"):
        plot_by_length([], ["7"], [40], tmp_path / "a.png")


def test_of_many_lines_five_have_colors_and_names_the_best_of_their_groups(figures: list[Figure]) -> None:
    grouped = [
        ScoreLine(f"{group}{score}", [score + rank / 9], group)
        for rank, group in enumerate("abcdef")
        for score in (1, 2)
    ]
    for models in (grouped, lines(18), lines(5)):
        plot_by_length(models, ["1", "2", "3"][: len(models[0].values)], [40] * len(models[0].values), Path("a.png"))
    named = []
    for figure in figures:
        legend = figure.axes[0].get_legend()
        assert legend is not None
        named.append([text.get_text() for text in legend.get_texts()])
        colors = [line.get_color() for line in figure.axes[0].lines]
        assert len(set(colors[:5])) == 5
        assert set(colors[5:]) <= {by_length._GRAY}
    assert named[0] == ["f2", "e2", "d2", "b2", "a2", "7 more"]
    assert {"model-0", "model-17", "13 more"} < {*named[1]}
    assert figures[0].axes[0].get_ylim() == pytest.approx((0, 1.05 * (2 + 5 / 9)))
    assert named[2] == [f"model-{number}" for number in (4, 3, 2, 1, 0)]
