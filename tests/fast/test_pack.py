"""Models packed for decoding compute what the model itself computes; `test_twins.py` has every setting."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt import recipe
from nmt.data.batching import Batch, make_batch
from nmt.fast import pack
from nmt.fast.linear import PackedLinear, TokenIds, TokenTable, packed_linear, restricted
from nmt.fast.search import SearchModel
from nmt.fast.shared_attention import FusedAttention, SharedMemory
from nmt.model.embedding import TokenEmbedding
from nmt.model.interface import TranslationModel
from nmt.model.recurrent import RecurrentModel
from nmt.runtime.device import autocast
from tests.machine import has_bf16_lstm, needs_compiler, needs_fast, needs_packing

Model = TranslationModel[Any, Any]

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


def model(name: str = "bahdanau") -> RecurrentModel:
    return built(**MODELS[name])


def built(**tree: Any) -> RecurrentModel:
    defaults = {"embedding": 8, "encoder": {"hidden": 8}, "attention": {"score": {"kind": "additive", "size": 8}}}
    encoder = {"hidden": 8, **tree.pop("encoder", {})}
    decoder = {"hidden": 12, "readout": {"kind": "maxout", "size": 8}, **tree.pop("decoder", {})}
    config = recipe.RecurrentModelConfig.model_validate(defaults | tree | {"encoder": encoder, "decoder": decoder})
    torch.manual_seed(1)
    plain = RecurrentModel(config, source_size=20, target_size=20).eval()
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.mul_(2)
    return plain


def batch() -> Batch:
    return make_batch([([4, 5, 6, 7], [5, 6]), ([8, 9], [9, 10])])


def outputs(of: Model) -> dict[str, Tensor]:
    """Of known targets all at once, and of two steps of three hypotheses, two of which read the same sentence."""
    sample, rows = batch(), torch.tensor([0, 0, 1])
    with torch.inference_mode():
        forced = of(sample)
        memory = of.encode(sample.source, sample.source_mask)
        one = of.step(torch.tensor([2, 2, 2]), of.start(memory).select(rows), memory, rows)
        two = of.step(torch.tensor([5, 11, 9]), one.state, memory, rows)
        return {
            "forced": forced.token_log_probs,
            "alignment": forced.alignment,
            "first log-probabilities": one.log_probs[:],
            "log-probabilities": two.log_probs[:],
            "weights": two.weights,
        }


def assert_close(ours: dict[str, Tensor], expected: dict[str, Tensor], within: float = 1e-5) -> None:
    for name, value in expected.items():
        torch.testing.assert_close(
            ours[name].double(), value.double(), atol=within, rtol=within, msg=f"{name} differs: {ours[name]}, {value}"
        )


def tables(of: nn.Module) -> list[TokenTable]:
    return [layer for layer in of.modules() if isinstance(layer, TokenTable)]


# --- layers -------------------------------------------------------------------------------------------------------


@needs_packing
def test_row_counts_are_bucketed(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, product = set(), PackedLinear._product

    def record(self: PackedLinear, values: Tensor) -> Tensor:
        sizes.add(len(values))
        return product(self, values)

    monkeypatch.setattr(PackedLinear, "_product", record)
    plain = nn.Linear(5, 7)
    layer = packed_linear(plain, torch.float32)
    with torch.inference_mode():
        for rows in range(1, 300):
            values = torch.randn(rows, 5)
            torch.testing.assert_close(layer(values), plain(values))
        assert layer(torch.randn(3, 7, 5)).shape == (3, 7, 7)
        assert layer(torch.randn(0, 5)).shape == (0, 7)
    assert len(sizes) <= 16 + 8 * 4 + 3


@needs_packing
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("is_packed", [True, False])
def test_restricted_layer_computes_the_selected_outputs(bias: bool, is_packed: bool) -> None:
    layer: nn.Linear = nn.Linear(6, 40, bias=bias)
    rows = torch.tensor([3, 17, 30])
    values = torch.randn(4, 6)
    with torch.inference_mode():
        few = restricted(PackedLinear(layer, torch.float32) if is_packed else layer, rows)
        assert isinstance(few, PackedLinear) == is_packed
        torch.testing.assert_close(few(values), layer(values)[:, rows], atol=1e-6, rtol=1e-6)


# --- what is packed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_without_packing_matrices_are_rounded_once_as_autocast_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU."""
    monkeypatch.setenv("NMT_FAST", "0")
    if name == "lstm" and not has_bf16_lstm:
        pytest.skip("oneDNN has no bf16 for LSTM layers on this processor")
    plain = model(name)
    copied = pack(plain, "bf16")
    with autocast("bf16", torch.device("cpu")):
        assert_close(outputs(copied), outputs(plain), 0)
    layers = [layer for layer in copied.modules() if isinstance(layer, nn.Linear)]
    assert {layer.weight.dtype for layer in layers} == {torch.bfloat16}
    embeddings = [layer for layer in copied.modules() if isinstance(layer, nn.Embedding)]
    assert {layer.weight.dtype for layer in embeddings} == {torch.float32}


