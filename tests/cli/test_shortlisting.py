"""`nmt shortlist` and `nmt translate --shortlist` as a user runs them."""

import shutil
from pathlib import Path

import yaml

from tests.cli.conftest import SOURCE
from tests.commands import bad, good, nmt


def test_a_list_of_the_training_text_lies_in_the_model_folder_and_serves(untrained: Path, tmp_path: Path) -> None:
    shutil.copytree(untrained / "en-de", tmp_path / "model")
    recipe = yaml.safe_load((tmp_path / "model/recipe.yaml").read_text())
    recipe["data"]["train"] = str(untrained / "text.{en,de}")
    (tmp_path / "model/recipe.yaml").write_text(yaml.safe_dump(recipe))
    made = good(nmt("shortlist", "model", "--candidates", 3, "--frequent", 2, cwd=tmp_path))
    assert made == "model/shortlist.safetensors\n"
    options = ["-i", untrained / "text.en", "--shortlist", made.strip()]
    assert good(nmt("translate", "model", *options, cwd=tmp_path)).count("\n") == len(SOURCE)
    refused = nmt("translate", untrained / "words-en-de", *options, cwd=tmp_path)
    assert "made for another source vocabulary" in bad(refused, 1)


def test_a_list_of_given_text_goes_where_it_should(untrained: Path, tmp_path: Path) -> None:
    path = tmp_path / "new/list"
    assert good(nmt("shortlist", "en-de", "-s", "text.en", "-t", "text.de", "-o", path, cwd=untrained)) == f"{path}\n"
    assert path.is_file()
