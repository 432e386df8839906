"""Tests that need something of the processor."""

from __future__ import annotations

import os
import shutil

import pytest
import torch

from nmt.device import cpu_info
from nmt.fast.int8 import can_multiply_int8

needs_vnni = pytest.mark.skipif(not torch.cpu._is_vnni_supported(), reason="the processor has no VNNI")
needs_int8 = pytest.mark.skipif(not can_multiply_int8(), reason="torch has no products in int8 for this processor")
_has_kernels = os.environ.get("NMT_NATIVE") != "0" and shutil.which(os.environ.get("CC") or "cc") is not None
needs_compiler = pytest.mark.skipif(not _has_kernels, reason="there is no C compiler to make the kernels with")
needs_int8_kernel = pytest.mark.skipif(
    not _has_kernels or "avx512_vnni" not in (cpu_info("flags") or ""),
    reason="there is no kernel for products in int8 here",
)
