"""Tests that need something of the processor."""

from __future__ import annotations

import pytest
import torch

from nmt.model.int8 import can_multiply_int8

needs_vnni = pytest.mark.skipif(not torch.cpu._is_vnni_supported(), reason="the processor has no VNNI")
needs_int8 = pytest.mark.skipif(not can_multiply_int8(), reason="torch has no products in int8 for this processor")
