"""The help of every command, as a user sees it: one screen, two examples that parse, and what each option is if left out."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import typer

from nmt.cli import app
from nmt.corpora.catalogue import lookup
from nmt.corpora.sacrebleu_sets import PREFIX, describe_test_set
from tests.commands import ROOT as REPOSITORY
from tests.commands import good, nmt

ROOT: Any = typer.main.get_command(app)
HELP_OPTIONS = ["-h", "--help"]
"""A command keeps the names that it is first shown with."""
LINES = 50
"""Most lines of a help text at 100 columns."""


def walk(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, by its words after `nmt`."""
    for name, member in command.commands.items():
        yield " ".join([*path, name]), member
        if hasattr(member, "commands"):
            yield from walk(member, *path, name)


COMMANDS = dict(walk(ROOT))
LEAVES = [name for name, command in COMMANDS.items() if not hasattr(command, "commands")]


@cache
def page(name: str, columns: int = 100) -> list[str]:
    """The lines of the help of a command, in a terminal of that width."""
    command = COMMANDS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        return str(command.get_help(context(command, name))).splitlines()


def test_a_page_is_what_the_command_prints() -> None:
    assert good(nmt("translate", "--help", COLUMNS="80")).splitlines() == page("translate", 80)


def parameters(name: str) -> list[Any]:
    command = COMMANDS[name]
    return list(command.get_params(context(command, name)))


def context(command: Any, name: str) -> Any:
    return command.context_class(command, info_name=f"nmt {name}", help_option_names=HELP_OPTIONS)


def examples(name: str) -> list[str]:
    lines = page(name)
    start = lines.index("Examples") + 1
    return [line.strip() for line in lines[start : lines.index("", start)]]


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


