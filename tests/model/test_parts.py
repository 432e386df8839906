"""Encoder and dropout alone: the equations and what holds of them. `test_recurrent.py` has the gradients."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt import recipe
from nmt.model.cells import build_cell
from nmt.model.dropout import Dropout, WordDropout
from nmt.model.encoder import Encoder
from nmt.model.recurrent import RecurrentModel
from tests.model.models import weights_of
from tests.pairwise import pairwise_cases
from tests.reference import recurrent
from tests.reference.settings import CELLS, DIRECTIONS, small

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def randomized(module: ModuleT) -> ModuleT:
    torch.manual_seed(1)
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.7)
    return module.double()


def doubles(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


# --- encoder ------------------------------------------------------------------------------------------------------


KINDS = pairwise_cases(
    {
        "cell": CELLS,
        "direction": DIRECTIONS,
        "layers": [1, 2],
        "layer_norm": [False, True],
        "residual": [False, True],
    }
)


def encoder_of(kind: dict[str, Any], *, keeps_cells: bool = False) -> Encoder:
    config = recipe.EncoderConfig.model_validate({**kind, "hidden": 2})
    dropout = recipe.DropoutConfig(annotations=0, recurrent=0)
    return randomized(Encoder(config, embedding=3, dropout=dropout, keeps_cells=keeps_cells))


@pytest.mark.parametrize("kind", KINDS)
def test_annotations_and_final_states_follow_the_equations(kind: dict[str, Any]) -> None:
    keeps_cells = kind["cell"] == "lstm"
    encoder, lengths = encoder_of(kind, keeps_cells=keeps_cells), (4, 1, 3)
    embedded, mask = doubles(3, 4, 3), torch.arange(4).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)
    with torch.no_grad():
        encoded = encoder(embedded, mask)
    for row, length in enumerate(lengths):
        sentence = list(embedded[row, :length].numpy())
        annotations, finals, cells = recurrent.encoder(sentence, kind, weights_of(encoder))
        np.testing.assert_allclose(encoded.annotations[row, :length], annotations, rtol=0, atol=1e-10)
        np.testing.assert_allclose(encoded.final[row], finals, rtol=0, atol=1e-10)
        if keeps_cells:
            assert encoded.cell is not None
            np.testing.assert_allclose(encoded.cell[row], cells, rtol=0, atol=1e-10)
    assert (encoded.annotations[~mask] == 0).all()
    assert (encoded.cell is not None) == keeps_cells


# --- lexical readout ----------------------------------------------------------------------------------------------


def test_at_first_a_token_with_shared_weights_points_at_itself() -> None:
    tree = small(lexical=True, tie="all", embedding=64, annotation=32, embedding_scale=8.0)
    torch.manual_seed(1)
    model = RecurrentModel(recipe.RecurrentModelConfig.model_validate(tree), source_size=50, target_size=50).eval()
    source, tokens = torch.arange(5, 25).unsqueeze(1), torch.full((20,), 2)  # sentences of one token each
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    rows = torch.arange(20)
    log_probs = model.step(tokens, model.start(memory), memory, rows).log_probs[:]
    own = log_probs[rows, source.squeeze(1)]
    assert own.mean() > log_probs.exp().mean().log() + 0.1


# --- dropout ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variational", [False, True])
def test_dropout_keeps_the_expected_value(variational: bool) -> None:
    torch.manual_seed(1)
    dropped = Dropout(0.25, variational=variational)(torch.ones(200, 2, 100))
    assert sorted(dropped.unique().tolist()) == [0.0, pytest.approx(4 / 3)]
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)


def test_variational_dropout_has_one_mask_per_sentence_and_plain_dropout_one_per_position() -> None:
    torch.manual_seed(1)
    ones = torch.ones(3, 7, 40)
    sentence, position = Dropout(0.5, variational=True)(ones), Dropout(0.5, variational=False)(ones)
    assert torch.equal(sentence, sentence[:, :1].expand_as(sentence))
    assert not torch.equal(sentence[0], sentence[1])
    assert not torch.equal(position[:, 0], position[:, 1])


def test_dropout_is_off_in_evaluation_and_at_rate_zero() -> None:
    values = torch.randn(2, 3, 4)
    assert torch.equal(Dropout(0.5, variational=True).eval()(values), values)
    assert torch.equal(Dropout(0.0, variational=False)(values), values)


def test_word_dropout_drops_whole_embeddings_and_keeps_the_expected_value() -> None:
    torch.manual_seed(1)
    dropped = WordDropout(0.25)(torch.ones(100, 50, 3))
    assert torch.equal(dropped, dropped[..., :1].expand_as(dropped))
    assert dropped.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert dropped.mean().item() == pytest.approx(1, abs=0.05)
    assert torch.equal(WordDropout(0.25).eval()(dropped), dropped)


@pytest.mark.parametrize("kind", CELLS)
def test_a_mask_on_the_state_acts_on_the_recurrent_product_alone(kind: recipe.Cell) -> None:
    cell = randomized(build_cell(kind, 3))
    projected, s, c = doubles(2, cell.gates * 3), doubles(2, 3), doubles(2, 3)
    mask = torch.tensor([2.0, 0.0, 2.0], dtype=torch.float64)
    masked = cell(projected, s, c, mask.expand(2, 3))[0]
    with torch.no_grad():
        for name, weight in cell.named_parameters():
            if name in ("recurrent.weight", "recurrent_new.weight"):
                weight.mul_(mask)  # U (m * s) = (U diag m) s
    torch.testing.assert_close(masked, cell(projected, s, c)[0], rtol=0, atol=1e-12)
