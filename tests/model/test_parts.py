"""Cells, encoder, bridge and readouts alone: equations, initialization, dropout. `test_recurrent.py` has the gradients."""

from __future__ import annotations

from itertools import product
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt import recipe
from nmt.model.bridge import Bridge
from nmt.model.cells import build_cell
from nmt.model.dropout import Dropout, WordDropout
from nmt.model.encoder import Encoder, EncoderOutput
from nmt.model.readout import LexicalReadout, Readout, build_readout
from nmt.model.recurrent import RecurrentModel
from tests.model.models import weights_of
from tests.reference import decoder, recurrent
from tests.reference.settings import CELLS, DIRECTIONS, READOUTS, small

READOUT = {
    "maxout": recipe.MaxoutReadoutConfig,
    "tanh": recipe.TanhReadoutConfig,
    "attentional": recipe.AttentionalReadoutConfig,
    "state": recipe.StateReadoutConfig,
}


ModuleT = TypeVar("ModuleT", bound=nn.Module)


def randomized(module: ModuleT) -> ModuleT:
    torch.manual_seed(1)
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.7)
    return module.double()


def doubles(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_follows_its_equation(kind: recipe.Cell, layer_norm: bool) -> None:
    cell = randomized(build_cell(kind, 3, layer_norm=layer_norm))
    x, s, c = doubles(2, 4), doubles(2, 3), doubles(2, 3)
    w, b = doubles(cell.gates * 3, 4), doubles(cell.gates * 3)
    new_s, new_c = cell(x @ w.T + b, s, c if kind == "lstm" else None)
    u, b_u = recurrent.recurrent_weights(weights_of(cell))
    norms = weights_of(cell) if layer_norm else None
    for row in range(2):
        arrays = (x[row].numpy(), s[row].numpy())
        if kind == "gru":
            expected = recurrent.gru_cell(*arrays, w.numpy(), b.numpy(), u, b_u, norms)
        elif kind == "gru-reset-before":
            expected = recurrent.gru_reset_before_cell(*arrays, w.numpy(), b.numpy(), u, b_u, norms)
        else:
            expected, memory = recurrent.lstm_cell(*arrays, c[row].numpy(), w.numpy(), b.numpy(), u, b_u, norms)
            assert new_c is not None
            np.testing.assert_allclose(new_c[row].detach(), memory, rtol=0, atol=1e-10)
        np.testing.assert_allclose(new_s[row].detach(), expected, rtol=0, atol=1e-10)


# --- encoder ------------------------------------------------------------------------------------------------------


STACK: dict[str, Any] = {"layers": 1, "direction": "both", "residual": False, "layer_norm": False}
KINDS = [
    {**STACK, "cell": cell, "direction": direction, "layers": layers, "layer_norm": layer_norm, "residual": layers > 1}
    for cell, direction, layers, layer_norm in product(CELLS, DIRECTIONS, (1, 2), (False, True))
]
"""Every kind of encoder. Stacked ones are residual here; tests of whole models cover those without residual connections."""
NAMES = [f"{kind['cell']}-{kind['direction']}-{kind['layers']}{'-normed' * kind['layer_norm']}" for kind in KINDS]


def encoder_of(kind: dict[str, Any], *, keeps_cells: bool = False) -> Encoder:
    config = recipe.EncoderConfig.model_validate({**kind, "hidden": 2})
    dropout = recipe.DropoutConfig(annotations=0, recurrent=0)
    return randomized(Encoder(config, embedding=3, dropout=dropout, keeps_cells=keeps_cells))


def tensors_of(encoded: EncoderOutput) -> dict[str, Tensor]:
    tensors = {"annotations": encoded.annotations, "final": encoded.final, "cell": encoded.cell}
    return {name: value for name, value in tensors.items() if value is not None}


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
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


@pytest.mark.parametrize(("cell", "layer_norm"), list(product(CELLS, (False, True))))
def test_a_reversed_encoder_is_a_forward_one_on_the_reversed_sentence(cell: str, layer_norm: bool) -> None:
    kind = {**STACK, "cell": cell, "layers": 2, "layer_norm": layer_norm, "residual": True}
    backward, forward = (
        encoder_of({**kind, "direction": direction}, keeps_cells=cell == "lstm")
        for direction in ("reversed", "forward")
    )
    weights = backward.state_dict()
    forward.load_state_dict({name.replace("leftward", "rightward"): value for name, value in weights.items()})
    sentence = doubles(1, 4, 3)
    padded = torch.cat([sentence, doubles(1, 2, 3)], 1)
    with torch.no_grad():
        ours = backward(padded, torch.arange(6).unsqueeze(0) < 4)
        theirs = forward(sentence.flip(1), torch.ones(1, 4, dtype=torch.bool))
    torch.testing.assert_close(ours.annotations[:, :4], theirs.annotations.flip(1), rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.final, theirs.final, rtol=0, atol=1e-12)
    if cell == "lstm":
        torch.testing.assert_close(ours.cell, theirs.cell, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind["layers"] == 2])
