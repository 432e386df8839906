"""What models packed for decoding are made of; `test_twins.py` compares what they compute."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.fast import pack
from nmt.fast.linear import PackedLinear, TokenIds, TokenTable
from nmt.fast.search import SearchModel
from nmt.fast.shared_attention import FusedAttention, SharedMemory
from nmt.model.embedding import TokenEmbedding
from nmt.model.recurrent import RecurrentModel
from nmt.runtime.device import autocast
from tests.fast.models import ROWS, SIZE, assert_same, batch, random_model, search_results
from tests.machine import has_bf16_lstm, needs_compiler, needs_packing
from tests.reference.settings import small


def fp32_model(**settings: Any) -> RecurrentModel:
    return random_model(small(**settings)).float()


def packed_model(model: RecurrentModel) -> SearchModel:
    packed = pack(model, "fp32")
    assert isinstance(packed, SearchModel)
    return packed


def tables(module: nn.Module) -> list[TokenTable]:
    return [layer for layer in module.modules() if isinstance(layer, TokenTable)]


# --- what is packed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_without_packing_matrices_are_rounded_once_as_autocast_does(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU."""
    monkeypatch.setenv("NMT_FAST", "0")
    if cell == "lstm" and not has_bf16_lstm:
        pytest.skip("oneDNN has no bf16 for LSTM layers on this processor")
    plain = fp32_model(cell=cell, layers=2)
    copied = pack(plain, "bf16")
    with autocast("bf16", torch.device("cpu")):
        assert_same(search_results(copied), search_results(plain), 0)
    layers = [layer for layer in copied.modules() if isinstance(layer, nn.Linear)]
    assert {layer.weight.dtype for layer in layers} == {torch.bfloat16}
    embeddings = [layer for layer in copied.modules() if isinstance(layer, nn.Embedding)]
    assert {layer.weight.dtype for layer in embeddings} == {torch.float32}


@needs_packing
def test_a_packed_model_is_a_frozen_copy_whose_layers_are_packed() -> None:
    plain = fp32_model().train()
    packed = packed_model(plain)
    assert plain.training
    assert not packed.training
    assert not any(weight.requires_grad for weight in packed.parameters())
    linear = [layer for layer in packed.modules() if isinstance(layer, nn.Linear)]
    layers = [layer for layer in linear if type(layer) in (nn.Linear, PackedLinear)]
    assert len(layers) > 8
    for layer in layers:
        assert isinstance(layer, PackedLinear) == (min(layer.in_features, layer.out_features) > 1)
    assert not any(isinstance(layer, nn.GRU) for layer in packed.modules())
    before = search_results(packed)
    with torch.no_grad():
        for weight in plain.parameters():
            weight.zero_()
    assert_same(search_results(packed), before, 0)


# --- tables of tokens ---------------------------------------------------------------------------------------------


@needs_packing
def test_each_token_is_multiplied_once() -> None:
    packed = packed_model(fp32_model())
    with torch.inference_mode():
        packed(batch())
    sample = batch()
    for layers, tokens in ((tables(packed.encoder), sample.source), (tables(packed.decoder), sample.target_in)):
        assert layers
        for layer in layers:
            assert set(layer.is_known.nonzero().flatten().tolist()) == set(tokens.flatten().tolist())
    table, expected = words(20)
    multiplied: list[int] = []
    table.linear.register_forward_pre_hook(lambda _, values: multiplied.append(len(values[0])))
    with torch.inference_mode():
        for ids in ([5, 9], [11, 5, 11, 12], [12], []):
            rows = torch.tensor(ids, dtype=torch.long)
            torch.testing.assert_close(table(rows.unsqueeze(1)), expected[rows], atol=1e-6, rtol=1e-6)
    assert multiplied == [2, 2], "5 and 9, then 11 and 12 are new, and nothing else"
    with torch.no_grad():  # a table filled in inference mode can grow outside of it
        torch.testing.assert_close(table(torch.tensor([[3], [5]])), expected[[3, 5]])


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
            for _ in range(10):
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


@needs_packing
@pytest.mark.parametrize(
    ("settings", "source", "target"),
    [
        ({}, 2, 2),
        ({"readout": "tanh"}, 2, 2),
        ({"cell": "lstm", "readout": "attentional"}, 0, 1),
        ({"tie": "all"}, 2, 2),
    ],
)
def test_layers_that_read_tokens_become_tables(settings: dict[str, Any], source: int, target: int) -> None:
    packed = packed_model(fp32_model(**settings))
    assert isinstance(packed.source_embedding, TokenIds) == bool(source)
    assert isinstance(packed.target_embedding, TokenIds)
    assert [len(tables(side)) for side in (packed.encoder, packed.decoder)] == [source, target]


@needs_packing
def test_a_side_with_too_large_a_table_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = fp32_model()
    sizes = [
        [SIZE * table.out_features for table in tables(side)]
        for side in (packed_model(plain).encoder, packed_model(plain).decoder)
    ]
    assert max(sizes[0]) < max(sizes[1])
    for largest, counts in ((max(sizes[1]), [2, 2]), (max(sizes[0]), [2, 0]), (min(sizes[0]) - 1, [0, 0])):
        monkeypatch.setattr(sys.modules["nmt.fast.pack"], "_LARGEST_TABLE", largest)
        packed = packed_model(plain)
        assert [len(tables(side)) for side in (packed.encoder, packed.decoder)] == counts
        assert_same(search_results(packed), search_results(plain), 1e-4)


# --- memory -------------------------------------------------------------------------------------------------------


@needs_packing
@needs_compiler
def test_steps_share_the_memory_and_fuse_an_attention_of_one_head() -> None:
    sample = batch()
    for heads in (1, 2):
        packed = packed_model(fp32_model(heads=heads))
        read: list[SharedMemory] = []
        attention = packed.get_submodule("decoder.attention")
        assert isinstance(attention, FusedAttention) == (heads == 1)
        attention.register_forward_pre_hook(lambda _, arguments, read=read: read.append(arguments[2]))
        with torch.inference_mode():
            memory = packed.encode(sample.source, sample.source_mask)
            packed.step(ROWS + 4, packed.start(memory).select(ROWS), memory, ROWS)
        assert (memory.attention.exp_keys is None) == (heads == 2)
        assert read[0].annotations is memory.attention.annotations
        assert read[0].hypotheses is not None
        assert torch.equal(read[0].hypotheses.segment_ids, ROWS)


@needs_packing
def test_too_large_keys_fall_back_to_plain_attention() -> None:
    plain = fp32_model()
    with torch.no_grad():
        plain.get_parameter("decoder.attention.score.key.weight").mul_(1e3)
    packed, sample = packed_model(plain), batch()
    with torch.inference_mode():
        assert packed.encode(sample.source, sample.source_mask).attention.exp_keys is None
    assert_same(search_results(packed), search_results(plain), 1e-4)
