"""The switch `NMT_FAST=0`, which runs everything on the plain modules, with the same results to within rounding."""

from __future__ import annotations

import os

from nmt.fast.kernels.build import library


def is_on() -> bool:
    """False if the environment sets `NMT_FAST=0`."""
    return os.environ.get("NMT_FAST") != "0"


def arithmetic() -> str:
    """The arithmetic in use: "plain PyTorch", "fast modules", or "fast modules and kernels (native)", compiled for this processor.

    They round differently, and so train slightly different models.
    """
    if not is_on():
        return "plain PyTorch"
    return "fast modules" if library() is None else "fast modules and kernels (native)"