def test_the_walk_finds_commands_and_sub_commands() -> None:
    assert {"train", "translate", "recipe", "recipe show", "corpora", "corpora fetch"} <= COMMANDS.keys()
    assert "recipe" not in LEAVES


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_fits_a_screen(name: str) -> None:
    lines = page(name)
    assert len(lines) <= LINES
    for columns in (60, 80, 100, 200):
        assert max(map(len, page(name, columns))) <= min(columns, 100)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_is_a_sentence_a_usage_and_two_examples(name: str) -> None:
    sentence, usage, blank, heading, *_ = page(name)
    assert re.fullmatch(r"[A-Z].*[^.]\.", sentence)
    assert usage.startswith(f"Usage: nmt {name} ")
    assert (blank, heading) == ("", "Examples")
    assert len(examples(name)) == 2
    assert all(f"nmt {name.split(maxsplit=1)[0]}" in example for example in examples(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_parses(name: str) -> None:
    for line in examples(name):
        names = [parse(arguments) for arguments in calls(line)]
        assert any(parsed.startswith(name) or name.startswith(parsed) for parsed in names), line


def test_a_wrong_example_would_not_parse() -> None:
    with pytest.raises(typer.BadParameter.__bases__[0], match="No such option"):
        parse(["translate", "runs/a", "--beam", "5", "--bream", "7"])
    assert list(calls('A=1 nmt info "x y" | jq .a > b; nmt train c')) == [["info", "x y"], ["train", "c"]]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_if_left_out(name: str) -> None:
    text = " ".join(" ".join(page(name)).split())
    options = [item for item in parameters(name) if item.param_type_name == "option"]
    for option in options:
        assert f"{option.opts[0]}" in text
    valued = [item for item in options if not item.is_flag]
    explained = [item for item in parameters(name) if item not in options and item.show_default]
    assert text.count("[required]") == sum(item.required for item in parameters(name))
    assert text.count("[default: ") == sum(not item.required for item in valued) + len(explained)
    assert "[default: None]" not in text
    assert all(re.fullmatch(r"[^a-z\s]+|\S*\|(none|all)", item.metavar) for item in valued)  # not a Python type


@pytest.mark.parametrize("name", LEAVES)
def test_every_choice_of_an_option_is_named(name: str) -> None:
    words = set(re.findall(r"[\w-]+", " ".join(page(name))))
    hints = get_type_hints(COMMANDS[name].callback)
    for parameter, hint in hints.items():
        for kind in (hint, *get_args(hint)):
            if get_origin(kind) is Literal:
                assert set(get_args(kind)) <= words, parameter


def test_some_options_have_choices() -> None:
    hints = get_type_hints(COMMANDS["align"].callback)
    assert get_args(hints["level"]) == ("words", "tokens")
    assert get_args(get_args(hints["weights"])[0]) == ("posterior", "attention")
    assert "mutual" in get_args(get_args(hints["extract"])[0])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_in_the_text_exists(name: str) -> None:
    text = " ".join(page(name))
    mentions = re.findall(r"(?:nmt (\w+) )?(?<![\w-])(--[a-z][a-z-]*)", text)
    assert mentions
    for other, option in mentions:
        known = {option for item in parameters(other or name) for option in item.opts}
        assert option in known | {"--help"}


@pytest.mark.parametrize(("columns", "longest"), [(60, 60), (80, 80), (200, 100)])
def test_help_is_as_wide_as_the_terminal_up_to_100_columns(columns: int, longest: int) -> None:
    lines = page("align", columns)
    assert longest - 5 <= max(map(len, lines)) <= longest
    details = lines[lines.index("Details") + 1 :]
    full = [len(line) for line, after in pairwise(details) if line and after]
    assert min(full) > longest - 25  # paragraphs are filled, wherever the source breaks its lines


def test_columns_of_a_help_line_up() -> None:
    lines = page("translate")
    rows = [re.match(r"  (?:-\w, |    )--\S+(?: [A-Z]\S*)? +", line) for line in lines]
    assert len({row.end() for row in rows if row}) == 1
    assert sum(row is not None for row in rows) == sum(
        item.param_type_name == "option" for item in parameters("translate")
    )


def test_the_first_help_fits_a_screen() -> None:
    lines = nmt("--help", COLUMNS="80").stdout.decode().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for name, command in ROOT.commands.items():
        [line] = [line for line in lines if line.startswith(f"  {name} ")]
        assert line.endswith(command.help.split("\n")[0])


def test_the_first_help_has_two_examples_that_parse() -> None:
    [line] = [line for line in nmt("--help").stdout.decode().splitlines() if line.startswith("First steps: ")]
    assert [parse(arguments) for arguments in calls(line.removeprefix("First steps: "))] == ["train", "translate"]


def test_the_corpora_of_the_help_exist() -> None:
    named = re.findall(
        r"nmt corpora (?:info|fetch) ([^\s;]+)", "\n".join(line for name in COMMANDS for line in page(name))
    )
    assert len(named) >= 4
    for name, _, split in (text.partition("/") for text in named if text.islower()):
        if name.startswith(PREFIX):
            assert describe_test_set(name)
            continue
        corpus = lookup(name)
        assert corpus
        assert not split or split in corpus.splits


HELP_OF_EACH = """
import sys
from nmt.cli import main
for command in ([], ["translate"], ["recipe", "list"]):
    sys.argv = ["nmt", *command, "--help"]
    try:
        main()
    except SystemExit as end:
        print(end.code)
"""


def test_without_docstrings_there_is_a_sentence() -> None:
    environment = {**os.environ, "PYTHONOPTIMIZE": "2", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", HELP_OF_EACH]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["2"] * 3
    assert ended.stderr.count("\n") == ended.stderr.count("removes help texts") == 3


def test_a_deleted_folder_is_named_in_a_sentence(tmp_path: Path) -> None:
    """PyTorch ends the program there, since it does not find its own libraries."""
    script = f"cd {tmp_path} && rmdir {tmp_path} && exec {sys.executable} -m nmt info x"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "nmt: Cannot use the current folder: No such file or directory. Change to another one.\n"
