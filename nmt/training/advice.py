"""Warn before training if the vocabulary or the model is too large for the corpus."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.recipe import Recipe

_MIN_OCCURRENCES = 10
"""Mean occurrences of a token in the training text. Down to 11, larger vocabularies translate better (recipes/NOTES.md)."""
_MAX_PARAMETERS = 100
"""Parameters per target token of the training text."""
_SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
"""Vocabulary sizes to suggest."""
_PRESETS = {"medium": 60_000, "small": 0}
"""Recipes whose widths to suggest, largest first, and the number of pairs from which each is suitable."""


@dataclass(frozen=True)
class TrainingSize:
    """The sizes of a training corpus and of the model that is trained on it.

    Attributes:
        pairs: number of sentence pairs.
        tokens: number of source and of target tokens.
        vocabulary: sizes of the source and of the target vocabulary.
        parameters: number of parameters.
    """

    pairs: int
    tokens: tuple[int, int]
    vocabulary: tuple[int, int]
    parameters: int


def advise(recipe: Recipe, size: TrainingSize) -> str | None:
    """One sentence on which settings to change if the vocabulary or the model is too large for the corpus, else None."""
    problems = list(filter(None, (_vocabulary_problem(recipe, size), _parameters_problem(recipe, size))))
    if not problems:
        return None
    subjects, remedies = (" and ".join(parts) for parts in zip(*problems, strict=True))
    verb = "is" if len(problems) == 1 else "are"
    return f"{subjects[0].upper()}{subjects[1:]} {verb} too much for {size.pairs:,} pairs. Try {remedies}."


def _vocabulary_problem(recipe: Recipe, size: TrainingSize) -> tuple[str, str] | None:
    """The problem and its remedy if tokens are too rare, else None."""
    subwords, pretrained = recipe.subwords, recipe.training.pretrained
    are_given = subwords.source_model is not None or (pretrained is not None and pretrained.subwords == "same")
    if are_given or subwords.kind not in ("unigram", "bpe"):
        return None
    tokens, vocabulary = (sum(size.tokens), size.vocabulary[0]) if subwords.joint else _side_with_rarer_tokens(size)
    if tokens >= _MIN_OCCURRENCES * vocabulary or vocabulary <= _SIZES[0]:
        return None
    suggestion = max([_SIZES[0], *(size for size in _SIZES if size * _MIN_OCCURRENCES <= tokens)])
    return (
        f"a vocabulary of {vocabulary:,} tokens ({tokens / vocabulary:.1f} occurrences each)",
        f"subwords.size={suggestion}",
    )


def _side_with_rarer_tokens(size: TrainingSize) -> tuple[int, int]:
    """Number of tokens and vocabulary size of the side whose tokens occur less often on average."""
    return min(zip(size.tokens, size.vocabulary, strict=True), key=lambda side: side[0] / side[1])


def _parameters_problem(recipe: Recipe, size: TrainingSize) -> tuple[str, str] | None:
    """The problem and its remedy if there are too many parameters, else None. A pretrained model has learnt its own elsewhere."""
    if recipe.training.pretrained is not None:
        return None
    per_token = size.parameters / max(size.tokens[1], 1)
    if per_token <= _MAX_PARAMETERS:
        return None
    preset = next(name for name, pairs in _PRESETS.items() if size.pairs >= pairs)
    return (
        f"a model of {size.parameters / 1e6:.1f} M parameters ({per_token:.0f} per target token)",
        f"the widths of the recipe {preset}",
    )
