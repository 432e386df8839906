"""Layout of alignment figures, in inches from the top left corner.

All sizes are computed from measured text, so that labels are never cut off and never overlap.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Self

from nmt.alignment.weights import Alignment
from nmt.plotting.fonts import is_right_to_left, label, text_width

MARGIN = 0.15
LABEL_PAD = 0.06  # between a word and its row or column
TITLE_SIZE = 11.0  # points
_GAP = 0.35  # between panels
_BAR_WIDTH, _BAR_WITH_LABELS, _BAR_GAP = 0.12, 0.7, 0.2


def cell_side(alignments: Sequence[Alignment]) -> float:
    """The side of a cell: large for a few words, at least readable for many, smaller only if the figure would get huge."""
    longest = max(len(words) for alignment in alignments for words in (alignment.source, alignment.target))
    return min(max(6 / longest, 0.28), 0.6, 28 / longest)


@dataclass(frozen=True)
class Panel:
    """The measures of one matrix with its labels.

    Attributes:
        source: labels of the columns.
        target: labels of the rows.
        title: the title, wrapped into lines; empty for none.
        cell: side of a cell.
        font_size: font size of the labels, in points.
        slanted: whether the source words are written at 45 degrees, because one is wider than its column.
        turned: whether columns run from right to left, as the source does; slanted words then lean to the left.
        left: space for the target words, and for source words that lean to the left.
        top: space for title and source words.
        right: how far slanted words or the title extend beyond the last column.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    title: str
    cell: float
    font_size: float
    slanted: bool
    turned: bool
    left: float
    top: float
    right: float

    @property
    def width(self) -> float:
        """Width of the matrix alone."""
        return self.cell * len(self.source)

    @property
    def height(self) -> float:
        """Height of the matrix alone."""
        return self.cell * len(self.target)

    @classmethod
    def measure(
        cls, alignment: Alignment, title: str, cell: float, families: Sequence[str], *, slanted: bool = False
    ) -> Self:
        """Measure one matrix with cells of the given side and words in these fonts; `slanted` slants also words that fit."""
        size = min(72 * cell * 0.45, 11.0)
        source, target = tuple(map(label, alignment.source)), tuple(map(label, alignment.target))
        widths = [text_width(word, size, families) / 72 for word in source]
        turned = is_right_to_left(source)
        slanted = slanted or max(widths) > cell - LABEL_PAD
        left = max(text_width(word, size, families) / 72 for word in target) + 2 * LABEL_PAD
        top, right = _line_height(size), 0.0
        if slanted:
            reach = [(width + top) * sqrt(0.5) for width in widths]
            top = max(reach)
            right = max(0.0, *(reach[i] - (len(reach) - i - 0.5) * cell for i in range(len(reach))))
        if turned:
            left, right = max(left, right), 0.0
        width = cell * len(source)
        average = text_width(title, TITLE_SIZE, families) / 72 / max(len(title), 1)
        lines = textwrap.wrap(title, max(30, int((left + width + right) / average))) if title else []
        if lines:
            top += (len(lines) + 0.5) * _line_height(TITLE_SIZE)
            longest = max(text_width(line, TITLE_SIZE, families) / 72 for line in lines)
            right = max(right, LABEL_PAD + longest - left - width)
        return cls(source, target, "\n".join(lines), cell, size, slanted, turned, left, top + LABEL_PAD, right)


def measure_panels(matrices: Sequence[tuple[Alignment, str]], families: Sequence[str]) -> list[Panel]:
    """Measure the matrices of a figure with their titles; all get the same cell size and angle of words."""
    cell = cell_side([alignment for alignment, _ in matrices])
    panels = [Panel.measure(*matrix, cell, families) for matrix in matrices]
    if any(panel.slanted for panel in panels):
        panels = [Panel.measure(*matrix, cell, families, slanted=True) for matrix in matrices]
    return panels


def _line_height(size: float) -> float:
    """The height of a line of text; `size` is in points."""
    return 1.3 * size / 72


@dataclass(frozen=True)
class Layout:
    """The positions of all parts of a page.

    Attributes:
        width, height: size of the page.
        corners: (x, y) of the top left corner of each panel's matrix.
        titles: (x, y) of the top left corner of each panel's title, aligned in each row and column of panels.
        bar: (x, y, width, height) of the color bar.
    """

    width: float
    height: float
    corners: tuple[tuple[float, float], ...]
    titles: tuple[tuple[float, float], ...]
    bar: tuple[float, float, float, float]

    @classmethod
    def arrange(cls, panels: Sequence[Panel]) -> Self:
        """Arrange panels in about as many rows as columns, with aligned matrices and one color bar on the right."""
        columns = ceil(sqrt(len(panels)))
        stacks = [panels[start::columns] for start in range(columns)]
        rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
        before = [max(panel.left for panel in stack) for stack in stacks]
        above = [max(panel.top for panel in row) for row in rows]
        lefts, right = _along(before, [max(panel.width + panel.right for panel in stack) for stack in stacks])
        tops, bottom = _along(above, [max(panel.height for panel in row) for row in rows])
        grid = [divmod(index, columns) for index in range(len(panels))]
        if len(rows) == 1:  # slanted words may extend above the bar
            bar_left, bar_height = lefts[-1] + panels[-1].width + _BAR_GAP, min(max(panels[0].height, 1.3), 2.5)
            bar_top = tops[0]
        else:  # vertically centered beside all rows
            bar_left, bar_height = right + _BAR_GAP, min(bottom - tops[0], 6.0)
            bar_top = (tops[0] + bottom - bar_height) / 2
        return cls(
            width=MARGIN + max(right, bar_left + _BAR_WITH_LABELS),
            height=MARGIN + max(bottom, bar_top + bar_height),
            corners=tuple((lefts[column], tops[row]) for row, column in grid),
            titles=tuple((lefts[column] - before[column] + LABEL_PAD, tops[row] - above[row]) for row, column in grid),
            bar=(bar_left, bar_top, _BAR_WIDTH, bar_height),
        )


def _along(before: Sequence[float], extents: Sequence[float]) -> tuple[list[float], float]:
    """The starts of panels in a line, each after its own space, and the end of the last one."""
    starts, end = [], MARGIN - _GAP
    for space, extent in zip(before, extents, strict=True):
        starts.append(end + _GAP + space)
        end = starts[-1] + extent
    return starts, end
