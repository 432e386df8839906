"""Beam search with options as keywords."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nmt.search import Hypothesis, Search, SearchOptions
from nmt.search.beam import Selectable
from nmt.search.loop import StepFunction


def beam_search(
    step: StepFunction,
    state: Selectable,
    memory: Selectable,
    *,
    max_lengths: Tensor,
    source_mask: Tensor | None = None,
    kind: type[Search] = Search,
    **options: Any,
) -> list[list[Hypothesis]]:
    """The hypotheses that a search finds."""
    return kind(SearchOptions(**options)).run(step, state, memory, max_lengths, source_mask=source_mask)
