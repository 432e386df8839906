"""Models packed for decoding compute what the model itself computes, which is the readable reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.data.batching import make_batch
from nmt.decoding.posterior import posterior_alignment
from nmt.device import autocast
from nmt.model.packed import PackedLinear, ProjectedContexts, WordNumber, WordTable, packed, packed_linear, restricted
from nmt.model.seq2seq import Seq2Seq, build_model
from tests.test_bundle import small_recipe

MODELS: dict[str, dict[str, Any]] = {
    "bahdanau": {},
    "luong": {"attention": {"score": "general"}, "decoder": {"order": "update-then-attend", "cell": "lstm"}},
    "unfed": {"decoder": {"order": {"kind": "update-then-attend", "input_feeding": False}}},
    "fed": {"decoder": {"order": {"kind": "update-then-attend", "input_feeding": True}, "layers": 2, "residual": True}},
    "conditional": {
        "embedding_scale": 3,
        "encoder": {"layers": 2, "layer_norm": True},
        "decoder": {
            "order": {"kind": "attend-then-update", "conditional": True},
            "readout": {"kind": "tanh", "size": 8},
        },
    },
    "lstm": {
        "embedding_scale": 0.5,
        "encoder": {"cell": "lstm"},
        "decoder": {
            "cell": "lstm",
            "layers": 2,
            "order": "update-then-attend",
            "readout": {"kind": "attentional", "size": 8},
        },
    },
    "heads": {"attention": {"score": {"kind": "additive", "size": 8, "coverage": True}, "heads": 2}, "tie": "all"},
}


def model(name: str = "bahdanau") -> Seq2Seq:
    return built(**MODELS[name])


def built(**tree: Any) -> Seq2Seq:
    decoder = {"hidden": 12, "readout": {"kind": "maxout", "size": 8}, **tree.pop("decoder", {})}
    torch.manual_seed(1)
    made = build_model(small_recipe(**tree, decoder=decoder).model, source_size=20, target_size=20)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)
    return made


def tables(of: nn.Module) -> list[WordTable]:
    return [layer for layer in of.modules() if isinstance(layer, WordTable)]


def outputs(of: Seq2Seq) -> tuple[Tensor, Tensor]:
    source = torch.tensor([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0]])
    with torch.inference_mode():
        readouts, alignment = of(source, source > 0, torch.tensor([[2, 5, 6], [2, 9, 10]]))
        return of.logits(readouts), alignment


def test_products_are_made_in_few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, product = set(), PackedLinear._product
    monkeypatch.setattr(PackedLinear, "_product", lambda self, values: sizes.add(len(values)) or product(self, values))
    plain = nn.Linear(5, 7)
    layer = packed_linear(plain, torch.float32)
    with torch.inference_mode():
        for rows in range(1, 300):
            values = torch.randn(rows, 5)
            torch.testing.assert_close(layer(values), plain(values))
        assert layer(torch.randn(3, 7, 5)).shape == (3, 7, 7)
        assert layer(torch.randn(0, 5)).shape == (0, 7)
    assert len(sizes) <= 16 + 8 * 4 + 3


@pytest.mark.parametrize("name", MODELS)
def test_packing_changes_nothing_beyond_rounding(name: str) -> None:
    plain = model(name)
    made = packed(plain, "fp32")
    wanted = outputs(plain.eval())
    for _ in range(2):  # words are looked up the second time
        for one, other in zip(outputs(made), wanted, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_word_is_multiplied_once() -> None:
    made = packed(model(), "fp32")
    outputs(made)
    reading, writing = tables(made.encoder), tables(made.decoder)
    for layers, words in ((reading, {0, 3, 4, 5, 6, 7, 8, 9}), (writing, {2, 5, 6, 9, 10})):
        assert layers
        for layer in layers:
            assert set(layer.has_read.nonzero().flatten().tolist()) == words
    layer = writing[0]
    asked = [torch.tensor(ids, dtype=torch.long) for ids in ([5, 9], [11, 5, 11, 12], [12], [])]
    with torch.inference_mode():
        wanted = [layer.linear(layer.embedding(ids)) for ids in asked]
        multiplied: list[int] = []
        layer.linear.register_forward_pre_hook(lambda _, values: multiplied.append(len(values[0])))
        for ids, product in zip(asked, wanted, strict=True):
            torch.testing.assert_close(layer(ids.unsqueeze(1).float()), product, atol=1e-6, rtol=1e-6)
    assert multiplied == [2], "11 and 12 are new, and nothing else"


def test_half_precision_is_that_of_autocast() -> None:
    plain = model().eval()
    made = packed(plain, "bf16")
    for _ in range(2):
        with autocast("bf16", torch.device("cpu")):
            logits, alignment = outputs(made)
            wanted, rows = outputs(plain)
        assert logits.dtype == wanted.dtype == torch.bfloat16
        torch.testing.assert_close(logits, wanted, atol=0.1, rtol=0.05)
        torch.testing.assert_close(alignment, rows, atol=0.05, rtol=0)


@pytest.mark.parametrize(
    ("size", "score", "projected"), [(8, "general", True), (8, "additive", True), (40, "dot", False)]
)
def test_contexts_that_only_a_readout_reads_are_projected_before_they_are_summed(
    size: int, score: str, projected: bool
) -> None:
    order, readout = {"kind": "update-then-attend", "input_feeding": True}, {"kind": "attentional", "size": size}
    chosen = {"hidden": 16, "order": order, "readout": readout}
    plain = built(tie="none", attention={"score": score}, decoder=chosen).eval()
    made = packed(plain, "fp32")
    assert isinstance(made.decoder.attention, ProjectedContexts) == projected
    batch = make_batch([([4, 5, 6, 7], [5, 6]), ([8], [9, 10, 4])])
    with torch.inference_mode():
        for one, other in zip(outputs(made), outputs(plain), strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
        posterior = [posterior_alignment(each, batch) for each in (made, plain)]
    torch.testing.assert_close(*posterior, atol=1e-5, rtol=1e-5)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")
def test_all_products_with_matrices_are_packed() -> None:
    layers = [layer for layer in packed(model(), "fp32").modules() if isinstance(layer, nn.Linear)]
    assert len(layers) > 8
    for layer in layers:
        assert isinstance(layer, PackedLinear) == (min(layer.in_features, layer.out_features) > 1)
    assert not any(isinstance(layer, nn.GRU) for layer in packed(model(), "fp32").modules())


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("bahdanau", 2, 2), ("luong", 2, 2), ("conditional", 0, 2), ("lstm", 0, 1), ("heads", 2, 2)],
)
def test_products_with_words_are_looked_up(name: str, source: int, target: int) -> None:
    made = packed(model(name), "fp32")
    assert isinstance(made.source_embedding, WordNumber) == bool(source)
    assert isinstance(made.target_embedding, WordNumber)
    for part, count in ((made.encoder, source), (made.decoder, target)):
        assert sum(isinstance(layer, WordTable) for layer in part.modules()) == count


@pytest.mark.parametrize(("largest", "source", "target"), [(20 * 36, 2, 2), (20 * 24, 2, 0), (20 * 16, 0, 0)])
def test_a_side_with_a_large_table_has_none(
    monkeypatch: pytest.MonkeyPatch, largest: int, source: int, target: int
) -> None:
    monkeypatch.setattr("nmt.model.packed._LARGEST_TABLE", largest)  # 24 wide in the encoder, 36 and 16 in the decoder
    plain = model()
    made = packed(plain, "fp32")
    for part, count in ((made.encoder, source), (made.decoder, target)):
        assert sum(isinstance(layer, WordTable) for layer in part.modules()) == count
    for one, other in zip(outputs(made), outputs(plain.eval()), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_packed_model_is_a_copy_that_drops_nothing_and_learns_nothing() -> None:
    plain = model().train()
    made = packed(plain, "fp32")
    assert plain.training
    assert not made.training
    assert not any(parameter.requires_grad for parameter in made.parameters())
    before = outputs(made)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.zero_()
    for one, other in zip(outputs(made), before, strict=True):
        torch.testing.assert_close(one, other, atol=0, rtol=0)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_recurrent_layers_of_the_copy_are_laid_out_for_cudnn(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flattened: list[nn.Module] = []

    def note(layer: nn.Module) -> None:
        flattened.append(layer)

    monkeypatch.setattr(nn.RNNBase, "flatten_parameters", note)
    model = built(encoder={"cell": cell, "layers": 2}).double()  # which nothing else is packed of
    flattened.clear()
    layers = [layer for layer in packed(model, "fp32").modules() if isinstance(layer, nn.RNNBase)]
    assert len(layers) == 4
    assert [id(layer) for layer in flattened] == [id(layer) for layer in layers]


def test_models_of_other_types_are_left_as_they_are() -> None:
    plain = model().double().eval()
    assert not any(isinstance(layer, PackedLinear) for layer in packed(plain, "fp32").modules())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("pack", [True, False])
def test_a_restricted_layer_gives_some_of_the_outputs(bias: bool, pack: bool) -> None:
    layer: nn.Linear = nn.Linear(6, 40, bias=bias)
    rows = torch.tensor([3, 17, 30])
    values = torch.randn(4, 6)
    with torch.inference_mode():
        few = restricted(PackedLinear(layer, torch.float32) if pack else layer, rows)
        assert isinstance(few, PackedLinear) == pack
        torch.testing.assert_close(few(values), layer(values)[:, rows], atol=1e-6, rtol=1e-6)
