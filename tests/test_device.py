"""Where to compute, and in how many digits."""

from __future__ import annotations

import pytest
import torch

from nmt import device
from nmt.device import choose_device, choose_precision, processor
from nmt.errors import UsageError

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


def test_a_processor_has_a_name() -> None:
    assert processor(CPU).strip()


def test_a_device_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="Cannot compute on device 'abacus'"):
        choose_device("abacus")
