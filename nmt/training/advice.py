"""What to tell somebody whose vocabulary or model is too large for their text, before the time is spent."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.recipe import Recipe

_LEAST_OCCURRENCES = 10
"""Of a piece in the training text on average. Down to 11, larger vocabularies translate better (recipes/README.md)."""
_MOST_PARAMETERS = 100
"""For each target token. 50 translate well (recipes/README.md)."""
_SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
_PRESETS = {"medium": 60_000, "small": 0}
"""The recipe to take widths from, and the pairs from which on it is the one."""


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
    excesses = [excess for excess in (_of_pieces(recipe, extent), _of_parameters(extent)) if excess]
    if not excesses:
        return None
    subjects, remedies = (" and ".join(parts) for parts in zip(*excesses, strict=True))
    verb = "is" if len(excesses) == 1 else "are"
    return f"{subjects[0].upper()}{subjects[1:]} {verb} too much for {extent.pairs:,} pairs. Try {remedies}."


def _of_pieces(recipe: Recipe, extent: Extent) -> tuple[str, str] | None:
    """What is too many, and what to set instead."""
    subwords = recipe.subwords
    if subwords.kind not in ("unigram", "bpe") or subwords.source_model:
        return None
    tokens, pieces = (sum(extent.tokens), extent.pieces[0]) if subwords.joint else _rarest(extent)
    if tokens >= _LEAST_OCCURRENCES * pieces or pieces <= _SIZES[0]:
        return None
    size = max([_SIZES[0], *(size for size in _SIZES if size * _LEAST_OCCURRENCES <= tokens)])
    return f"a vocabulary of {pieces:,} tokens ({tokens / pieces:.1f} occurrences each)", f"subwords.size={size}"


def _rarest(extent: Extent) -> tuple[int, int]:
    """Tokens and pieces of the side whose pieces occur less often."""
    return min(zip(extent.tokens, extent.pieces, strict=True), key=lambda side: side[0] / side[1])


def _of_parameters(extent: Extent) -> tuple[str, str] | None:
    share = extent.parameters / max(extent.tokens[1], 1)
    if share <= _MOST_PARAMETERS:
        return None
    preset = next(name for name, pairs in _PRESETS.items() if extent.pairs >= pairs)
    return (
        f"a model of {extent.parameters / 1e6:.1f} M parameters ({share:.0f} per target token)",
        f"the widths of the recipe {preset}",
    )
