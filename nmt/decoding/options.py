"""The options of a translator, and the checks of its inputs, which raise UsageError with one clear message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from numbers import Integral
from typing import Annotated, Any, TypeGuard

from pydantic import BeforeValidator

from nmt.errors import UsageError
from nmt.recipe import FOUND_IN_TRAINING, DecodingConfig, change_decoding
from nmt.recipe.section import Size
from nmt.runtime.arguments import described
from nmt.runtime.wording import did_you_mean
from nmt.search.sampling import Sampling

Pair = tuple[str, str | Sequence[int]]
"""A source and its translation, as text or as token ids."""


def as_sampling(value: object) -> object:
    """A Sampling that is given as a dict of its settings, or the value itself."""
    try:
        return Sampling(**value) if isinstance(value, dict) else value
    except TypeError:
        raise ValueError("it has a temperature, top_k and seed, which are numbers") from None


class DecodingOptions(DecodingConfig):
    """The options of `nmt.load`, of each call of a `Translator`, and of `nmt translate --set decoding.KEY=VALUE`.

    The first ones are settings of the recipe, and their defaults are those of the (first) model's recipe.
    """

    n_best: Size = 1
    """Most hypotheses per line, up to the beam size or the number of samples; with `sampling`, that number."""
    alternatives: bool = False
    """Whether the hypotheses of a line differ in the first token after its prefix: the best one, the best one of those that go on
    otherwise, and so on; each takes a search. Samples are drawn as without it."""
    sampling: Annotated[Sampling | None, BeforeValidator(as_sampling)] = None
    """Draw translations at random in this way, such as `nmt.Sampling(top_k=10)`. None is beam search."""
    alignments: bool = True
    """Whether hypotheses carry their alignment."""
    posterior: bool = False
    """Whether the alignment is the posterior given the target tokens (see `posterior_alignment`), not the attention; it takes a second
    pass with many output layers per token."""
    replace_unknown: dict[str, str] | None = None
    """Translations of source words, to replace unknown tokens of the output. Each is replaced by the translation of the source word with
    the largest attention weight, or by that word itself if it has none; `{}` copies all. None keeps SentencePiece's mark `⁇`."""
    terms: dict[str, str] | None = None
    """Translations that must be used wherever their source words occur, the longest first. They share the beam: use a larger one, such
    as 10. Text written without spaces has no words to match. Links show where they are, see `Translation.term_links`."""
    batch_tokens: Size | None = None
    """Source tokens per batch times the beam size, padding included; more is faster and takes more memory. None is 8192, and 65536 for
    search on a GPU."""
    window: Size = 2000
    """Number of lines that are read ahead and sorted by length; 1 translates each line before reading the next."""
    max_source: Size = 500
    """Longest source in tokens; longer lines are translated in parts, and hypothesis n joins number n of each part."""
    processes: Size = 1
    """Most processes that decode batches in parallel, with one thread each; each needs working memory of its own. Only the main thread
    starts them."""
    to: str | None = None
    """The language to translate to, of a model with several (`to="gn"`). None is the only one."""

    @property
    def draws(self) -> Sampling | None:
        """How translations are drawn at random, to return them or to choose among them; None for beam search."""
        if self.sampling is None and self.mbr_samples is not None:
            return Sampling(self.mbr_temperature)
        return self.sampling

    @property
    def hypotheses(self) -> int:
        """How many hypotheses a sentence has at a time."""
        return super().hypotheses if self.sampling is None else self.n_best

    def changed(self, options: Mapping[str, Any]) -> DecodingOptions:
        """The same options with some changed; `decoding` is a `DecodingConfig`, or a dict of several options.

        Raises UsageError for an option that does not exist or is out of range.
        """
        changes = dict(options.get("decoding") or {}) | {**options}
        changes.pop("decoding", None)
        for name in FOUND_IN_TRAINING:
            if changes.get(name) is None:
                changes.pop(name, None)
        for name in changes:
            if name in ("shortlist", "precision"):
                raise UsageError(f"{name} decides how the weights are packed, once: give it to nmt.load.")
            if name not in type(self).model_fields:
                raise UsageError(f"There is no option '{name}'{did_you_mean(name, type(self).model_fields)}")
        changed = change_decoding(self, changes, "Options")
        if changed.draws is not None and changed.terms:
            raise UsageError("terms need a beam search: leave them out, or sampling and mbr_samples.")
        if changed.draws is not None and changed.n_best > changed.hypotheses:
            limit = changed.hypotheses
            raise UsageError(f"n_best must be at most mbr_samples, which is {limit}, but is {changed.n_best}.")
        return changed


# `help` does not show what stands below a field.
DecodingOptions.__doc__ = f"{DecodingOptions.__doc__}\n    Attributes:\n" + "".join(
    f"        {name}: {' '.join((field.description or '').split())}\n"
    for name, field in DecodingOptions.model_fields.items()
)


def checked_lines(lines: object) -> Iterator[str]:
    """The lines of an iterable, as they are read. Raises UsageError for a line that is no str, and for a str, which is one."""
    for number, line in _numbered(lines, "lines"):
        if not isinstance(line, str):
            raise UsageError(f"Line {number} must be a str, but is {described(line)}.")
        yield line


def with_prefixes(lines: object, prefix: object) -> Iterator[tuple[str, str]]:
    """Each line with its prefix; "" stands for none at all. Raises UsageError as `checked_lines` does, or if their numbers differ."""
    if prefix == "":
        yield from ((line, "") for line in checked_lines(lines))
        return
    for number, (line, text) in enumerate(zip_longest(checked_lines(lines), checked_lines(prefix)), start=1):
        if line is None or text is None:
            raise UsageError(f"There must be a prefix for each line, but only one of them has a line {number}.")
        yield line, text


def checked_pairs(pairs: object) -> Iterator[Pair]:
    """The pairs of an iterable, as they are read. Raises UsageError for what is no source and its translation."""
    for number, pair in _numbered(pairs, "pairs (source, target)"):
        if not is_pair(pair):
            expected = "(source, target), each a str, or the target a list of ids"
            raise UsageError(f"Pair {number} must be {expected}, but is {described(pair)}.")
        yield pair


def _numbered(inputs: object, what: str) -> Iterator[tuple[int, object]]:
    if not isinstance(inputs, Iterable) or isinstance(inputs, str | bytes):
        raise UsageError(f"Expected an iterable of {what}, but got {described(inputs)}.")
    return enumerate(inputs, start=1)


def is_pair(pair: object) -> TypeGuard[Pair]:
    """Whether it is a source text and its translation, as text or as ids."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    source, target = pair
    if not isinstance(source, str) or not isinstance(target, Sequence):
        return False
    return isinstance(target, str) or all(isinstance(index, Integral) for index in target)
