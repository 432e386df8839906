"""What the programs beside it share as commands: options, progress, pictures, and errors in one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence

from nmt import Alignment, NmtError, plot_importances

SUFFIXES = (".html", ".png", ".pdf", ".svg")


def count(text: str) -> int:
    """The value of an option that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, but is '{text}'")
    return int(text)


def output(text: str) -> str:
    """The value of an option that names a page or a picture. It is checked before the training, not after it."""
    if not text.lower().endswith(SUFFIXES):
        raise argparse.ArgumentTypeError(f"must end with one of {', '.join(SUFFIXES)}, but is '{text}'")
    return text


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option `-o`, which may be repeated."""
    help_text = "draw weights: a page of texts (.html), a picture of the first (.png, .pdf, .svg); may be repeated"
    parser.add_argument("-o", "--output", metavar="FILE", action="append", type=output, default=[], help=help_text)


def draw(texts: Sequence[Alignment], outputs: Iterable[str], title: str) -> None:
    """Write what `-o` names: all texts on a page, the first one as a picture."""
    for path in outputs:
        plot_importances(texts if path.lower().endswith(".html") else texts[0], path, title=title)


def log(sentence: str) -> None:
    """Report progress on standard error, for standard output has the results."""
    print(sentence, file=sys.stderr)


def run(program: Callable[[], None]) -> None:
    """Run a program. An error is one sentence; the exit status is 1 for a file or text, 2 for a wrong command."""
    try:
        program()
    except NmtError as error:
        log(str(error))
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
