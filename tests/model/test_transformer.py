"""The Transformer agrees with the NumPy equations, caches what it computes again, and is a model like any other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from nmt import recipe
from nmt.model.transformer import ScaledDotAttention, TransformerModel, positional_encoding
from tests.model.agreement import PADDED, TARGETS, assert_model_agrees, assert_positions_agree, close
from tests.model.models import SOURCE_SIZE, TARGET_SIZE, batch_of
from tests.reference import transformer as reference


def tree_of(**settings: Any) -> dict[str, Any]:
    """A small model section, all settings spelled out."""
    tree = {"kind": "transformer", "embedding": 4, "feed_forward": 6, "heads": 2, "norm": "post", "tie": "target"}
    tree |= {"encoder": {"layers": 2}, "decoder": {"layers": 2}, "dropout": 0.0} | settings
    return recipe.TransformerModelConfig.model_validate(tree).model_dump()


def random_transformer(tree: dict[str, Any]) -> TransformerModel:
    torch.manual_seed(1)
    source_size = TARGET_SIZE if tree["tie"] == "all" else SOURCE_SIZE
    config = recipe.TransformerModelConfig.model_validate(tree)
    model = TransformerModel(config, source_size=source_size, target_size=TARGET_SIZE).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.6)
    return model


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"heads": 1, "encoder": {"layers": 1}, "decoder": {"layers": 3}},
        {"heads": 4, "tie": "none", "alignment_layer": 2, "alignment_head": 3},
        {"tie": "all", "embedding_scale": 1.7},
    ],
    ids=["plain", "stacks", "head", "tied"],
)
def test_a_model_agrees_with_the_equations(norm: str, settings: dict[str, Any]) -> None:
    tree = tree_of(norm=norm, **settings)
    sources = [[min(token, TARGET_SIZE - 1) for token in source] for source in PADDED]
    assert_model_agrees(random_transformer(tree), tree, reference.seq2seq, sources, list(TARGETS))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_self_attention_of_the_encoder(norm: str) -> None:
    tree = tree_of(norm=norm, encoder={"layers": 3})
    model = random_transformer(tree)
    source = torch.tensor([[4, 5, 1, 3], [6, 3, 0, 0]])
    with torch.no_grad():
        values, weights = zip(*model.read(source, source != 0), strict=True)
        annotations = model.encoder_norm(values[-1])
    assert len(weights) == 3
    for row, length in enumerate((4, 2)):
        words = [*model.source_embedding(source[row, :length]).detach().numpy()]
        parameters = {name: weight.numpy() for name, weight in model.state_dict().items()}
        expected, alphas = reference.read(words, tree, parameters)
        for layer in range(3):
            close(weights[layer][row, :, :length, :length].transpose(0, 1), alphas[layer])
            assert not weights[layer][row, :, :length, length:].any()
        close(annotations[row, :length], np.array(expected))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_token_probabilities_given_attention_to_a_single_position(norm: str) -> None:
    tree = tree_of(norm=norm)
    assert_positions_agree(random_transformer(tree), tree, reference.seq2seq)


@pytest.mark.parametrize("width", [1, 4, 5])
def test_positions_follow_their_equation(width: int) -> None:
    encoded = positional_encoding(3, torch.zeros(1, 20, width, dtype=torch.float64))
    for position, row in enumerate(encoded, start=3):
        close(row, reference.position_encoding(position, width))


def test_gradients_of_attention() -> None:
    attention = ScaledDotAttention(4, heads=2).double()
    queries, source = (torch.randn(2, length, 4, dtype=torch.float64, requires_grad=True) for length in (2, 3))
    allowed = torch.tensor([[[True, True, False]], [[True, False, True]]]).expand(2, 2, 3)

    def attend(queries: torch.Tensor, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return attention(queries, *attention.keys_and_values(source), allowed)

    assert gradcheck(attend, (queries, source))


def test_dropout_acts_in_training_alone() -> None:
    batch = batch_of([[3, 6, 2]], [[2, 7]])
    for place in ("embedding", "word", "residual"):
        dropout = {"embedding": 0.0, "word": 0.0, "residual": 0.0} | {place: 0.5}
        model = random_transformer(tree_of(dropout=dropout))
        losses = {model(batch).loss.item() for _ in range(3)}
        assert len(losses) == 1
        model.train()
        assert {model(batch).loss.item() for _ in range(5)} - losses


def test_the_alignment_is_that_of_the_layer_and_head() -> None:
    model = random_transformer(tree_of())
    batch, alignments = batch_of([[3, 6, 2]], [[2, 7]]), {}
    for model.alignment_layer, model.alignment_head in product([1, 2], [None, 1, 2]):
        alignments[model.alignment_layer, model.alignment_head] = model(batch).alignment
    for layer in (1, 2):
        heads = alignments[layer, 1], alignments[layer, 2]
        assert not torch.equal(*heads)
        torch.testing.assert_close(alignments[layer, None], sum(heads) / 2)
    assert not torch.equal(alignments[1, None], alignments[2, None])
