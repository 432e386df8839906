"""Tests that need something of the machine, or of the environment that they run in."""

from __future__ import annotations

import os
import shutil

import pytest
import torch

from nmt.fast import is_on
from nmt.fast.int8 import can_multiply_int8
from nmt.fast.linear import can_pack
from nmt.runtime.device import cpu_info

_has_compiler = os.environ.get("NMT_NATIVE") != "0" and shutil.which(os.environ.get("CC") or "cc") is not None
_multiplies_bytes = "avx512_vnni" in (cpu_info("flags") or "")


def needs(condition: bool, reason: str) -> pytest.MarkDecorator:
    """A mark that skips a test, and says why, where a condition does not hold."""
    return pytest.mark.skipif(not condition, reason=reason)


needs_fast = needs(is_on(), "NMT_FAST=0 switches the fast modules off")
needs_compiler = needs(_has_compiler, "there is no C compiler to make the kernels with")
needs_packing = needs(is_on() and can_pack(torch.ones(1), torch.float32), "NMT_FAST is 0, or torch has no oneDNN")
needs_bf16 = needs(
    is_on() and can_pack(torch.ones(1), torch.bfloat16), "NMT_FAST is 0, or torch packs no bf16 for this processor"
)
needs_int8 = needs(is_on() and can_multiply_int8(), "NMT_FAST is 0, or torch has no int8 products for this processor")
needs_int8_kernel = needs(
    is_on() and _has_compiler and _multiplies_bytes, "NMT_FAST is 0, or there is no kernel for int8 products here"
)
has_bf16_lstm = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
needs_vnni = needs(torch.cpu._is_vnni_supported(), "the processor has no VNNI")