@needs_packing
def test_all_linear_layers_are_packed() -> None:
    packed = pack(model(), "fp32")
    layers = [layer for layer in packed.modules() if isinstance(layer, nn.Linear)]
    layers = [layer for layer in layers if type(layer) in (nn.Linear, PackedLinear)]
    assert len(layers) > 8
    for layer in layers:
        assert isinstance(layer, PackedLinear) == (min(layer.in_features, layer.out_features) > 1)
    assert not any(isinstance(layer, nn.GRU) for layer in packed.modules())


def test_packed_model_is_a_frozen_copy_in_evaluation_mode() -> None:
    plain = model().train()
    packed = pack(plain, "fp32")
    assert plain.training
    assert not packed.training
    assert not any(parameter.requires_grad for parameter in packed.parameters())
    before = outputs(packed)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.zero_()
    assert_close(outputs(packed), before, 0)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_recurrent_layers_of_the_copy_are_flattened_for_cudnn(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flattened: list[int] = []

    def note(layer: nn.RNNBase) -> None:
        flattened.append(id(layer.weight_hh_l0))

    monkeypatch.setattr(nn.RNNBase, "flatten_parameters", note)
    plain = built(encoder={"cell": cell, "layers": 2}).double()  # which nothing else is packed of
    flattened.clear()
    layers = [layer for layer in pack(plain, "fp32").modules() if isinstance(layer, nn.RNNBase)]
    assert len(layers) == 4
    assert flattened == [id(layer.weight_hh_l0) for layer in layers]


def test_models_in_fp64_are_not_packed() -> None:
    plain = model().double()
    packed = pack(plain, "fp32")
    assert not any(isinstance(layer, PackedLinear) for layer in packed.modules())
    assert_close(outputs(packed), outputs(plain))


@needs_packing
@needs_compiler
def test_only_fused_attention_computes_exp_keys() -> None:
    """Several heads read the keys themselves."""
    sample = batch()
    for heads in (1, 2):
        packed = pack(built(attention={"score": {"kind": "additive", "size": 8}, "heads": heads}), "fp32")
        assert any(isinstance(part, FusedAttention) for part in packed.modules()) == (heads == 1)
        with torch.inference_mode():
            memory = packed.encode(sample.source, sample.source_mask)
        assert (memory.attention.exp_keys is None) == (heads == 2)


# --- tables of tokens ---------------------------------------------------------------------------------------------


@needs_packing
def test_each_token_is_multiplied_once() -> None:
    packed = pack(model(), "fp32")
    with torch.inference_mode():
        packed(batch())
    assert isinstance(packed, SearchModel)
    reading, writing = tables(packed.encoder), tables(packed.decoder)
    for layers, tokens in ((reading, {0, 3, 4, 5, 6, 7, 8, 9}), (writing, {2, 5, 6, 9, 10})):
        assert layers
        for layer in layers:
            assert set(layer.is_known.nonzero().flatten().tolist()) == tokens
    layer = writing[0]
    requests = [torch.tensor(ids, dtype=torch.long) for ids in ([5, 9], [11, 5, 11, 12], [12], [])]
    with torch.inference_mode():
        expected = [layer.linear(layer.embedding(ids)) for ids in requests]
        multiplied: list[int] = []
        layer.linear.register_forward_pre_hook(lambda _, values: multiplied.append(len(values[0])))
        for ids, product in zip(requests, expected, strict=True):
            torch.testing.assert_close(layer(ids.unsqueeze(1)), product, atol=1e-6, rtol=1e-6)
    assert multiplied == [2], "11 and 12 are new, and nothing else"


def words(count: int) -> tuple[TokenTable, Tensor]:
    """A table of so many tokens, and what it should hold."""
    torch.manual_seed(1)
    embedding, linear = TokenEmbedding(count, 16, 2.0), nn.Linear(16, 24)
    with torch.no_grad():
        return TokenTable(embedding, linear).requires_grad_(requires_grad=False), linear(embedding.weight * 2.0)


def test_threads_can_fill_a_table_together() -> None:
    together, interval = Barrier(4), sys.getswitchinterval()

    def read(table: TokenTable, ids: Tensor) -> Tensor:
        with torch.inference_mode():
            together.wait(timeout=60)
            rows: Tensor = table(ids.unsqueeze(1))
            return rows

    sys.setswitchinterval(1e-6)  # so that threads meet within a call
    try:
        with ThreadPoolExecutor(4) as threads:
            for _ in range(50):
                table, expected = words(600)
                for first in (0, 40):
                    requests = [torch.arange(first, first + 60) + 100 * number for number in range(4)]
                    for ids, rows in zip(requests, threads.map(read, [table] * 4, requests), strict=True):
                        torch.testing.assert_close(rows, expected[ids])
                known = table.is_known.nonzero().squeeze(1)
                assert table.table is not None
                torch.testing.assert_close(table.table[known], expected[known])
    finally:
        sys.setswitchinterval(interval)


def test_table_filled_in_inference_mode_can_grow_outside_of_it() -> None:
    table, expected = words(10)
    with torch.inference_mode():
        table(torch.tensor([[3]]))
    with torch.no_grad():
        torch.testing.assert_close(table(torch.tensor([[3], [4]])), expected[3:5])


@pytest.mark.parametrize("name", ["bahdanau", "fed", "conditional"])
def test_threads_can_share_a_packed_model(name: str) -> None:
    plain = model(name)
    expected, packed = outputs(plain), pack(plain, "fp32")
    with ThreadPoolExecutor(4) as threads:
        for results in threads.map(outputs, [packed] * 24):
            assert_close(results, expected)


@needs_packing
@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("bahdanau", 2, 2), ("luong", 2, 2), ("conditional", 2, 2), ("lstm", 0, 1), ("heads", 2, 2)],
)
def test_layers_that_read_tokens_become_tables(name: str, source: int, target: int) -> None:
    packed = pack(model(name), "fp32")
    assert isinstance(packed, SearchModel)
    assert isinstance(packed.source_embedding, TokenIds) == bool(source)
    assert isinstance(packed.target_embedding, TokenIds)
    assert [len(tables(part)) for part in (packed.encoder, packed.decoder)] == [source, target]


