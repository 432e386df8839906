"""The help of every command: a sentence, two examples that parse, and all options with what they are if left out."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from nmt.cli import app

ROOT: Any = typer.main.get_command(app)
HELP_OPTIONS = ["-h", "--help"]
TORCHRUN = ["--nproc-per-node", "--max-restarts"]


def walk(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, by its words after `nmt`."""
    for name, member in command.commands.items():
        yield " ".join([*path, name]), member
        if hasattr(member, "commands"):
            yield from walk(member, *path, name)


COMMANDS = dict(walk(ROOT))


@cache
def page(name: str) -> str:
    """The help of a command in a wide terminal, where no line is broken, without the borders of its panels."""
    ended = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "500"})
    assert ended.exit_code == 0
    return "\n".join(line.strip("╭─╮│╰╯ ") for line in ended.output.splitlines())


def parameters(name: str) -> list[Any]:
    command = COMMANDS[name]
    return list(command.get_params(command.context_class(command, help_option_names=HELP_OPTIONS)))


def examples(name: str) -> list[str]:
    return page(name).partition("Examples\n")[2].partition("\n\n")[0].splitlines()


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each `nmt` in a line of shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|>;")
    words.whitespace_split = True
    call: list[str] = []
    for word in [*words, ";"]:
        if word in {"|", ">", ";"}:
            while call and re.fullmatch(r"[A-Z_]+=.*", call[0]):
                call.pop(0)
            if call and call[0] == "nmt":
                yield call[1:]
            call = []
        else:
            call.append(word)


def parse(arguments: list[str]) -> str:
    """Parse a call without running it; returns the words that name its command."""
    command, words = ROOT, []
    while arguments and hasattr(command, "commands"):
        words.append(arguments[0])
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.make_context(" ".join(["nmt", *words]), arguments, help_option_names=HELP_OPTIONS)
    return " ".join(words)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_needs_no_manual(name: str) -> None:
    text = page(name)
    usage, sentence = text.strip().split("\n\n")[:2]
    assert usage.startswith(f"Usage: nmt {name} ")
    assert re.fullmatch(r"[A-Z].*[^.]\.", sentence)
    assert len(examples(name)) == 2
    for line in examples(name):
        names = [parse(arguments) for arguments in calls(line)]
        assert any(parsed.startswith(name) or name.startswith(parsed) for parsed in names), line
    valued = [item for item in parameters(name) if item.param_type_name == "option" and not item.is_flag]
    for option in valued:
        start = re.compile(rf"[* ]*{option.opts[0]}\s.*{re.escape(option.metavar)}")
        [row] = filter(start.match, text.splitlines())
        assert "[required]" in row or "[default: " in row
    words = set(re.findall(r"[\w-]+", text))
    for parameter, hint in get_type_hints(COMMANDS[name].callback or print).items():
        for kind in (hint, *get_args(hint)):
            if get_origin(kind) is Literal:
                assert set(get_args(kind)) <= words, parameter
    for command, mention in re.findall(r"(?:nmt (\w+) )?(?<![\w-])(--[a-z][a-z-]*)", text):
        assert mention in {
            "--help",
            *TORCHRUN,
            *(name for item in parameters(command or name) for name in [*item.opts, *item.secondary_opts]),
        }


def test_the_first_help_has_all_commands_and_two_examples_that_parse() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    for name, command in ROOT.commands.items():
        assert re.search(rf"│ {name} +{re.escape(command.help.split(chr(10))[0])}", text)
    [line] = [line.strip() for line in text.splitlines() if "First steps: " in line]
    assert [parse(arguments) for arguments in calls(line.removeprefix("First steps: "))] == ["train", "translate"]
