"""The programs of `recipes/classification` as commands."""

import command_line
import pytest

from tests.classification.programs import run


def test_a_program_runs_by_its_path() -> None:
    output, _ = run("csv_labels.py", "--help")
    assert "Learn the labels of texts" in output
    assert "--label COLUMN" in output


def test_an_interrupt_ends_a_program_without_a_traceback() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        command_line.run(interrupted)
    assert end.value.code == 130