def test_values_in_the_padding_change_nothing(kind: dict[str, Any]) -> None:
    encoder = encoder_of(kind, keeps_cells=kind["cell"] == "lstm")
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    embedded = doubles(2, 4, 3)
    noisy = torch.where(mask.unsqueeze(-1), embedded, 100 * doubles(2, 4, 3))
    with torch.no_grad():
        expected, actual = tensors_of(encoder(embedded, mask)), tensors_of(encoder(noisy, mask))
    for name, value in expected.items():
        assert torch.equal(actual[name], value), name


# --- bridge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_the_copy_bridge_has_no_weights_and_copies_the_final_states_of_each_layer(cell: str) -> None:
    sizes = {"cell": cell, "layers": 2}
    tree = {"encoder": {**sizes, "hidden": 2}, "decoder": {**sizes, "hidden": 4, "bridge": "copy"}}
    bridge = Bridge(recipe.RecurrentModelConfig.model_validate(tree))
    final, cells = doubles(3, 2, 4), doubles(3, 2, 4) if cell == "lstm" else None
    state = bridge(EncoderOutput(doubles(3, 5, 4), torch.ones(3, 5, dtype=torch.bool), final, cells))
    assert not list(bridge.parameters())
    assert torch.equal(state.hidden, final)
    assert state.cell is cells
    assert state.position.tolist() == [0, 0, 0]


# --- readouts -----------------------------------------------------------------------------------------------------


def readout_of(kind: str) -> Readout:
    return randomized(build_readout(READOUT[kind](size=2), hidden=3, embedding=4, context=5))


@pytest.mark.parametrize("kind", READOUTS)
def test_a_readout_follows_its_equation(kind: str) -> None:
    readout = readout_of(kind)
    s, word, context = doubles(2, 3), doubles(2, 4), doubles(2, 5)
    actual = readout(s, word, context).detach()
    for row in range(2):
        arrays = (s[row].numpy(), word[row].numpy(), context[row].numpy())
        expected = decoder.READOUTS[kind](*arrays, weights_of(readout))
        np.testing.assert_allclose(actual[row], expected, rtol=0, atol=1e-10)


def test_a_lexical_readout_adds_the_attended_tokens() -> None:
    inner = readout_of("tanh")
    readout = randomized(LexicalReadout(inner, embedding=2, size=2))
    s, word, context = doubles(3, 3), doubles(3, 4), doubles(3, 5)
    actual = readout(s, word, context).detach()
    for row in range(3):
        tokens = context[row, -2:].numpy()
        expected = inner(s, word, context).detach()[row].numpy() + decoder.lexical(tokens, weights_of(readout))
        np.testing.assert_allclose(actual[row], expected, rtol=0, atol=1e-10)


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


def test_dropout_of_vectors_is_that_of_sentences_of_one_token() -> None:
    for dropout in (WordDropout(0.5), Dropout(0.5, variational=False), Dropout(0.5, variational=True)):
        torch.manual_seed(1)
        vectors = dropout(torch.ones(20, 3))
        torch.manual_seed(1)
        assert torch.equal(vectors, dropout(torch.ones(20, 1, 3)).squeeze(1))
        assert 0 < (vectors == 0).float().mean() < 1


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
