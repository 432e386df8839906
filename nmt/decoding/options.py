"""The options and inputs of a translator, and their checks, which raise UsageError with one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeGuard, TypeVar

from nmt.decoding.shortlist import Shortlist
from nmt.decoding.unknown import Lexicon
from nmt.errors import UsageError
from nmt.recipe import DecodingConfig, change_decoding
from nmt.runtime.arguments import as_path, check_counts, check_flags, described
from nmt.runtime.device import DecodingPrecision
from nmt.runtime.wording import did_you_mean
from nmt.search.sampling import Sampling
from nmt.text.subwords import Subwords

ItemT = TypeVar("ItemT")

Pair = tuple[str, str | Sequence[int]]
"""A source and its translation, as text or as token ids."""


class CallOptions(TypedDict, total=False):
    """The options that `nmt.load` and each call of a `Translator` take, described at `nmt.load`."""

    beam_size: int
    length_penalty: float
    coverage_penalty: float
    max_ratio: float
    horizon: int | None
    prune: float | None
    mbr_samples: int | None
    mbr_temperature: float
    mbr_beta: float
    decoding: DecodingConfig | Mapping[str, Any] | None
    n_best: int
    sampling: Sampling | None
    alignments: bool
    posterior: bool
    replace_unknown: Lexicon | None
    batch_tokens: int | None
    window: int
    max_source: int
    processes: int
    split_sentences: bool
    to: str | None


class Options(CallOptions, total=False):
    """All options of a `Translator`. The last ones decide how weights are packed, so a call cannot change them."""

    shortlist: Shortlist | str | Path | None
    precision: DecodingPrecision | Literal["auto"]


@dataclass(frozen=True)
class TranslationSettings:
    """What a call may change, checked: each field is an option of `nmt.load`.

    Raises:
        UsageError: a value is out of range.
    """

    decoding: DecodingConfig
    n_best: int = 1
    sampling: Sampling | None = None
    alignments: bool = True
    posterior: bool = False
    replace_unknown: Lexicon | None = None
    batch_tokens: int | None = None
    window: int = 2000
    max_source: int = 500
    processes: int = 1
    split_sentences: bool = False
    to: str | None = None

    def __post_init__(self) -> None:
        counts = {name: getattr(self, name) for name in _COUNTS}
        check_counts(counts if self.batch_tokens is None else counts | {"batch_tokens": self.batch_tokens})
        check_flags({name: getattr(self, name) for name in _FLAGS})
        if self.n_best > self.hypotheses and self.draws:
            raise UsageError(f"n_best must be at most mbr_samples, which is {self.hypotheses}, but is {self.n_best}.")
        _check_lexicon(self.replace_unknown)
        if self.to is not None and not isinstance(self.to, str):
            raise UsageError(f"to must be the code of a language, such as 'gn', but is {described(self.to)}.")

    @property
    def draws(self) -> Sampling | None:
        """How translations are drawn at random, to return them or to choose among them; None for beam search."""
        if self.sampling is None and self.decoding.mbr_samples is not None:
            return Sampling(self.decoding.mbr_temperature)
        return self.sampling

    @property
    def hypotheses(self) -> int:
        """How many hypotheses a sentence has at a time."""
        return self.decoding.hypotheses if self.sampling is None else self.n_best

    def changed(self, options: Mapping[str, Any]) -> TranslationSettings:
        """The same settings but for some options. Raises UsageError for one that does not exist or is out of range."""
        _check_names(options)
        sampling = options.get("sampling")
        if sampling is not None and not isinstance(sampling, Sampling):
            example = "nmt.Sampling(top_k=10)"
            raise UsageError(f"sampling must be a Sampling, such as {example}, but is {described(sampling)}.")
        single = {name: value for name, value in options.items() if name in DecodingConfig.model_fields}
        others = {name: value for name, value in options.items() if name not in single}
        decoding = _override(_override(self.decoding, others.pop("decoding", None)), single or None)
        return replace(self, decoding=decoding, **others)


_COUNTS = ("n_best", "window", "max_source", "processes")
_FLAGS = ("alignments", "posterior", "split_sentences")


def _check_names(names: Iterable[str]) -> None:
    """Raise UsageError for names that are not options of a call."""
    for name in names:
        if name in CallOptions.__annotations__:
            continue
        if name in Options.__annotations__:
            raise UsageError(f"{name} decides how the weights are packed, once: give it to nmt.load.")
        raise UsageError(f"There is no option '{name}'{did_you_mean(name, Options.__annotations__)}")


def _override(own: DecodingConfig, decoding: object) -> DecodingConfig:
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


def _check_lexicon(lexicon: object) -> None:
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


def checked_items(items: object, check: Callable[[int, object], ItemT], expected: str) -> Iterable[ItemT]:
    """Check the items of an iterable: those of a list at once, of any other as they are read, since it may exceed memory.

    Args:
        items: the iterable.
        check: returns an item, given its number from 1, or raises UsageError.
        expected: what was expected, the start of the error message if `items` is not iterable.
    """
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | bytearray):
        raise UsageError(f"{expected}, but got {described(items)}.")
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
    if not isinstance(source, str) or not isinstance(target, Sequence):
        return False
    return isinstance(target, str) or all(isinstance(index, Integral) for index in target)
