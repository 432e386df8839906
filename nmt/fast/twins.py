"""Twins: a copy of a tree of modules with the same parameters and fast classes in place of plain ones.

`NMT_FAST=0` runs everything on the plain modules, with the same results to within rounding.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from typing import TypeVar

from torch import nn

from nmt.fast.kernels.build import library

ModuleT = TypeVar("ModuleT", bound=nn.Module)


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


def twin(module: ModuleT, fast_types: Mapping[type[nn.Module], type[nn.Module]]) -> ModuleT:
    """The same tree of modules, with each module whose exact type is in the table replaced by one of its fast type.

    The modules are new, their parameters and buffers are shared: an update of one updates the other. A module that occurs several times
    does so in the twin.
    """
    twins: dict[nn.Module, nn.Module] = {}

    def twin_of(plain: nn.Module) -> nn.Module:
        if plain not in twins:
            fast = twins[plain] = as_type(fast_types.get(type(plain), type(plain)), plain)
            children = plain.__dict__["_modules"].items()
            fast.__dict__["_modules"] = {name: child and twin_of(child) for name, child in children}
        return twins[plain]

    return twin_of(module)  # type: ignore[return-value] # a subclass of its type


def as_type(kind: type[ModuleT], module: nn.Module) -> ModuleT:
    """A copy of a module as one of a subclass, with the same parameters, buffers and children."""
    fast = copy(module)
    fast.__class__ = kind
    assert isinstance(fast, kind)
    return fast
