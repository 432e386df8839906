"""The initial weights of both papers: the distribution of each kind of weight, in models with every kind of module."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt import recipe
from nmt.model.recurrent import RecurrentModel

BAHDANAU = {"kind": "gaussian", "std": 0.01, "score_std": 0.001}
LUONG = {"kind": "uniform", "bound": 0.1}
WIDE: dict[str, Any] = {
    "embedding": 40,
    "tie": "none",
    "encoder": {"hidden": 30},
    "attention": {"score": {"kind": "additive", "size": 50}},
    "decoder": {"hidden": 60, "order": {"kind": "update-then-attend"}, "readout": {"kind": "maxout", "size": 20}},
}


def weights(**settings: Any) -> dict[str, Tensor]:
    torch.manual_seed(1)
    config = recipe.RecurrentModelConfig.model_validate(WIDE | settings)
    return dict(RecurrentModel(config, source_size=300, target_size=200).named_parameters())


def is_recurrent(name: str) -> bool:
    return "weight_hh" in name or (".recurrent" in name and name.endswith("weight"))


def encoder_and_decoder(**settings: Any) -> dict[str, Any]:
    return {side: WIDE[side] | settings for side in ("encoder", "decoder")}


@pytest.mark.parametrize("cell", ["gru", "gru-reset-before", "lstm"])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_gaussian_weights_are_those_of_bahdanau_et_al(cell: str, layer_norm: bool) -> None:
    stacks = encoder_and_decoder(cell=cell, layers=2, layer_norm=layer_norm)
    for name, weight in weights(initialization=BAHDANAU, **stacks).items():
        values = weight.detach()
        if ".norm_" in name:
            assert torch.equal(values, torch.full_like(values, float(name.endswith("weight")))), name
        elif is_recurrent(name):
            for block in values.split(values.shape[1]):
                torch.testing.assert_close(block @ block.T, torch.eye(len(block)), rtol=0, atol=1e-5)
        elif values.ndim == 1 or name.endswith("score.v.weight"):
            assert not values.any(), name
        else:
            std = 0.001 if ".score." in name else 0.01
            error = std / math.sqrt(values.numel())
            assert values.std().item() == pytest.approx(std, abs=4 * error), name
            assert values.mean().item() == pytest.approx(0, abs=4 * error), name


def test_uniform_weights_are_those_of_luong_et_al() -> None:
    stacks = encoder_and_decoder(cell="lstm", layers=2)
    for name, weight in weights(initialization=LUONG, **stacks).items():
        values = weight.detach()
        assert values.abs().max() <= 0.1, name
        assert values.numel() == 1 or values.std().item() == pytest.approx(0.1 / math.sqrt(3), rel=0.25), name


@pytest.mark.parametrize("kind", ["general", "concat", "location"])
def test_every_matrix_of_a_score_is_that_of_the_score(kind: str) -> None:
    attention = {"score": {"kind": kind}, "window": "local-p"}
    parameters = weights(initialization=BAHDANAU, attention=attention)
    of_score = {name: value for name, value in parameters.items() if ".score." in name and ".v." not in name}
    assert of_score
    assert all(value.std() < 0.0015 for value in of_score.values())
    assert all(
        value.std() > 0.005
        for name, value in parameters.items()
        if ".window." in name and value.ndim > 1 and len(value) > 1
    )


def test_tied_embeddings_start_the_same() -> None:
    parameters = weights(initialization=BAHDANAU, tie="target", embedding=20)
    assert parameters["target_embedding.weight"].std().item() == pytest.approx(0.01, rel=0.1)
    assert "output.weight" not in parameters
