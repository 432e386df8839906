"""The output layer for lists of pieces: the logits of the whole layer, of what is listed alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.device import DTYPES, DecodingPrecision
from nmt.model import int8
from nmt.model.output import Output, listed_output
from nmt.model.packed import packed_linear, restricted
from nmt.native import kernels
from nmt.ragged import Ragged
from tests.machine import needs_int8, needs_int8_kernel

VOCABULARY = 400
SHARED = torch.tensor([1, 3, 50, 51])
PRECISIONS = [
    pytest.param(None, id="plain"),
    "fp32",
    "bf16",
    pytest.param("int8", marks=needs_int8_kernel),
    pytest.param("int8-without-kernel", marks=needs_int8),
]


def layer(precision: str | None, bias: bool, monkeypatch: pytest.MonkeyPatch) -> nn.Linear:
    torch.manual_seed(3)
    linear = nn.Linear(37, VOCABULARY, bias=bias).requires_grad_(requires_grad=False)
    if precision == "int8-without-kernel":
        monkeypatch.setattr(kernels, "multiplies_int8", lambda: False)
        return int8.Int8Linear(linear)
    known: dict[str, DecodingPrecision] = {"fp32": "fp32", "bf16": "bf16", "int8": "int8"}
    return linear if precision is None else packed_linear(linear, DTYPES[known[precision]])


def lists(sizes: list[int]) -> tuple[Tensor, Ragged]:
    """So many pieces for each sentence, rising."""
    generator = torch.Generator().manual_seed(5)
    own = [torch.randperm(340, generator=generator)[:size].sort().values + 60 for size in sizes]
    return torch.cat(own), Ragged(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), len(sizes))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [[3, 0, 130, 64, 5], [0, 0], [1]])
def test_logits_are_those_of_the_whole_layer(
    precision: str | None, bias: bool, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = layer(precision, bias, monkeypatch)
    own, sentences = lists(sizes)
    made = listed_output(whole, restricted(whole, SHARED), own, sentences)
    assert made.width == len(SHARED) + max(sizes)
    asked = [7, 0, 1, 13, 2][: len(sizes)]
    rows = Ragged(torch.arange(len(sizes)).repeat_interleave(torch.tensor(asked)), len(sizes))
    readouts = torch.randn(len(rows.group), 37)
    tolerance = {"bf16": 0.02, "int8-without-kernel": 0.05}.get(
        str(precision), 1e-5
    )  # own pieces are in fp32 in the last
    with torch.inference_mode():
        found, wanted = made(readouts, rows), whole(readouts).float()
        check(found, wanted, rows, own, sentences, tolerance)
        going = torch.arange(0, len(sizes), 2)
        kept = torch.isin(rows.group, going)
        fewer = made.select(going)
        again = fewer(readouts[kept], Ragged(rows.group[kept] // 2, len(going)))
        assert torch.equal(again[:, : found.shape[1]].isfinite(), found[kept].isfinite())
        torch.testing.assert_close(again, found[kept], atol=tolerance, rtol=0)


def check(found: Tensor, wanted: Tensor, rows: Ragged, own: Tensor, sentences: Ragged, tolerance: float) -> None:
    for row, sentence in enumerate(rows.group.tolist()):
        listed = torch.cat([SHARED, own[sentences.group == sentence]])
        torch.testing.assert_close(
            found[row, : len(listed)].float(), wanted[row, listed], atol=tolerance, rtol=tolerance
        )
        assert (found[row, len(listed) :] == -math.inf).all()


def test_the_whole_vocabulary_is_one_list() -> None:
    linear = nn.Linear(5, 9)
    output, readouts = Output(linear), torch.randn(4, 5)
    assert output.width == 9
    assert output.skips
    assert torch.equal(output(readouts, Ragged.one_each(4, readouts.device)), linear(readouts))
    assert output.select(torch.tensor([1])) is output
