"""The help of a command on one screen: what it does, examples, options by subject, details."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from nmt.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

LONGEST_LINE = 100
"""Most columns of help texts."""
_INDENT, _GAP = "  ", "  "
"""Before a table or an example; between the columns of a table."""
_SECTIONS = re.compile(r"\n\n(Examples|Details):\n+")
_CODE = re.compile(r"`[^`]+`|(?<![\w-])--?[a-z][\w-]*")
"""What is typed or printed as it stands: text in backticks, and options."""


class ReadableHelp:
    """A command whose help is made of its docstring and its parameters.

    The docstring has one sentence, indented examples after `Examples:` and, optionally, paragraphs after `Details:`.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, as wide as the terminal up to `LONGEST_LINE`, with an empty line between blocks."""
        if sys.flags.optimize > 1:
            raise UsageError(
                "Python runs with -OO (or PYTHONOPTIMIZE=2), which removes help texts: leave that out to read them."
            )
        from rich.console import Console

        console = Console(width=_page_width(), highlight=False)
        with console.capture() as capture:
            for number, block in enumerate(self._blocks(ctx)):
                console.print(*[""] * (number > 0), *block, sep="\n")
        formatter.write("\n".join(line.rstrip() for line in capture.get().splitlines()))

    def _blocks(self, ctx: Any) -> Iterator[list[RenderableType]]:
        command: Any = self
        sentence, sections = _split(command.help)
        parameters = command.get_params(ctx)
        yield [_code(sentence), _usage(ctx.command_path, parameters, commands=hasattr(command, "commands"))]
        yield [
            _styled("Examples", "bold"),
            *(_styled(f"{_INDENT}{line.strip()}", "cyan") for line in sections["Examples"].splitlines()),
        ]
        if commands := getattr(command, "commands", {}):
            yield [_styled("Commands", "bold"), _table(_command_row(item) for item in commands.values())]
        panels: dict[str, list[Any]] = {}
        for parameter in parameters:
            title = "Options" if _is_option(parameter) else "Arguments"
            panels.setdefault(getattr(parameter, "rich_help_panel", None) or title, []).append(parameter)
        width = max(len(_name(parameter)) for parameter in parameters)
        remaining = max(_page_width() - width - len(_INDENT) - len(_GAP), 1)
        for panel, members in panels.items():
            yield [_styled(panel, "bold"), _table((_parameter_row(item, remaining) for item in members), width)]
        if "Details" in sections:
            for number, text in enumerate(sections["Details"].split("\n\n")):
                yield [*[_styled("Details", "bold")] * (number == 0), _code(_joined(text))]


class OverviewHelp(ReadableHelp):
    """The group of all commands, whose help is one line per command; it fits 24 lines of 80 columns."""

    def _blocks(self, ctx: Any) -> Iterator[list[RenderableType]]:
        group: Any = self
        usage = f"Usage: {ctx.command_path} COMMAND ...   (`{ctx.command_path} COMMAND --help` explains a command)"
        width = max(map(len, group.commands))
        panels: list[RenderableType] = []  # one block: what is bold tells the panels apart, not empty lines
        for panel, commands in groupby(group.commands.values(), lambda command: command.rich_help_panel):
            panels += [_styled(panel, "bold"), _table((_command_row(item) for item in commands), width)]
        options = "  ".join(", ".join(_names(option)) for option in group.get_params(ctx))
        yield [_code(group.help), _code(usage), *panels, _code(f"Options: {options}"), _code(group.epilog)]


def _page_width() -> int:
    return min(shutil.get_terminal_size().columns, LONGEST_LINE)


def _split(docstring: str) -> tuple[str, dict[str, str]]:
    """The first sentence of a docstring, and its sections by title."""
    sentence, *parts = _SECTIONS.split(cleandoc(docstring))
    return _joined(sentence), dict(zip(parts[::2], parts[1::2], strict=True))


def _joined(text: str) -> str:
    return " ".join(text.split())


# --- parameters and commands --------------------------------------------------------------------------------------


def _usage(path: str, parameters: Iterable[Any], *, commands: bool) -> Text:
    """How to call a command: its arguments and required options by name."""
    words = ["COMMAND"] if commands else []
    for parameter in parameters:
        if not _is_option(parameter):
            words.append(_name(parameter) if parameter.required else f"[{_name(parameter)}]")
        elif parameter.required:
            words.append(f"{parameter.opts[0]} {parameter.metavar}")
    return _code(" ".join(["Usage:", path, *words, "[OPTIONS]"]))


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _name(parameter: Any) -> str:
    """What stands on the left of a parameter's explanation, such as `-o, --output FILE`."""
    if not _is_option(parameter):
        return f"{parameter.metavar}{'...' * (parameter.nargs == -1)}"
    value = "" if parameter.is_flag else f" {parameter.metavar}"
    names = _names(parameter)
    return f"{' ' * 4 * (len(names) == 1)}{', '.join(names)}{value}"


def _names(option: Any) -> list[str]:
    """The names of an option, the short one first."""
    return sorted(option.opts, key=len)


def _parameter_row(parameter: Any, width: int) -> tuple[Text, Text]:
    """The name of a parameter and its explanation, whose note `[...]` starts a line if it does not fit on the last one."""
    explanation = _code(parameter.help)
    if note := _note(parameter):
        fits = len(wrap(parameter.help, width)[-1]) + len(f" [{note}]") <= width
        explanation.append(" " if fits else "\n").append(f"[{note}]", "dim")
    name = _styled(_name(parameter))
    name.highlight_regex(r"--?[a-z][\w-]*", "cyan")
    return name, explanation


def _note(parameter: Any) -> str:
    """Whether a parameter is required, or what it is without being set; nothing for flags."""
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return f"default: {parameter.show_default}"
    if getattr(parameter, "is_flag", False) or not parameter.show_default:
        return ""
    return f"default: {parameter.default}"


def _command_row(command: Any) -> tuple[Text, Text]:
    """The name of a command and its sentence."""
    return _styled(command.name, "cyan"), _code(_split(command.help)[0])


# --- text ---------------------------------------------------------------------------------------------------------


def _table(rows: Iterable[tuple[Text, Text]], width: int | None = None) -> RenderableType:
    """Two columns, indented; the first is `width` wide, or as wide as its longest text."""
    from rich.padding import Padding
    from rich.table import Table

    table = Table.grid(padding=(0, len(_GAP), 0, 0))
    table.add_column(width=width, no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, len(_INDENT)))


def _styled(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style)


def _code(text: str) -> Text:
    """Text in which options and what is in backticks stand out."""
    result = _styled(text)
    result.highlight_regex(_CODE, "cyan")
    return result
