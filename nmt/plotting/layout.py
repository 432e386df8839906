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
GAP = 0.35  # between panels
LABEL_PAD = 0.06  # between a word and its row or column
TITLE_SIZE = 11.0  # points
SMALLEST_CELL, LARGEST_CELL = 0.28, 0.6
LONGEST_MATRIX = 28.0  # longer matrices get smaller cells
BAR_WIDTH, BAR_WITH_LABELS, BAR_GAP = 0.12, 0.7, 0.2
SHORTEST_BAR, LONGEST_BAR, LONGEST_SHARED_BAR = 1.3, 2.5, 6.0
LEGEND_HEIGHT = 0.4
SLANT = 45  # degrees


def line_height(size: float) -> float:
    """The height of a line of text; `size` is in points."""
    return 1.3 * size / 72


def cell_side(alignments: Sequence[Alignment]) -> float:
    """The side of a cell: large for a few words, at least readable for many, smaller only if the figure would get huge."""
    longest = max(max(len(item.source), len(item.target)) for item in alignments)
    return min(max(6 / longest, SMALLEST_CELL), LARGEST_CELL, LONGEST_MATRIX / longest)


def font_size(cell: float) -> float:
    """The font size of words beside cells of this side, in points."""
    return min(72 * cell * 0.45, 11.0)


@dataclass(frozen=True)
class Panel:
    """The measures of one matrix with its labels.

    Attributes:
        source: labels of the columns.
        target: labels of the rows.
        title: the title, wrapped into lines; empty for none.
        cell: side of a cell.
        font_size: font size of the labels, in points.
        slant: angle of the source words; 0 if all fit above their columns, negative if they lean to the left.
        turned: whether columns run from right to left, as the source does.
        left: space for the target words, and for source words that lean to the left.
        top: space for title and source words.
        right: how far slanted words or the title extend beyond the last column.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    title: str
    cell: float
    font_size: float
    slant: int
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
        cls, alignment: Alignment, title: str, cell: float, families: Sequence[str], *, slanted: bool | None = None
    ) -> Self:
        """Measure one matrix with cells of the given side and words in these fonts.

        Source words are slanted if one is wider than its column, unless `slanted` decides it.
        """
        size = font_size(cell)
        source, target = tuple(map(label, alignment.source)), tuple(map(label, alignment.target))
        widths = [text_width(word, size, families) / 72 for word in source]
        turned = is_right_to_left(source)
        if slanted is None:
            slanted = max(widths) > cell - LABEL_PAD
        left = max(text_width(word, size, families) / 72 for word in target) + 2 * LABEL_PAD
        top, overhang = _slanted(widths, cell, line_height(size)) if slanted else (line_height(size), 0.0)
        left, right = (max(left, overhang), 0.0) if turned else (left, overhang)
        title = _wrap(title, left + cell * len(source) + right, families)
        title_width = max((text_width(line, TITLE_SIZE, families) / 72 for line in title.split("\n")), default=0.0)
        return cls(
            source, target, title, cell, size, SLANT * slanted * (-1 if turned else 1), turned, left,
            top=top + LABEL_PAD + title_height(title),
            right=max(right, LABEL_PAD + title_width - left - cell * len(source)),
        )  # fmt: skip


def measure_panels(items: Sequence[tuple[Alignment, str]], families: Sequence[str]) -> list[Panel]:
    """Measure the matrices of a figure with their titles; all get the same cell size and angle of words."""
    cell = cell_side([alignment for alignment, _ in items])
    panels = [Panel.measure(*item, cell, families) for item in items]
    if len({panel.slant == 0 for panel in panels}) == 1:
        return panels
    return [Panel.measure(*item, cell, families, slanted=True) for item in items]


def _slanted(widths: Sequence[float], cell: float, line: float) -> tuple[float, float]:
    """The space above the matrix and beyond its last column for words at 45 degrees."""
    reach = [(width + line) * sqrt(0.5) for width in widths]
    ends = [(column + 0.5) * cell + length for column, length in enumerate(reach)]
    return max(reach), max(0.0, max(ends) - cell * len(widths))


def _wrap(title: str, room: float, families: Sequence[str]) -> str:
    """Wrap the title to about the width of the panel, but at least 30 characters per line."""
    if not title:
        return ""
    average = text_width(title, TITLE_SIZE, families) / 72 / len(title)
    return "\n".join(textwrap.wrap(title, max(30, int(room / average))))


def title_height(title: str) -> float:
    """The height of a title with the space below it."""
    return (title.count("\n") + 1.5) * line_height(TITLE_SIZE) if title else 0.0


@dataclass(frozen=True)
class Layout:
    """The positions of all parts of a page.

    Attributes:
        width, height: size of the page.
        corners: (x, y) of the top left corner of each panel's matrix.
        titles: (x, y) of the top left corner of each panel's title, aligned in each row and column of panels.
        bar: (x, y, width, height) of the color bar.
        legend: (x, y) of the top left corner of the legend.
    """

    width: float
    height: float
    corners: tuple[tuple[float, float], ...]
    titles: tuple[tuple[float, float], ...]
    bar: tuple[float, float, float, float]
    legend: tuple[float, float]

    @classmethod
    def arrange(cls, panels: Sequence[Panel], *, legend: float) -> Self:
        """Arrange panels in about as many rows as columns, with aligned matrices and one color bar on the right.

        `legend` is the width of the legend below them; 0 for none.
        """
        columns = ceil(sqrt(len(panels)))
        stacks = [panels[start::columns] for start in range(columns)]
        rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
        before = [max(panel.left for panel in stack) for stack in stacks]
        above = [max(panel.top for panel in row) for row in rows]
        lefts, right = _along(before, [max(panel.width + panel.right for panel in stack) for stack in stacks])
        tops, bottom = _along(above, [max(panel.height for panel in row) for row in rows])
        places = [divmod(index, columns) for index in range(len(panels))]
        bar_top = tops[0]
        if len(rows) == 1:  # slanted words may extend above the bar
            bar_left = lefts[-1] + panels[-1].width + BAR_GAP
            bar_height = min(max(panels[0].height, SHORTEST_BAR), LONGEST_BAR)
        else:  # vertically centered beside all rows
            bar_left = right + BAR_GAP
            bar_height = min(bottom - bar_top, LONGEST_SHARED_BAR)
            bar_top += (bottom - bar_top - bar_height) / 2
        bottom = max(bottom, bar_top + bar_height)
        return cls(
            width=MARGIN + max(right, bar_left + BAR_WITH_LABELS, MARGIN + legend),
            height=MARGIN + bottom + (LEGEND_HEIGHT if legend else 0.0),
            corners=tuple((lefts[column], tops[row]) for row, column in places),
            titles=tuple(
                (lefts[column] - before[column] + LABEL_PAD, tops[row] - above[row]) for row, column in places
            ),
            bar=(bar_left, bar_top, BAR_WIDTH, bar_height),
            legend=(MARGIN, bottom + 0.1),
        )


def _along(before: Sequence[float], extents: Sequence[float]) -> tuple[list[float], float]:
    """The starts of items in a line, each after its own space, and the end of the last one."""
    starts, end = [], MARGIN - GAP
    for space, extent in zip(before, extents, strict=True):
        starts.append(end + GAP + space)
        end = starts[-1] + extent
    return starts, end
