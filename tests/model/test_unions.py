"""Every kind in a recipe builds its own class, and unknown kinds raise."""

from __future__ import annotations

from typing import Any, get_args

import jaxtyping
import pytest
from pydantic import BaseModel
from torch import nn

from nmt import recipe
from nmt.model.attention import Attention, MultiHeadAttention
from nmt.model.cells import GruCell, LstmCell, ResetBeforeGruCell
from nmt.model.decoder import AttendThenUpdate, UpdateThenAttend
from nmt.model.encoder import UnrolledLayer
from nmt.model.readout import AttentionalReadout, MaxoutReadout, StateReadout, TanhReadout
from nmt.model.recurrent import RecurrentModel
from nmt.model.scores import AdditiveScore, ConcatScore, DotScore, GeneralScore, LocationScore
from nmt.model.windows import LocalMonotonicWindow, LocalPredictiveWindow
from tests.pairwise import Case, pairwise_cases
from tests.reference.settings import small

CELLS = {"gru": GruCell, "gru-reset-before": ResetBeforeGruCell, "lstm": LstmCell}
LAYERS = {"gru": nn.GRU, "gru-reset-before": UnrolledLayer, "lstm": nn.LSTM}
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
READOUTS = {"maxout": MaxoutReadout, "tanh": TanhReadout, "attentional": AttentionalReadout, "state": StateReadout}
SIDES = {"both": (1, 1), "forward": (1, 0), "reversed": (0, 1)}
"""Number of layers that read left to right, and right to left."""


def kinds(union: Any) -> list[str]:
    """The kinds of a discriminated union."""
    members, *_ = get_args(union)
    return [section.model_fields["kind"].default for section in get_args(members)]


def values(section: type[BaseModel], field: str) -> list[str]:
    """The values of a setting."""
    return list(get_args(section.model_fields[field].annotation))


def test_the_tables_list_every_kind_of_the_schema() -> None:
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


def model_of(tree: dict[str, Any]) -> RecurrentModel:
    return RecurrentModel(recipe.RecurrentModelConfig.model_validate(tree), source_size=7, target_size=7)


def test_every_pair_of_settings_of_attention_and_decoder_builds_its_classes() -> None:
    tables: dict[str, dict[str, Any]]
    tables = {"score": SCORES, "window": WINDOWS, "order": ORDERS, "readout": READOUTS, "cell": CELLS}
    for case in pairwise_cases({name: list(table) for name, table in tables.items()}, nothing_to_look_at):
        model = model_of(tree_of(*list(case.values())[:-1], decoder_cell=case["cell"]))
        attention, decoder = model.decoder.attention, model.decoder
        assert isinstance(attention, Attention)
        parts = (attention.score, attention.window, decoder, decoder.readout, decoder.recurrence.cells[0])
        assert tuple(map(type, parts)) == tuple(table[case[name]] for name, table in tables.items())


def nothing_to_look_at(case: Case) -> bool:
    return case.get("score") == "none" and case.get("window", "global") != "global"


def test_every_pair_of_settings_of_encoder_and_bridge_builds_its_classes() -> None:
    factors = {"cell": list(CELLS), "direction": list(SIDES), "bridge": values(recipe.DecoderConfig, "bridge")}
    for case in pairwise_cases(factors | {"layer_norm": [False, True], "heads": [1, 2]}, no_backward_state):
        model = model_of(small(**case))
        encoder = model.encoder
        assert (len(encoder.rightward), len(encoder.leftward)) == SIDES[case["direction"]]
        for layer in [*encoder.rightward, *encoder.leftward]:
            assert type(layer) is (UnrolledLayer if case["layer_norm"] else LAYERS[case["cell"]])
            assert not isinstance(layer, UnrolledLayer) or type(layer.cell) is CELLS[case["cell"]]
        assert type(model.decoder.attention) is (MultiHeadAttention if case["heads"] == 2 else Attention)
        assert model.bridge.kind == case["bridge"]
        assert bool(list(model.bridge.parameters())) == (case["bridge"] in ("backward", "final", "mean"))


def no_backward_state(case: Case) -> bool:
    return (case.get("direction"), case.get("bridge")) == ("forward", "backward")


UNKNOWN = object()
SETTINGS = [
    ("encoder", "cell"),
    ("encoder", "direction"),
    ("attention", "score"),
    ("attention", "window"),
    ("attention", "normalizer"),
    ("decoder", "cell"),
    ("decoder", "order"),
    ("decoder", "readout"),
    ("decoder", "bridge"),
    ("tie",),
]


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("setting", SETTINGS, ids=".".join)
def test_an_unknown_kind_raises(setting: tuple[str, ...], layer_norm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without the run-time type checks of the tests."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    config = recipe.RecurrentModelConfig.model_validate(small(layer_norm=layer_norm))
    RecurrentModel(config, source_size=7, target_size=7)
    with pytest.raises(AssertionError, match="unreachable"):
        RecurrentModel(replaced(config, setting), source_size=7, target_size=7)


def replaced(section: Any, setting: tuple[str, ...]) -> Any:
    """A section in which one setting has an unknown value, bypassing validation."""
    name, *rest = setting
    value = replaced(getattr(section, name), tuple(rest)) if rest else UNKNOWN
    copy = section.model_copy()
    copy.__dict__[name] = value
    return copy
