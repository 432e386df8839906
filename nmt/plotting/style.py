"""What all figures share: the look, the file formats, and files that are the same for the same input.

Figures are drawn with matplotlib's Figure alone: no pyplot, no display, nothing left behind in its settings.
"""

import io
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from matplotlib import style
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from nmt.errors import UsageError
from nmt.files import write_atomically

INK = "#262626"
FAINT = "#8c8c8c"
BLUE = "#1f5a99"
ORANGE = "#e8710a"
MAGENTA = "#c2126b"

# The time of day and the version of the drawing program have no place in a figure that shall be reproducible.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}
FORMATS = tuple(_METADATA)
_LARGEST_SIDE = 30_000  # pixels
_settings = threading.RLock()  # matplotlib's settings belong to the process; two threads must not swap them at once


def file_format(path: Path, formats: Sequence[str] = FORMATS) -> str:
    """The picture format that the suffix of a file asks for.

    Raises:
        UsageError: a suffix that is none of the known ones.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in formats:
        known = ", ".join(f".{name}" for name in formats)
        raise UsageError(f"Cannot tell the picture format of '{path}' from its name: end it with one of {known}.")
    return suffix


@contextmanager
def house_style(families: Sequence[str]) -> Iterator[None]:
    """Within it, matplotlib follows our settings only, whatever the user's own are.

    Words are never read as formulas (`$`), and text in SVG and PDF stays text that can be searched and edited.
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
    }
    with _settings, style.context(settings, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")  # said once by choose_families
        yield


def save(figure: Figure, path: Path, *, dpi: float) -> None:
    """Write the figure in the format of the suffix; to be called within `house_style`.

    Raises:
        UsageError: an unknown suffix, or a resolution at which the picture gets too large or none.
        DataError: a file that cannot be written.
    """
    kind = file_format(path)
    _check_resolution(figure, kind, dpi)
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=dpi, metadata=_METADATA[kind])
    _write(path, picture)


def save_pages(figures: Iterable[Figure], path: Path, *, dpi: float) -> None:
    """Write a PDF with a page for each figure, as large as the figure; otherwise like `save`."""
    picture = io.BytesIO()
    with PdfPages(picture, metadata=_METADATA["pdf"]) as pages:
        for figure in figures:
            _check_resolution(figure, "pdf", dpi)
            pages.savefig(figure, dpi=dpi)
    _write(path, picture)


def _check_resolution(figure: Figure, kind: str, dpi: float) -> None:
    """Raises UsageError if the picture would get too large or none."""
    side = max(figure.get_size_inches()) * dpi
    if not 10 <= dpi <= 2400 or (kind == "png" and side > _LARGEST_SIDE):
        limits = f"choose 10 to 2400 dots per inch and at most {_LARGEST_SIDE:,} pixels"
        raise UsageError(f"A picture with {dpi:g} dots per inch would be {side:,.0f} pixels long: {limits}.")


def _write(path: Path, picture: io.BytesIO) -> None:
    write_atomically(path, lambda beside: beside.write_bytes(picture.getvalue()))
