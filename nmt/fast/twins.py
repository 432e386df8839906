"""Twins: a copy of a tree of modules with the same parameters and fast classes in place of plain ones."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TypeVar

from torch import nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def twin(module: ModuleT, fast_types: Mapping[type[nn.Module], type[nn.Module]]) -> ModuleT:
    """The same tree of modules, with each module whose exact type is in the table replaced by one of its fast type.

    The modules are new, their parameters and buffers are shared: an update of one updates the other. A module that occurs several times
    does so in the twin.
    """
    return _twin(module, fast_types, {})


def _twin(
    module: ModuleT,
    fast_types: Mapping[type[nn.Module], type[nn.Module]],
    done: dict[nn.Module, nn.Module],
) -> ModuleT:
    if module not in done:
        fast = done[module] = as_type(fast_types.get(type(module), type(module)), module)
        children = module.__dict__["_modules"].items()
        fast.__dict__["_modules"] = {
            name: None if child is None else _twin(child, fast_types, done) for name, child in children
        }
    return done[module]  # type: ignore[return-value] # a subclass of its type


def as_type(kind: type[ModuleT], module: nn.Module) -> ModuleT:
    """A copy of a module as one of a subclass, with the same parameters, buffers and children."""
    fast = copy(module)
    fast.__class__ = kind
    assert isinstance(fast, kind)
    return fast
