"""JSON of strangers is refused in a sentence, however it is wrong."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.plotting.curves import read_curves
from nmt.recipe import Recipe
from nmt.runtime.json_files import parse_json, read_records
from nmt.sharing.card import recorded_scores
from nmt.training.data_file import load_data_description
from nmt.training.log import METRICS, read_validations
from tests.robustness import tiny

DEEP = "[" * 200_000


@pytest.fixture
def recipe() -> Recipe:
    return tiny.bundle().recipe


@pytest.mark.parametrize("text", [DEEP, "{", "\0" * 10, "\udcff"])
def test_what_is_no_json_of_ours_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize("content", [DEEP + "\n", '{"kind": "valid", "best": true, "bleu": "x"}\n', "\xff\n"])
@pytest.mark.parametrize("name", ["metrics.jsonl", "scores.json", "data.json"])
def test_damaged_files_of_a_model_are_a_sentence(name: str, content: str, tmp_path: Path, recipe: Recipe) -> None:
    (tmp_path / name).write_text(content.replace('"x"', '"x", "signatures": {"bleu": "s"}'), encoding="latin-1")
    read = load_data_description if name == "data.json" else lambda folder: recorded_scores(folder, recipe)
    with pytest.raises(DataError, match=f"{name}.* is damaged"):
        read(tmp_path)


@pytest.mark.parametrize("line", [DEEP, "[1]", "{", "\0" * 9])
def test_the_damaged_line_of_a_log_is_named_whoever_reads_it(line: str, tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text(f'{{"kind": "valid"}}\n\n{line}\n')
    for read in (read_records, read_curves, lambda path: read_validations(path.parent)):
        with pytest.raises(DataError, match=f"{METRICS} is damaged: line 3 is not a JSON object"):
            read(tmp_path / METRICS)


def test_a_line_that_a_crash_cut_off_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text('{"kind": "valid"}\n{"kind": "va')
    assert read_records(tmp_path / METRICS) == [(1, {"kind": "valid"})]
    assert read_validations(tmp_path) == [{"kind": "valid"}]
