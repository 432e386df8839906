"""Twins: the same tree of modules and the same parameters, with fast classes in the place of plain ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from torch import nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def twin(module: ModuleT, fast_types: Mapping[type[nn.Module], type[nn.Module]]) -> ModuleT:
    """A tree of modules like this one, where each module whose exact type is in the table has the type beside it.

    The modules are new, their parameters and buffers are shared: an update of one is an update of the other. A module that stands in
    several places does so in the twin.
    """
    return _twin(module, fast_types, {})


def _twin(
    module: ModuleT,
    fast_types: Mapping[type[nn.Module], type[nn.Module]],
    done: dict[nn.Module, nn.Module],
) -> ModuleT:
    if module not in done:
        fast = object.__new__(fast_types.get(type(module), type(module)))
        fast.__dict__.update(module.__dict__)
        done[module] = fast
        children = module.__dict__["_modules"].items()
        fast.__dict__["_modules"] = {
            name: None if child is None else _twin(child, fast_types, done) for name, child in children
        }
    return done[module]  # type: ignore[return-value] # a subclass of its type
