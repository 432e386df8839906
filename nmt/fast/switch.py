"""Whether the fast room is used: `NMT_FAST=0` runs everything on the plain modules, at the same results."""

from __future__ import annotations

import os

from nmt.fast.kernels.build import library


def is_on() -> bool:
    """False if the environment sets `NMT_FAST=0`."""
    return os.environ.get("NMT_FAST") != "0"


def arithmetic() -> str:
    """What computes: `plain`, `fast` or `fast with kernels`. Rounding, and with it a trained model, differs between them."""
    if not is_on():
        return "plain"
    return "fast" if library() is None else "fast with kernels"
