"""Every kind that a recipe can name has a class of its own, and nothing else builds a model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, get_args

import jaxtyping
import pytest
from pydantic import BaseModel, ValidationError
from torch import nn

from nmt import recipe
from nmt.model.attention import Attention, MultiHeadAttention
from nmt.model.cells import GruCell, LstmCell
from nmt.model.decoder import AttendThenUpdate, UpdateThenAttend
from nmt.model.encoder import UnrolledLayer
from nmt.model.readout import AttentionalReadout, MaxoutReadout, TanhReadout
from nmt.model.recurrent import RecurrentModel, build_model
from nmt.model.scores import AdditiveScore, ConcatScore, DotScore, GeneralScore, LocationScore
from nmt.model.windows import LocalMonotonicWindow, LocalPredictiveWindow
from tests.reference.settings import small

CELLS = {"gru": GruCell, "lstm": LstmCell}
LAYERS = {"gru": nn.GRU, "lstm": nn.LSTM}
SCORES = {
    "additive": AdditiveScore,
    "concat": ConcatScore,
    "dot": DotScore,
    "general": GeneralScore,
    "location": LocationScore,
    "none": type(None),
}
WINDOWS = {"global": type(None), "local-m": LocalMonotonicWindow, "local-p": LocalPredictiveWindow}
ORDERS: dict[str, type[nn.Module]] = {"attend-then-update": AttendThenUpdate, "update-then-attend": UpdateThenAttend}
READOUTS = {"maxout": MaxoutReadout, "tanh": TanhReadout, "attentional": AttentionalReadout}
SIDES = {"both": (1, 1), "forward": (1, 0), "reversed": (0, 1)}
"""How many layers read rightward, and how many leftward."""


def kinds(union: Any) -> list[str]:
    """The names of a discriminated union in a recipe."""
    members, *_ = get_args(union)
    return [section.model_fields["kind"].default for section in get_args(members)]


def values(section: type[BaseModel], field: str) -> list[str]:
    """The values that a setting of a recipe can have."""
    return list(get_args(section.model_fields[field].annotation))


def test_every_kind_of_the_schema_is_known_here() -> None:
    for union, classes in (
        (recipe.ScoreConfig, SCORES),
        (recipe.WindowConfig, WINDOWS),
        (recipe.OrderConfig, ORDERS),
        (recipe.ReadoutConfig, READOUTS),
    ):
        assert sorted(kinds(union)) == sorted(classes)
    for section in (recipe.EncoderConfig, recipe.DecoderConfig):
        assert sorted(values(section, "cell")) == sorted(CELLS)
    assert sorted(values(recipe.EncoderConfig, "direction")) == sorted(SIDES)


def tree_of(score: str, window: str, order: str, readout: str, **settings: Any) -> dict[str, Any]:
    tree = small(score=score, window=window, readout=readout, bridge="final", **settings)
    return tree | {"decoder": tree["decoder"] | {"order": {"kind": order}}}


def outlines(trees: Iterator[dict[str, Any]]) -> Iterator[RecurrentModel]:
    """The models of all recipes that the schema allows."""
    for tree in trees:
        try:
            config = recipe.ModelConfig.model_validate(tree)
        except ValidationError:
            continue
        yield build_model(config, source_size=7, target_size=7)


def test_every_combination_of_attention_and_decoder_is_built_of_the_classes_it_names() -> None:
    named = list(product(SCORES, WINDOWS, ORDERS, READOUTS, CELLS))
    seen = set()
    for model in outlines(tree_of(*parts, decoder_cell=cell) for *parts, cell in named):
        attention, decoder = model.decoder.attention, model.decoder
        assert isinstance(attention, Attention)
        parts = (attention.score, attention.window, decoder, decoder.readout, decoder.recurrence.cells[0])
        seen.add(tuple(map(type, parts)))
    tables: tuple[dict[str, Any], ...] = (SCORES, WINDOWS, ORDERS, READOUTS, CELLS)
    possible = {parts for parts in named if parts[0] != "none" or parts[1] == "global"}
    assert seen == {tuple(table[name] for table, name in zip(tables, parts, strict=True)) for parts in possible}


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
def test_every_encoder_is_built_of_the_classes_it_names(layer_norm: bool, heads: int) -> None:
    for cell, direction, bridge in product(CELLS, SIDES, values(recipe.DecoderConfig, "bridge")):
        tree = small(cell=cell, direction=direction, bridge=bridge, layer_norm=layer_norm, heads=heads)
        if (direction, bridge) == ("forward", "backward"):
            with pytest.raises(ValidationError):
                recipe.ModelConfig.model_validate(tree)
            continue
        [model] = outlines(iter([tree]))
        encoder = model.encoder
        assert (len(encoder.rightward), len(encoder.leftward)) == SIDES[direction]
        for layer in [*encoder.rightward, *encoder.leftward]:
            assert type(layer) is (UnrolledLayer if layer_norm else LAYERS[cell])
            assert not isinstance(layer, UnrolledLayer) or type(layer.cell) is CELLS[cell]
        assert type(model.decoder.attention) is (MultiHeadAttention if heads == 2 else Attention)
        assert model.bridge.kind == bridge
        assert bool(list(model.bridge.parameters())) == (bridge in ("backward", "final", "mean"))


UNKNOWN = object()
PLACES = [
    ("encoder", "cell"),
    ("encoder", "direction"),
    ("attention", "score"),
    ("attention", "window"),
    ("decoder", "cell"),
    ("decoder", "order"),
    ("decoder", "readout"),
    ("decoder", "bridge"),
    ("tie",),
]


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_an_unknown_kind_raises(place: tuple[str, ...], layer_norm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where no annotation is checked, as for a user."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    config = recipe.ModelConfig.model_validate(small(layer_norm=layer_norm))
    build_model(config, source_size=7, target_size=7)
    with pytest.raises(AssertionError, match="unreachable"):
        build_model(replaced(config, place), source_size=7, target_size=7)


def replaced(section: Any, place: tuple[str, ...]) -> Any:
    """A part of a recipe that names something unknown, past its validation."""
    name, *rest = place
    value = replaced(getattr(section, name), tuple(rest)) if rest else UNKNOWN
    changed = section.model_copy()
    changed.__dict__[name] = value
    return changed
