"""The sentences that `nmt plot` shows, with their references and gold links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.streams import open_input, text_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import with_progress

if TYPE_CHECKING:
    from nmt.alignment.links import GoldLinks
    from nmt.alignment.translation import Translation
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator


@dataclass(frozen=True)
class Request:
    """The sentences to show.

    Attributes:
        sources: the sentences.
        references: a reference translation of each; None if there are none.
        forced: whether to align the references rather than translations by the model.
        gold: gold links between sources and references; None if there are none.
        to: the language to translate to; None for the only one.
    """

    sources: list[str]
    references: list[str] | None = None
    forced: bool = False
    gold: list[GoldLinks] | None = None
    to: str | None = None

    def __post_init__(self) -> None:
        for name, lines in (("reference translations", self.references), ("lines of gold links", self.gold)):
            if lines is not None and len(lines) != len(self.sources):
                counts = f"{len(lines):,} for {len(self.sources):,}"
                raise DataError(f"There must be as many {name} as sentences, but there are {counts}.")

    def bleu(self, index: int, text: str, bundle: Bundle) -> float | None:
        """BLEU of a model's translation of a sentence; None without reference, or if the reference was forced."""
        from nmt.bundle.languages import choose_direction
        from nmt.evaluation.metrics import sentence_bleu

        if self.references is None or self.forced:
            return None
        _, target = choose_direction(bundle.recipe.data, self.to)
        return sentence_bleu(text, self.references[index], language=target, tokenize=bundle.recipe.evaluation.tokenize)

    def error_rate(self, index: int, translation: Translation, rank: int = 0) -> float | None:
        """Alignment error rate of a hypothesis; None without gold links."""
        from nmt.alignment.error_rate import error_rate

        return None if self.gold is None else error_rate([translation.word_links(rank)], [self.gold[index]]).aer

    def read(self, translator: Translator, label: str, *, quiet: bool) -> Iterator[Translation]:
        """Translate each sentence, or score its reference if forced, with a progress bar."""
        if self.forced and self.references is not None:
            translations = translator.stream_scores(zip(self.sources, self.references, strict=True))
        else:
            translations = translator.stream(self.sources)
        return with_progress(translations, label, total=len(self.sources), quiet=quiet)


def read_request(
    sentences: Sequence[str],
    source: Path | None,
    *,
    target: str | None = None,
    reference: Path | None = None,
    gold: Path | None = None,
    force: bool = False,
    to: str | None = None,
) -> Request:
    """Read the sentences from the command line or from files. Raises UsageError or DataError."""
    from nmt.alignment.link_files import read_gold

    if bool(sentences) == (source is not None):
        raise UsageError("Give sentences as arguments, or a file of them with -i (- is stdin), and not both.")
    if target is not None and (reference is not None or len(sentences) != 1):
        raise UsageError("--target translates one SENTENCE: for a file give --reference FILE and --force.")
    if target is None and reference is None and (force or gold is not None):
        option = "--force" if gold is None else "--gold"
        raise UsageError(f"{option} needs the translations: give --target or --reference.")
    sources = list(sentences) if source is None else _lines(source)
    references = _lines(reference) if reference is not None else None if target is None else [target]
    forced = force or target is not None or gold is not None
    gold_links = None if gold is None else read_gold(gold, len(sources))
    return Request(sources, references, forced, gold_links, to)


def _lines(path: Path) -> list[str]:
    with open_input(path) as stream:
        return list(text_lines(stream, path))
