"""The Transformer with its fast twins against the plain one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt import recipe
from nmt.decoding.posterior import posterior_alignment
from nmt.errors import UsageError
from nmt.fast import accelerate, pack
from nmt.fast.dropout import FastDropout
from nmt.fast.search import SearchTransformer, SharedDecoderLayer
from nmt.model.dropout import Dropout
from nmt.model.transformer import LayerMemory, TransformerDecoderLayer, TransformerModel
from nmt.runtime.device import autocast
from tests.fast.models import SIZE, assert_same, batch, learned, search_results
from tests.machine import needs_bf16, needs_fast

KINDS: dict[str, dict[str, Any]] = {
    "post": {"norm": "post", "tie": "all"},
    "pre": {"norm": "pre", "tie": "none", "alignment_layer": 3},
    "head": {"norm": "pre", "heads": 4, "alignment_head": 2},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def random_transformer(kind: str, **settings: Any) -> TransformerModel:
    """A model in float64 whose every weight is random."""
    torch.manual_seed(1)
    tree = {"embedding": 8, "heads": 2, "feed_forward": 12, "encoder": {"layers": 2}, "decoder": {"layers": 3}}
    config = recipe.TransformerModelConfig.model_validate(tree | KINDS[kind] | settings)
    model = TransformerModel(config, source_size=SIZE, target_size=SIZE).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model


@needs_fast
@every_kind
def test_search_without_copies_gives_the_steps_of_the_plain_model(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_transformer(kind)
    exact = search_results(model)
    packed = pack(model, "fp32")
    assert type(packed) is SearchTransformer

    def copied(*_: object) -> LayerMemory:
        raise AssertionError("a step copied the memory of its sentences")

    monkeypatch.setattr(LayerMemory, "select", copied)
    assert_same(search_results(packed), exact, 1e-9)
    assert_same(search_results(pack(model.float(), "fp32")), exact, 1e-4)


@needs_bf16
@every_kind
def test_bf16_is_as_near_as_plain_bf16(kind: str) -> None:
    model = random_transformer(kind).float()
    exact, packed = search_results(model), pack(model, "bf16")
    with autocast("bf16", torch.device("cpu")):
        ours, plain = search_results(packed), search_results(model)
    error, usual = (sum(float((each[name] - exact[name]).norm()) for name in exact) for each in (ours, plain))
    assert 0 < error <= 1.5 * usual


@every_kind
def test_the_posterior_alignment_is_that_of_the_plain_model(kind: str) -> None:
    model = random_transformer(kind).float()
    with torch.inference_mode():
        plain, packed = (posterior_alignment(each, batch()) for each in (model, pack(model, "fp32")))
    torch.testing.assert_close(packed, plain, rtol=0, atol=1e-5)


@needs_fast
@every_kind
def test_accelerated_training_has_the_plain_gradients_and_the_quick_dropout(kind: str) -> None:
    model = random_transformer(kind, dropout=0.3)
    fast = accelerate(model)
    assert_same(learned(fast), learned(model), 1e-9)
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
    model = random_transformer("pre").float()
    usual = search_results(model)
    model.decoder[1].__class__ = Doubled
    exact, packed = search_results(model), pack(model, "fp32")
    assert type(packed) is TransformerModel
    assert not any(isinstance(layer, SharedDecoderLayer) for layer in packed.modules())
    assert_same(search_results(packed), exact, 1e-4)
    assert (exact["forced"] - usual["forced"]).abs().max() > 1e-3


def test_int8_is_refused() -> None:
    with pytest.raises(UsageError, match="Decoding in int8 needs a recurrent model"):
        pack(random_transformer("pre").float(), "int8")
