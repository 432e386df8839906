"""YAML is read as it looks: no surprising types, no aliases, no tags; errors name the line."""

from pathlib import Path

import pytest

from nmt.recipe import parse_yaml
from tests.recipe.minimal import refusal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-3", -3),
        ("012", 12),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("2024-01-31", "2024-01-31"),
        ("12:30:00", "12:30:00"),
        ("1_000", "1_000"),
        ("0x1f", "0x1f"),
        (".nan", ".nan"),
        ("{a: [1, 2e0]}", {"a": [1, 2.0]}),
    ],
)
def test_yaml_reads_what_is_written(text: str, value: object) -> None:
    read = parse_yaml(text, "here")
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: a\nname: b\n", "line 2: the key 'name' occurs twice."),
        ("name: a\ndata:\n  source: en\n  source: de\n", "line 4: the key 'source' occurs twice."),
        ("name: [a\n", "line 2"),
        ("name: a\n\tseed: 1\n", "line 2"),
        ("- a\n- b\n", "a recipe is a mapping of sections (name, data, model, ...), but this is a list."),
        ("", "but this is nothing."),
        ("name: !!python/object:os.system x\n", "line 1"),
        ("name: a\n---\nname: b\n", "line 2"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    message = refusal(path)
    assert message.startswith(str(path))
    assert sentence in message


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("name: Ä".encode("latin-1"))
    assert "Cannot read the recipe" in refusal(tmp_path / "latin.yaml")
    assert "Cannot read the recipe" in refusal(tmp_path / "nowhere.yaml")
    assert "Cannot read the recipe" in refusal(tmp_path)
