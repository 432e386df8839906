"""What the Transformer's fast twins are made of; `test_twins.py` compares what they compute."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.decoding.posterior import posterior_alignment
from nmt.fast import accelerate, pack
from nmt.fast.dropout import FastDropout
from nmt.fast.search import SearchTransformer, SharedDecoderLayer
from nmt.model.dropout import Dropout
from nmt.model.transformer import LayerMemory, TransformerDecoderLayer, TransformerModel
from tests.fast.models import assert_same, batch, random_transformer, search_results
from tests.machine import needs_fast


@needs_fast
def test_search_does_not_copy_the_memory_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack(random_transformer(), "fp32")
    assert type(packed) is SearchTransformer

    def copied(*_: object) -> LayerMemory:
        raise AssertionError("a step copied the memory of its sentences")

    monkeypatch.setattr(LayerMemory, "select", copied)
    search_results(packed)


@pytest.mark.parametrize("settings", [{}, {"alignment_layer": 3}, {"norm": "pre", "alignment_head": 2}])
def test_the_posterior_alignment_is_that_of_the_plain_model(settings: dict[str, Any]) -> None:
    model = random_transformer(**settings).float()
    with torch.inference_mode():
        plain, packed = (posterior_alignment(translator, batch()) for translator in (model, pack(model, "fp32")))
    torch.testing.assert_close(packed, plain, rtol=0, atol=1e-5)


@needs_fast
def test_accelerated_training_has_the_quick_dropout() -> None:
    fast = accelerate(random_transformer(dropout=0.3))
    quick = [layer for layer in fast.modules() if isinstance(layer, Dropout)]
    assert len(quick) == 2 * 2 + 3 * 3 + 1  # two around each encoder layer's parts, three around a decoder layer's
    assert {(type(layer), layer.rate) for layer in quick} == {(FastDropout, 0.3)}


class Doubled(TransformerDecoderLayer):
    """Twice the contexts."""

    def attend(self, queries: Tensor, source: LayerMemory) -> tuple[Tensor, Tensor]:
        contexts, weights = super().attend(queries, LayerMemory(source.keys, source.values, source.mask))
        return contexts * 2, weights


@needs_fast
def test_a_custom_layer_keeps_the_model_plain() -> None:
    model = random_transformer(norm="pre").float()
    usual = search_results(model)
    model.decoder[1].__class__ = Doubled
    exact, packed = search_results(model), pack(model, "fp32")
    assert type(packed) is TransformerModel
    assert not any(isinstance(layer, SharedDecoderLayer) for layer in packed.modules())
    assert_same(search_results(packed), exact, 1e-4)
    assert (exact["forced"] - usual["forced"]).abs().max() > 1e-3
