"""The recipes that ship: found by name, complete, and as different as their folders promise."""

from pathlib import Path

import pytest
import torch

from nmt.model.build import build_model
from nmt.recipe import (
    EXAMPLE_DATA,
    RecurrentModelConfig,
    dump_recipe,
    find_recipe,
    leaves_data_open,
    load_recipe,
    parse_recipe,
    parse_yaml,
    recipe_title,
    shipped_recipes,
)

ROOT = Path(__file__).resolve().parents[2]


def test_the_shipped_recipes_are_found_by_path_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {path.relative_to(ROOT / "recipes") for path in (ROOT / "recipes").rglob("*.yaml")}
    assert {Path(f"{name}.yaml") for name in shipped_recipes()} == files
    assert find_recipe("quickstart") == find_recipe("quickstart.yaml") == find_recipe("recipes/quickstart.yaml")


def test_nobody_teaches_the_quickstart_the_links_that_its_picture_shows() -> None:
    assert load_recipe("quickstart").training.guided_alignment is None


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_every_recipe_parses_and_builds_its_model(name: str) -> None:
    path = shipped_recipes()[name]
    recipe = load_recipe(path, [f"data={EXAMPLE_DATA}"] if leaves_data_open(path) else [], choose=lambda *_: [])
    with torch.device("meta"):  # the papers' models take a gigabyte
        model = build_model(recipe.model, source_size=recipe.subwords.size, target_size=recipe.subwords.size)
    assert sum(parameter.numel() for parameter in model.parameters()) > 0
    assert recipe.data.test is not None
    title = recipe_title(path)
    assert title
    assert path.read_text("utf-8").startswith((f"# {title}: ", f"# {title}."))
    assert parse_recipe(parse_yaml(dump_recipe(recipe), name), name) == recipe


def test_every_preset_differs_from_the_first_in_attention_order_readout_and_bridge_alone() -> None:
    presets = {name: load_recipe(path) for name, path in shipped_recipes().items() if name.startswith("attention/")}
    assert len(presets) == 18 + 6
    first = presets["attention/bahdanau-rnnsearch"]
    assert isinstance(first.model, RecurrentModelConfig)
    for name, preset in presets.items():
        assert isinstance(preset.model, RecurrentModelConfig)
        assert preset.name == name.rpartition("/")[2]
        decoder = preset.model.decoder.model_copy(
            update={key: getattr(first.model.decoder, key) for key in ("order", "readout", "bridge")}
        )
        model = preset.model.model_copy(update={"attention": first.model.attention, "decoder": decoder})
        assert preset.model_copy(update={"name": first.name, "model": model}) == first
