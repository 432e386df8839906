"""Where everything in an alignment figure goes: pure measuring, in inches from the top left corner.

Nothing is left to automatic fitting, so no label is ever cut off or overlaps another, at 3 words as at 60.
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
LONGEST_MATRIX = 28.0  # cells shrink beyond it
BAR_WIDTH, BAR_WITH_LABELS, BAR_GAP = 0.12, 0.7, 0.2
SHORTEST_BAR, LONGEST_BAR, LONGEST_SHARED_BAR = 1.3, 2.5, 6.0
LEGEND_HEIGHT = 0.4
SLANT = 45  # degrees


def line_height(size: float) -> float:
    """Height of a line of text of this many points."""
    return 1.3 * size / 72


def cell_side(alignments: Sequence[Alignment]) -> float:
    """Side of a cell: generous for a few words, readable for many, smaller only where the figure would get huge."""
    longest = max(max(len(item.source), len(item.target)) for item in alignments)
    return min(max(6 / longest, SMALLEST_CELL), LARGEST_CELL, LONGEST_MATRIX / longest)


def font_size(cell: float) -> float:
    """Of the words beside cells of this side, in points."""
    return min(72 * cell * 0.45, 11.0)


@dataclass(frozen=True)
class Panel:
    """One matrix with its labels, measured.

    Attributes:
        source: labels of the columns.
        target: labels of the rows.
        title: broken into lines; empty for none.
        cell: side of a cell.
        font_size: of the labels, in points.
        slant: angle of the source words; 0 where every word fits above its column, negative if they lean to the left.
        turned: whether columns run from right to left, as the source is read.
        left: room for the target words, and for source words that lean to the left.
        top: room for title and source words.
        right: how far slanted words or the title reach beyond the last column.
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
        """Lay out one matrix with cells of the given side, its words set in these fonts.

        Source words are slanted where one is wider than its column, unless `slanted` says it.
        """
        size = font_size(cell)
        source, target = tuple(map(label, alignment.source)), tuple(map(label, alignment.target))
        widths = [text_width(word, size, families) / 72 for word in source]
        turned = is_right_to_left(source)
        if slanted is None:
            slanted = max(widths) > cell - LABEL_PAD
        left = max(text_width(word, size, families) / 72 for word in target) + 2 * LABEL_PAD
        top, beyond = _slanted(widths, cell, line_height(size)) if slanted else (line_height(size), 0.0)
        left, right = (max(left, beyond), 0.0) if turned else (left, beyond)
        title = _wrap(title, left + cell * len(source) + right, families)
        title_width = max((text_width(line, TITLE_SIZE, families) / 72 for line in title.split("\n")), default=0.0)
        return cls(
            source, target, title, cell, size, SLANT * slanted * (-1 if turned else 1), turned, left,
            top=top + LABEL_PAD + title_height(title),
            right=max(right, LABEL_PAD + title_width - left - cell * len(source)),
        )  # fmt: skip


def measure_panels(items: Sequence[tuple[Alignment, str]], families: Sequence[str]) -> list[Panel]:
    """The matrices of a figure with their titles: cells of one size, and words at one angle."""
    cell = cell_side([alignment for alignment, _ in items])
    panels = [Panel.measure(*item, cell, families) for item in items]
    if len({panel.slant == 0 for panel in panels}) == 1:
        return panels
    return [Panel.measure(*item, cell, families, slanted=True) for item in items]


def _slanted(widths: Sequence[float], cell: float, line: float) -> tuple[float, float]:
    """Room above, and beyond the last column read, of words at 45 degrees that start above the middle of their columns."""
    reach = [(width + line) * sqrt(0.5) for width in widths]
    ends = [(column + 0.5) * cell + length for column, length in enumerate(reach)]
    return max(reach), max(0.0, max(ends) - cell * len(widths))


def _wrap(title: str, room: float, families: Sequence[str]) -> str:
    """The title broken into lines about as long as the panel is wide, though never very short."""
    if not title:
        return ""
    average = text_width(title, TITLE_SIZE, families) / 72 / len(title)
    return "\n".join(textwrap.wrap(title, max(30, int(room / average))))


def title_height(title: str) -> float:
    """Room for a title and the space below it."""
    return (title.count("\n") + 1.5) * line_height(TITLE_SIZE) if title else 0.0


@dataclass(frozen=True)
class Layout:
    """Places on the page.

    Attributes:
        width: of the page.
        height: of the page.
        corners: (x, y) of the top left corner of each panel's matrix.
        titles: (x, y) of the top left corner of each panel's title; those of a row or column of panels are in line.
        bar: (x, y, width, height) of the colour bar.
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
        """Panels in about as many rows as columns, matrices flush with each other; one colour bar for all at the right.

        `legend` is the width of the line below them; 0 is none.
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
        if len(rows) == 1:  # words that reach beyond the last column do so above the bar
            bar_left = lefts[-1] + panels[-1].width + BAR_GAP
            bar_height = min(max(panels[0].height, SHORTEST_BAR), LONGEST_BAR)
        else:  # beside the middle of all rows
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
    """Where bodies start that stand in a line, each after a space of its own, and where the last one ends."""
    starts, end = [], MARGIN - GAP
    for space, extent in zip(before, extents, strict=True):
        starts.append(end + GAP + space)
        end = starts[-1] + extent
    return starts, end