@needs_packing
@pytest.mark.parametrize(("largest", "source", "target"), [(20 * 36, 2, 2), (20 * 24, 2, 0), (20 * 16, 0, 0)])
def test_side_with_too_large_a_table_has_none(
    monkeypatch: pytest.MonkeyPatch, largest: int, source: int, target: int
) -> None:
    monkeypatch.setattr(
        sys.modules["nmt.fast.pack"], "_LARGEST_TABLE", largest
    )  # 24 wide in the encoder, 36 and 16 in the decoder
    plain = model()
    packed = pack(plain, "fp32")
    assert isinstance(packed, SearchModel)
    assert [len(tables(part)) for part in (packed.encoder, packed.decoder)] == [source, target]
    assert_close(outputs(packed), outputs(plain))


# --- memory -------------------------------------------------------------------------------------------------------


@needs_fast
@pytest.mark.parametrize("name", MODELS)
def test_selected_memory_gives_the_same_steps(name: str) -> None:
    packed, sample = pack(model(name), "fp32"), batch()
    tokens, rows, others = torch.tensor([5, 9, 10]), torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    with torch.inference_mode():
        memory = packed.encode(sample.source, sample.source_mask)
        step = packed.step(tokens, packed.start(memory).select(rows), memory, rows)
        swapped = memory.select(torch.tensor([1, 0]))
        mirrored = packed.step(tokens.flip(0), packed.start(swapped).select(others), swapped, others)
        torch.testing.assert_close(mirrored.log_probs[:].flip(0), step.log_probs[:], atol=1e-5, rtol=0)
        torch.testing.assert_close(mirrored.weights.flip(0), step.weights, atol=1e-6, rtol=0)
        alone = memory.select(torch.tensor([1]))
        single = packed.step(tokens[2:], packed.start(alone), alone, torch.tensor([0]))
        torch.testing.assert_close(single.log_probs[:], step.log_probs[:][2:], atol=1e-5, rtol=0)


@needs_packing
def test_steps_do_not_copy_the_memory() -> None:
    packed, sample, rows = pack(model(), "fp32"), batch(), torch.tensor([0, 0, 1])
    read: list[SharedMemory] = []
    attention = packed.get_submodule("decoder.attention")
    attention.register_forward_pre_hook(lambda _, arguments: read.append(arguments[2]))
    with torch.inference_mode():
        memory = packed.encode(sample.source, sample.source_mask)
        packed.step(rows + 4, packed.start(memory).select(rows), memory, rows)
    assert read[0].annotations is memory.attention.annotations
    assert read[0].hypotheses is not None
    assert torch.equal(read[0].hypotheses.segment_ids, rows)


@needs_packing
def test_too_large_keys_fall_back_to_plain_attention() -> None:
    plain = model()
    with torch.no_grad():
        plain.get_parameter("decoder.attention.score.key.weight").mul_(1e3)
    packed, sample = pack(plain, "fp32"), batch()
    with torch.inference_mode():
        assert packed.encode(sample.source, sample.source_mask).attention.exp_keys is None
    assert_close(outputs(packed), outputs(plain), 1e-4)
