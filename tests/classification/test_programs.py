"""The programs of `recipes/classification` as commands."""

import command_line
import pytest

from tests.classification.programs import FOLDER
from tests.commands import good, python

BY_ITS_PATH = (
    "import runpy, sys; del sys.argv[0]; sys.path.insert(0, {!r}); runpy.run_path(sys.argv[0], run_name='__main__')"
)


def test_a_program_runs_by_its_path() -> None:
    output = good(python(BY_ITS_PATH.format(str(FOLDER)), FOLDER / "csv_labels.py", "--help"))
    assert "Learn the labels of texts" in output
    assert "--label COLUMN" in output


def test_an_interrupt_ends_a_program_without_a_traceback() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        command_line.run(interrupted)
    assert end.value.code == 130
