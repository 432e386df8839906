"""The switch `NMT_FAST=0`, which runs everything on the plain modules, with the same results to within rounding."""

from __future__ import annotations

import os

from nmt.fast.kernels.build import library


def is_on() -> bool:
    """False if the environment sets `NMT_FAST=0`."""
    return os.environ.get("NMT_FAST") != "0"


def arithmetic() -> str:
    """The arithmetic in use: "plain PyTorch", "fast modules", or "fast modules and kernels" with their instruction set.

    They round differently, and so train slightly different models.
    """
    if not is_on():
        return "plain PyTorch"
    kernels = library()
    return "fast modules" if kernels is None else f"fast modules and kernels ({kernels.instruction_set})"
