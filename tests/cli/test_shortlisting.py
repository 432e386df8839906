"""`nmt shortlist` and `nmt translate --shortlist` as a user runs them."""

from pathlib import Path

import pytest

from nmt.bundle.folder import Bundle
from nmt.text.subwords import Kind, Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import bad, good, nmt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models with other vocabularies, and a text in two languages."""
    root = tmp_path_factory.mktemp("shortlist")
    for name, lines in (("text.en", TEXT), ("text.de", TEXT[::-1]), ("short.de", TEXT[:2])):
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    made = small_recipe()
    data = made.data.model_copy(update={"train": "text"})
    models: list[tuple[str, Kind, int]] = [("model", "char", 20), ("words", "word", 13)]
    for name, kind, size in models:
        subwords = Subwords.train(TEXT, kind=kind, size=size, byte_fallback=False)
        Bundle.fresh(made.model_copy(update={"data": data}), subwords, subwords).save(root / name)
    return root


def test_a_list_of_the_training_text_lies_in_the_model_folder_and_serves(folder: Path) -> None:
    path = "model/shortlist.safetensors"
    assert good(nmt("shortlist", "model", "--candidates", 3, "--frequent", 2, cwd=folder)) == f"{path}\n"
    found = good(nmt("translate", "model", "-i", "text.en", "--shortlist", path, cwd=folder))
    assert found.count("\n") == len(TEXT)
    assert "made for another source vocabulary" in bad(
        nmt("translate", "words", "-i", "text.en", "--shortlist", path, cwd=folder), 1
    )


def test_a_list_of_given_text_goes_where_it_should(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "list"
    arguments = ["-s", "text.en", "-t", "text.de", "-o", path]
    assert good(nmt("shortlist", "model", *arguments, cwd=folder)) == f"{path}\n"
    assert path.is_file()
