"""The recipes of both papers: the settings as printed, one step from each system to the next, and an update of each."""

from __future__ import annotations

from typing import Any

import pytest

from nmt.recipe import Recipe, changed_keys, find_recipe, load_recipe, shipped_recipes, value_at

PAPERS = sorted(name for name in shipped_recipes() if name.startswith("papers/"))
FULL = [name for name in PAPERS if "/multi30k/" not in name]
SCALED = [name for name in PAPERS if "/multi30k/" in name]

BAHDANAU = {
    "subwords.kind": "word",
    "subwords.joint": False,
    "model.embedding": 620,
    "model.tie": "none",
    "model.embedding_scale": 1.0,
    "model.encoder.cell": "gru-reset-before",
    "model.encoder.hidden": 1000,
    "model.decoder.cell": "gru-reset-before",
    "model.decoder.hidden": 1000,
    "model.decoder.order.kind": "attend-then-update",
    "model.decoder.readout.kind": "maxout",
    "model.decoder.readout.size": 500,
    "model.initialization": {"kind": "gaussian", "std": 0.01, "score_std": 0.001},
    "training.optimizer": {"kind": "adadelta", "rate": 1.0, "rho": 0.95, "epsilon": 1e-6, "weight_decay": 0.0},
    "training.clip_norm": 1.0,
    "training.batch_sentences": 80,
    "training.sort_within": 20,
    "training.shuffle": "once",
    "training.normalization": "sentences",
    "training.label_smoothing": 0.0,
    "training.ema": None,
}
"""Bahdanau et al. (2015): 3.1, 4.2, A.2.3, B.1, B.2."""

LUONG = {
    "subwords.kind": "word",
    "subwords.joint": False,
    "data.filters.max_length": 50,
    "model.embedding": 1000,
    "model.tie": "none",
    "model.encoder.cell": "lstm",
    "model.encoder.hidden": 1000,
    "model.encoder.layers": 4,
    "model.decoder.cell": "lstm",
    "model.decoder.hidden": 1000,
    "model.decoder.layers": 4,
    "model.decoder.order.kind": "update-then-attend",
    "model.decoder.bridge": "copy",
    "model.initialization": {"kind": "uniform", "bound": 0.1},
    "training.optimizer": {"kind": "sgd", "rate": 1.0, "momentum": 0.0, "weight_decay": 0.0},
    "training.clip_norm": 5.0,
    "training.batch_sentences": 128,
    "training.normalization": "sentences",
    "training.label_smoothing": 0.0,
    "training.ema": None,
}
"""Luong et al. (2015), 4.1."""


def value(recipe: Recipe, path: str) -> Any:
    return value_at(recipe.model_dump(), path)


@pytest.mark.parametrize("name", FULL)
def test_settings_are_those_of_the_paper(name: str) -> None:
    recipe, printed = load_recipe(find_recipe(name)), BAHDANAU if "bahdanau" in name else LUONG
    assert {path: value(recipe, path) for path in printed} == printed
    words = 30_000 if "bahdanau" in name else 50_000
    assert recipe.subwords.size == words + 4, "padding, UNK, begin and end"


@pytest.mark.parametrize(
    ("name", "length", "updates", "attention"),
    [  # Bahdanau et al. (2015), 4.2 and table 2
        ("rnnsearch-30", 30, 471_000, "additive"),
        ("rnnsearch-50", 50, 288_000, "additive"),
        ("rnnencdec-30", 30, 846_000, "none"),
        ("rnnencdec-50", 50, 600_000, "none"),
    ],
)
def test_the_four_models_of_bahdanau_et_al(name: str, length: int, updates: int, attention: str) -> None:
    recipe = load_recipe(find_recipe(f"papers/bahdanau-2015/{name}"))
    assert recipe.data.filters.max_length == length
    assert recipe.training.updates == updates
    assert value(recipe, "model.attention.score.kind") == attention
    assert value(recipe, "model.encoder.direction") == ("both" if attention == "additive" else "forward")


STEPS = {
    "reverse": ("base", {"model.encoder.direction"}),
    "dropout": (
        "reverse",
        {f"model.dropout.{place}" for place in ("embedding", "layers", "readout")}
        | {"training.epochs", "training.schedule.start"},
    ),
    "global-location": (
        "dropout",
        {f"model.attention.score.{key}" for key in ("kind", "max_source")} | {"model.decoder.readout.kind"},
    ),
    "feed": ("global-location", {f"model.decoder.order.{key}" for key in ("input_feeding", "feed_scale")}),
    "local-p": (
        "feed",
        {f"model.attention.score.{key}" for key in ("kind", "max_source")}
        | {f"model.attention.window.{key}" for key in ("kind", "half_width")},
    ),
}
"""Luong et al. (2015), table 1: what each system changes of the one before."""


@pytest.mark.parametrize("folder", ["luong-2015", "multi30k"])
@pytest.mark.parametrize("name", STEPS)
def test_each_system_of_luong_et_al_changes_only_what_its_row_says(name: str, folder: str) -> None:
    before, changes = STEPS[name]
    recipe, base = load_recipe(find_recipe(f"papers/{folder}/{name}")), find_recipe(f"papers/{folder}/{before}")
    assert set(changed_keys(recipe, base)) - {"name"} == changes


def test_a_scaled_model_has_a_quarter_of_the_width() -> None:
    for name in SCALED:
        system = name.rpartition("/")[2]
        paper = "bahdanau-2015" if system.startswith("rnn") else "luong-2015"
        path = find_recipe(f"papers/{paper}/{system}" + ("-50" if paper == "bahdanau-2015" else ""))
        original, scaled = load_recipe(path), load_recipe(find_recipe(name))
        changed = set(changed_keys(scaled, path))
        widths = {path for path in changed if path.startswith("model.")}
        assert widths
        assert all(value(scaled, path) == value(original, path) / 4 for path in widths), name
        others = {"data", "name", "subwords.size", "training.epochs", "training.updates", "training.validation.every"}
        assert all(path.startswith("data.") or path in others for path in changed - widths), name
        assert scaled.data.filters == original.data.filters
