"""Attention over pictures: a panel per word, bright where the word was read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from nmt.errors import DataError, UsageError
from nmt.plotting import PictureAttention, plot_picture_attention

WORDS = ["top", "right", "left", "down"]


def corners(words: int = 4) -> PictureAttention:
    """A white picture whose k-th word was read in the k-th of its corners."""
    return PictureAttention(np.ones((3, 20, 20)), WORDS[:words], np.eye(4).reshape(4, 2, 2)[:words])


def panels(path: Path, row: int, rows: int, count: int) -> list[np.ndarray]:
    """The brightness [100 100] of the first panels of a row. A panel is an inch wide, and the file has 100 dots per inch."""
    brightness = imread(path)[:, :, :3].mean(2)
    bottom = len(brightness) - 15 - 132 * (rows - 1 - row)
    return [brightness[bottom - 100 : bottom, left : left + 100] for left in range(15, 15 + 108 * count, 108)]


def quarters(panel: np.ndarray) -> np.ndarray:
    """The brightness in the middle of each quarter: top left, top right, bottom left, bottom right."""
    return np.array([panel[y - 3 : y + 3, x - 3 : x + 3].mean() for y in (25, 75) for x in (25, 75)])


def test_a_word_leaves_bright_what_it_was_read_from(tmp_path: Path) -> None:
    plot_picture_attention([corners()], tmp_path / "a.png", dpi=100)
    picture, *words = panels(tmp_path / "a.png", 0, 1, 5)
    assert quarters(picture).min() > 0.98, "the picture itself has no veil"
    for place, word in enumerate(words):
        brightness = quarters(word)
        assert brightness[place] > 0.95
        assert np.delete(brightness, place).max() < 0.4


def test_each_picture_has_a_row_and_the_longest_decides_the_width(tmp_path: Path) -> None:
    plot_picture_attention([corners(), replace(corners(2), pixels=np.zeros((3, 20, 20)))], tmp_path / "a.png", dpi=100)
    assert imread(tmp_path / "a.png").shape[:2] == (pytest.approx(2 * 132 + 14, abs=2), 5 * 108 + 22)
    white, *_ = panels(tmp_path / "a.png", 0, 2, 5)
    black, _, last, nothing, _ = panels(tmp_path / "a.png", 1, 2, 5)
    assert white[10:90, 10:90].min() > 0.98
    assert black[10:90, 10:90].max() < 0.02
    assert last[10:90, 10:90].max() < 0.1
    assert nothing.min() == 1


def test_words_are_text_above_their_panels(tmp_path: Path) -> None:
    plot_picture_attention([corners()], tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert [svg.index(f">{word}</text>") for word in WORDS] == sorted(svg.index(f">{word}</text>") for word in WORDS)


def test_a_word_without_weight_is_all_dark(tmp_path: Path) -> None:
    plot_picture_attention([replace(corners(1), weights=np.zeros((1, 2, 2)))], tmp_path / "a.png", dpi=100)
    assert quarters(panels(tmp_path / "a.png", 0, 1, 2)[1]).max() < 0.4


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Cannot tell the picture format"):
        plot_picture_attention([corners()], tmp_path / "a.gif")
    with pytest.raises(DataError, match="give at least one picture"):
        plot_picture_attention([], tmp_path / "a.png")
    with pytest.raises(DataError, match="a picture needs at least one word"):
        corners(0)
    with pytest.raises(ValueError, match=r"must be \[3 H W\], but are \[20, 20, 3\]"):
        replace(corners(), pixels=np.ones((20, 20, 3)))
    with pytest.raises(ValueError, match=r"The weights of 4 words must be \[T rows columns\], but are \[4, 4\]"):
        replace(corners(), weights=np.eye(4))
