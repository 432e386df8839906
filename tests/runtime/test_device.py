"""Where to compute, and in how many digits."""

from __future__ import annotations

import os

import pytest
import torch

from nmt.errors import UsageError
from nmt.runtime import device
from nmt.runtime.cores import usable_cores
from nmt.runtime.device import check_precision, choose_device, choose_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "amx", "avx512_bf16", "wanted"),
    [
        ("AMD EPYC 9355", False, True, "bf16"),
        ("Intel(R) Xeon(R) Platinum 8480+", True, True, "bf16"),
        ("Intel(R) Xeon(R) Processor", False, True, "fp32"),  # AMX hidden: the instruction takes twice the time of fp32
        ("Intel(R) Xeon(R) Gold 6130", False, False, "fp32"),
        ("AMD EPYC 7742", False, False, "fp32"),
    ],
)
def test_auto_is_bf16_where_a_cpu_is_fast_at_it(
    monkeypatch: pytest.MonkeyPatch, name: str, amx: bool, avx512_bf16: bool, wanted: str
) -> None:
    monkeypatch.setattr(device, "processor", lambda _: name)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512_bf16)
    assert choose_precision("auto", CPU) == wanted
    assert choose_precision("fp32", CPU) == "fp32"
    assert choose_precision("bf16", CPU) == "bf16"
    assert choose_precision("int8", CPU) == "int8"


def test_bf16_of_an_lstm_is_refused_where_onednn_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    lstm, gru = torch.nn.Sequential(torch.nn.LSTM(2, 2)), torch.nn.Sequential(torch.nn.GRU(2, 2))
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    check_precision("fp32", lstm, CPU)
    check_precision("bf16", lstm, torch.device("cuda"))
    check_precision("bf16", gru, CPU)
    with pytest.raises(UsageError, match="has no bf16 for LSTM layers: use precision fp32"):
        check_precision("bf16", lstm, CPU)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    check_precision("bf16", lstm, CPU)


@pytest.mark.parametrize(
    ("count", "name", "message"),
    [
        (0, "abacus", r"There is no device 'abacus': use auto, cpu, cuda, cuda:N or mps\."),
        (0, "CUDA", "There is no device .* did you mean 'cuda'"),
        (0, "cuda:x", "There is no device .* did you mean 'cuda'"),
        (0, "cuda:0", "Cannot compute on cuda:0: PyTorch finds 0 CUDA devices, numbered from 0"),
        (2, "cuda:2", "Cannot compute on cuda:2: PyTorch finds 2 CUDA devices, numbered from 0"),
        (2, "mps", "Cannot compute on mps: PyTorch finds no Metal"),
    ],
)
def test_a_device_that_is_unknown_or_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, count: int, name: str, message: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UsageError, match=f"^{message}"):
        choose_device(name)


def test_devices_that_are_there_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(choose_device(name)) for name in ("auto", "cpu", "cuda:1")] == ["cuda", "cpu", "cuda:1"]


def test_cores_are_counted_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert usable_cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1
