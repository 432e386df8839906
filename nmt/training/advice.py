"""What to tell somebody whose vocabulary or model is too large for their text, before the time is spent."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.recipe import Recipe

_LEAST_OCCURRENCES = 40
"""Of a piece in the training text on average; with fewer, smaller vocabularies translate better (recipes/README.md)."""
_MOST_PARAMETERS = 40
"""For each piece of the training text on the target side."""
_SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
_SMALL = 40_000
"""Pairs up to which the recipe `small` is the better one."""


@dataclass(frozen=True)
class Extent:
    """How much a run has to learn from, and how much it has to learn."""

    pairs: int
    tokens: tuple[int, int]
    """Subword pieces of the training text, source and target."""
    pieces: tuple[int, int]
    """Sizes of the vocabularies, source and target."""
    parameters: int


def advise(recipe: Recipe, extent: Extent) -> str | None:
    """One sentence on what to set if pieces or parameters outweigh the pairs; None if they do not."""
    preset = "small" if extent.pairs <= _SMALL else "medium"
    return _on_pieces(recipe, extent, preset) or _on_parameters(extent, preset)


def _on_pieces(recipe: Recipe, extent: Extent, preset: str) -> str | None:
    subwords = recipe.subwords
    if subwords.kind not in ("unigram", "bpe") or subwords.source_model:
        return None
    tokens, pieces = (sum(extent.tokens), extent.pieces[0]) if subwords.joint else _rarest(extent)
    if tokens >= _LEAST_OCCURRENCES * pieces:
        return None
    size = max([_SIZES[0], *(size for size in _SIZES if size * _LEAST_OCCURRENCES <= tokens)])
    return (
        f"{pieces:,} pieces are many for {extent.pairs:,} pairs, where each occurs {tokens / pieces:.0f} times on average: "
        f"try subwords.size={size}, or the recipe `{preset}`."
    )


def _rarest(extent: Extent) -> tuple[int, int]:
    """Tokens and pieces of the side whose pieces occur less often."""
    return min(zip(extent.tokens, extent.pieces, strict=True), key=lambda side: side[0] / side[1])


def _on_parameters(extent: Extent, preset: str) -> str | None:
    share = extent.parameters / max(extent.tokens[1], 1)
    if share <= _MOST_PARAMETERS:
        return None
    return (
        f"{extent.parameters / 1e6:.1f} M parameters are many for {extent.pairs:,} pairs, {share:.0f} for each target token: "
        f"try smaller widths, as in the recipe `{preset}`."
    )
