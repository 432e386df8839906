"""Tests that need something of the processor."""

from __future__ import annotations

import os
import shutil

import pytest
import torch

from nmt.model.int8 import can_multiply_int8
from nmt.native import kernels

needs_vnni = pytest.mark.skipif(not torch.cpu._is_vnni_supported(), reason="the processor has no VNNI")
needs_int8 = pytest.mark.skipif(not can_multiply_int8(), reason="torch has no products in int8 for this processor")
needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CC") or "cc") is None, reason="there is no C compiler to make the kernels with"
)
needs_int8_kernel = pytest.mark.skipif(
    not kernels.multiplies_int8(), reason="there is no kernel for products in int8 here"
)
