"""The options and inputs of a translator, and their checks, which raise UsageError with one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeGuard, TypeVar

from nmt.arguments import as_path, described
from nmt.data.subwords import Subwords
from nmt.decoding.sampling import Sampling
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.unknown import Lexicon
from nmt.device import DecodingPrecision
from nmt.errors import UsageError
from nmt.recipe import DecodingConfig, change_decoding

ItemT = TypeVar("ItemT")

Pair = tuple[str, str | Sequence[int]]
"""A source and its translation, as text or as token ids."""


class Options(TypedDict, total=False):
    """The options of a `Translator`, described at `nmt.load`."""

    decoding: DecodingConfig | Mapping[str, Any] | None
    n_best: int
    batch_tokens: int
    window: int
    max_source: int
    alignments: bool
    posterior: bool
    replace_unknown: Lexicon | None
    shortlist: Shortlist | str | Path | None
    precision: DecodingPrecision | Literal["auto"]
    processes: int
    sampling: Sampling | None


def check_names(names: Iterable[str]) -> None:
    """Raise UsageError for names that are not options of a translator."""
    for name in names:
        if name in DecodingConfig.model_fields:
            raise UsageError(f'{name} is one of the decoding settings: give decoding={{"{name}": ...}}.')
        guess = difflib.get_close_matches(name, Options.__annotations__, n=1)
        raise UsageError(f"There is no option '{name}'" + (f"; did you mean '{guess[0]}'?" if guess else "."))


def override_decoding(own: DecodingConfig, decoding: object) -> DecodingConfig:
    """Replace all of a model's decoding settings (by a DecodingConfig) or some of them (by a mapping). Raises UsageError."""
    if decoding is None or isinstance(decoding, DecodingConfig):
        return decoding or own
    if isinstance(decoding, Mapping):
        return change_decoding(own, decoding, "Options")
    raise UsageError(f'decoding must be settings such as {{"beam_size": 3}}, but is {described(decoding)}.')


def as_shortlist(shortlist: object, source: Subwords, target: Subwords) -> Shortlist | None:
    """Load the shortlist if it is given as a file. Raises UsageError and DataError."""
    if shortlist is None or isinstance(shortlist, Shortlist):
        return shortlist
    return Shortlist.load(as_path(shortlist, "shortlist"), source, target)


def check_lexicon(lexicon: object) -> None:
    """Raise UsageError unless the lexicon is None or a mapping of words to words."""
    if lexicon is None:
        return
    if not isinstance(lexicon, Mapping):
        raise UsageError(
            f"replace_unknown must be a dict of source words and their translations ({{}} copies them all), "
            f"but is {described(lexicon)}."
        )
    for word in (*lexicon, *lexicon.values()):
        if not isinstance(word, str):
            raise UsageError(f"replace_unknown must have a str for each word, but has {described(word)}.")


def check_sampling(sampling: object) -> None:
    """Raise UsageError unless `sampling` is None or a Sampling."""
    if sampling is not None and not isinstance(sampling, Sampling):
        raise UsageError(f"sampling must be a Sampling, such as nmt.Sampling(top_k=10), but is {described(sampling)}.")


def checked_items(items: object, check: Callable[[int, object], ItemT], expected: str) -> Iterable[ItemT]:
    """Check the items of an iterable: those of a list at once, of any other as they are read, since it may exceed memory.

    Args:
        items: the iterable.
        check: returns an item, given its number from 1, or raises UsageError.
        expected: what was expected, the start of the error message if `items` is not iterable.
    """
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | bytearray):
        raise UsageError(f"{expected} or an iterable of them, but got {described(items)}.")
    checked = (check(number, item) for number, item in enumerate(items, start=1))
    return list(checked) if isinstance(items, list | tuple) else checked


def as_line(number: int, line: object) -> str:
    """The line if it is a str. Raises UsageError."""
    if not isinstance(line, str):
        raise UsageError(f"Line {number} must be a str, but is {described(line)}.")
    return line


def as_pair(number: int, pair: object) -> Pair:
    """The pair if it is a source and its translation. Raises UsageError."""
    if not is_pair(pair):
        raise UsageError(
            f"Pair {number} must be (source, target), each a str, or the target a list of ids, but is {described(pair)}."
        )
    source, target = pair
    return source, target


def is_pair(pair: object) -> TypeGuard[Pair]:
    """Whether it is a source text and its translation, as text or as ids."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    source, target = pair
    return isinstance(source, str) and (isinstance(target, str) or _are_ids(target))


def _are_ids(target: object) -> bool:
    return isinstance(target, Sequence) and all(isinstance(index, Integral) for index in target)
