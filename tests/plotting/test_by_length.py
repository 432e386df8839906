"""Quality against length: every model has its line and its name, and names do not overlap."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nmt.errors import DataError, UsageError
from nmt.plotting.by_length import Line, _draw, _looks, _spread, plot_by_length


def lines(count: int) -> list[Line]:
    return [Line(f"model-{number}", [30.0 - number / 10, 25.0, 20.0 + number / 50]) for number in range(count)]


@pytest.mark.parametrize("count", [1, 3, 18])
def test_pictures_have_room_for_every_name(tmp_path: Path, count: int) -> None:
    plot_by_length(lines(count), ["1–9", "10–19", "20"], [100, 1000, 30], tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert all(f">model-{number}<" in drawn for number in range(count))
    assert all(f">{label}<" in drawn for label in ("1–9", "1,000", "BLEU"))


def test_one_bucket_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        plot_by_length([Line("m", [12.0])], ["7"], [40], tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with Image.open(tmp_path / "a.png") as image:
        assert image.width > 600


@pytest.mark.parametrize(("values", "top"), [([0.0, 0.0], 1.0), ([20.0, 10.0], 21.0)])
def test_the_axis_starts_at_zero(values: list[float], top: float) -> None:
    plot = _draw([Line("m", values)], ["m"], ["1", "2"], [40, 40], ["DejaVu Sans"]).axes[0]
    assert plot.get_ylim() == (0.0, top)


def test_there_must_be_something_to_draw(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to draw"):
        plot_by_length([], ["7"], [40], tmp_path / "a.png")
    with pytest.raises(UsageError, match="Cannot tell the picture format"):
        plot_by_length(lines(1), ["1", "2", "3"], [1, 1, 1], tmp_path / "a.txt")


def test_groups_share_a_colour_and_variants_their_dashes() -> None:
    four = [Line(f"{group}{variant}", [1.0], group, variant) for group in "ab" for variant in "xy"]
    looks = _looks(four)
    assert looks[0]["color"] == looks[1]["color"] != looks[2]["color"]
    assert looks[0]["linestyle"] == looks[2]["linestyle"] != looks[1]["linestyle"]
    ungrouped = [(look["color"], look["linestyle"]) for look in _looks(lines(18))]
    assert len(set(ungrouped)) == 18


@pytest.mark.parametrize("seed", range(5))
def test_names_keep_their_order_and_their_distance(seed: int) -> None:
    ends = np.random.default_rng(seed).beta(2, 9, size=18)
    places = _spread(ends, 0.05)
    ordered = places[np.argsort(ends)]
    assert (np.diff(ordered) >= 0.05 - 1e-9).all()
    assert ordered[0] >= 0
    assert ordered[-1] <= 1 + 1e-9


def test_names_with_room_stay_where_they_are() -> None:
    assert _spread(np.array([0.9, 0.1, 0.5]), 0.05).tolist() == pytest.approx([0.9, 0.1, 0.5])
