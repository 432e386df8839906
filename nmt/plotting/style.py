"""Shared style and file formats of all figures. The same input gives the same file.

Figures use matplotlib's Figure directly: no pyplot, no display, no change of global settings.
"""

import io
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from nmt.errors import UsageError
from nmt.runtime.arguments import as_path
from nmt.runtime.files import write_content

INK = "#262626"
FAINT = "#8c8c8c"
BLUE = "#1f5a99"
ORANGE = "#e8710a"

# Leave out time and software version, so that files are reproducible.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}
FORMATS = tuple(_METADATA)
_LARGEST_SIDE = 30_000  # pixels
_settings = threading.RLock()  # matplotlib's settings are global to the process


def file_format(path: Path, formats: Sequence[str] = FORMATS) -> str:
    """The picture format of a file, by its suffix. Raises UsageError if that is unknown."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in formats:
        suffixes = ", ".join(f".{name}" for name in formats)
        raise UsageError(f"Cannot tell the picture format of '{path}' from its name: end it with one of {suffixes}.")
    return suffix


@contextmanager
def house_style(families: Sequence[str]) -> Iterator[None]:
    """A context with the settings of this package instead of the user's matplotlib settings.

    Words are never parsed as formulas (`$`). Text in SVG and PDF stays searchable text.
    """
    settings = {
        "font.family": [*families, "sans-serif"],
        "font.sans-serif": [families[0]],
        "text.parse_math": False,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "svg.fonttype": "none",
        "svg.hashsalt": "nmt",
        "pdf.fonttype": 42,
        "figure.constrained_layout.w_pad": 0.1,  # between panels
        "figure.constrained_layout.h_pad": 0.1,
        "savefig.bbox": "tight",
        "savefig.pad_inches": 0.15,
    }
    with _settings, style.context(settings, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")  # choose_families warns instead
        yield


def draw_grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw faint lines behind the data of a plot, and no frame above and on the right of it."""
    axes.grid(True, axis=axis, color="#e3e3e3", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True)
class Drawing:
    """A drawn figure, which a notebook shows if it is a PNG or an SVG."""

    kind: str
    """png, svg or pdf."""
    content: bytes = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write it to a file. Raises UsageError if the suffix is of another format, DataError if it cannot be written."""
        file = as_path(path, "The picture")
        if file_format(file) != self.kind:
            raise UsageError(f"This picture is a .{self.kind}, not what {file} says: draw it again in that format.")
        write_content(file, self.content)

    def _repr_png_(self) -> bytes | None:
        return self.content if self.kind == "png" else None

    def _repr_svg_(self) -> str | None:
        return self.content.decode() if self.kind == "svg" else None


def render(figures: Iterable[Figure], kind: str, *, dpi: float) -> Drawing:
    """Draw a figure in a format, or several as pages of a PDF; call it within `house_style`.

    Raises:
        UsageError: the resolution makes a picture too large or too small.
    """
    picture = io.BytesIO()
    pages: Any = PdfPages(picture, metadata=_METADATA[kind]) if kind == "pdf" else nullcontext(picture)
    with pages as output:
        for figure in figures:
            side = max(figure.get_tightbbox().size) * dpi
            if not 10 <= dpi <= 2400 or (kind == "png" and side > _LARGEST_SIDE):
                limits = f"choose 10 to 2400 dots per inch and at most {_LARGEST_SIDE:,} pixels"
                raise UsageError(f"A picture with {dpi:g} dots per inch would be {side:,.0f} pixels long: {limits}.")
            figure.savefig(output, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return Drawing(kind, picture.getvalue())


def save(figures: Iterable[Figure], path: Path, *, dpi: float) -> Drawing:
    """Write figures in the format of the suffix; call it within `house_style`. Raises as `render` and `Drawing.save` do."""
    picture = render(figures, file_format(path), dpi=dpi)
    picture.save(path)
    return picture
