"""What `nmt plot -o page.html` shows: sentences read by one or two models, with their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.progress import shown
from nmt.cli.streams import open_input, open_output, text_lines
from nmt.errors import DataError, UsageError

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.decoding.translation import Translation
    from nmt.decoding.translator import Translator
    from nmt.evaluation.alignment import GoldLinks
    from nmt.plotting.explorer import Explored, Reading


@dataclass(frozen=True)
class Request:
    """Sentences to show, and what is known of them.

    Attributes:
        sources: the sentences.
        references: a translation of each; None where none are known.
        forced: whether the references are read, rather than compared with what the models find.
        gold: links between sources and references; None where none are known.
        posterior: whether the posterior alignment is shown, not the attention.
    """

    sources: list[str]
    references: list[str] | None = None
    forced: bool = False
    gold: list[GoldLinks] | None = None
    posterior: bool = False

    def __post_init__(self) -> None:
        for what, given in (("reference translations", self.references), ("lines of gold links", self.gold)):
            if given is not None and len(given) != len(self.sources):
                counts = f"{len(given):,} for {len(self.sources):,}"
                raise DataError(f"There must be as many {what} as sentences, but there are {counts}.")


def read_request(
    sentences: Sequence[str],
    source: Path | None,
    *,
    target: str | None,
    reference: Path | None,
    gold: Path | None,
    force: bool,
    posterior: bool,
) -> Request:
    """Gather the sentences from the command line and from files. Raises UsageError or DataError."""
    from nmt.evaluation.naacl import read_gold

    if bool(sentences) == (source is not None):
        raise UsageError("Give sentences as arguments, or a file of them with -i (- is stdin), and not both.")
    if target is not None and (reference is not None or len(sentences) != 1):
        raise UsageError("--target translates one SENTENCE: for a file give --reference FILE and --force.")
    if target is None and reference is None and (force or gold is not None):
        needing = "--force" if gold is None else "--gold"
        raise UsageError(f"{needing} needs the translations: give --target or --reference.")
    sources = list(sentences) if source is None else _lines(source)
    references = _lines(reference) if reference is not None else None if target is None else [target]
    forced = force or target is not None or gold is not None
    known = None if gold is None else read_gold(gold, len(sources))
    return Request(sources, references, forced, known, posterior)


def write_page(
    output: Path, request: Request, models: Sequence[tuple[str, Bundle, Translator]], *, quiet: bool
) -> None:
    """Let each model read the sentences, and write the page. Blank sentences are passed over."""
    from nmt.plotting.explorer import explorer_page

    columns = [list(_readings(request, bundle, translator, name, quiet=quiet)) for name, bundle, translator in models]
    sentences = list(_explored(request, columns))
    if not sentences:
        raise DataError("There are no sentences to explore: all lines are blank.")
    data = models[0][1].recipe.data
    names = [name for name, _, _ in models]
    page = explorer_page(
        sentences, names, title="Alignments: " + " and ".join(names), languages=(data.source, data.target)
    )
    with open_output(output) as stream:
        stream.write(page.encode())


def read(request: Request, translator: Translator) -> Iterator[Translation]:
    """How a model reads each sentence: with the reference if that is forced, else with what it finds itself."""
    if request.forced and request.references is not None:
        return translator.score(zip(request.sources, request.references, strict=True))
    return translator.translate(request.sources)


def _lines(path: Path) -> list[str]:
    with open_input(path) as stream:
        return list(text_lines(stream, path))


def _readings(
    request: Request, bundle: Bundle, translator: Translator, name: str, *, quiet: bool
) -> Iterator[Reading | None]:
    """Each sentence as a model reads it, None for a blank one; a reference that is forced says nothing by its BLEU."""
    watched = shown(read(request, translator), name, total=len(request.sources), quiet=quiet)
    for at, found in enumerate(watched):
        reference = None if request.forced or request.references is None else request.references[at]
        gold = request.gold[at] if request.gold else None
        yield _reading(found, bundle, reference, gold, posterior=request.posterior) if found.source_ids else None


def _reading(
    found: Translation, bundle: Bundle, reference: str | None, gold: GoldLinks | None, *, posterior: bool
) -> Reading:
    from nmt.aligning import error_rate, word_alignment, word_links
    from nmt.aligning.matrices import piece_alignment
    from nmt.evaluation.alignment import entropy
    from nmt.evaluation.sentence import sentence_bleu
    from nmt.plotting.explorer import Reading

    words = word_alignment(found, bundle)
    links = word_links(words, bundle.recipe, posterior=posterior)
    best = found.hypotheses[0]
    figures: dict[str, float] = {"length": len(words.source)}
    if best.token_log_probs:
        figures["score"] = best.log_probability / len(best.token_log_probs)
    if words.weights.size:
        figures["entropy"] = float(entropy(words.weights).mean())
    if reference is not None:
        recipe = bundle.recipe
        figures["bleu"] = sentence_bleu(
            best.text, reference, language=recipe.data.target, tokenize=recipe.evaluation.tokenize
        )
    if gold is not None:
        figures["aer"] = error_rate([links], [gold]).aer
    return Reading(words, piece_alignment(found, bundle), links, figures)


def _explored(request: Request, columns: Sequence[Sequence[Reading | None]]) -> Iterator[Explored]:
    """The sentences that are not blank, numbered by their lines."""
    from nmt.plotting.explorer import Explored

    for at, column in enumerate(zip(*columns, strict=True)):
        if readings := tuple(reading for reading in column if reading):
            reference = "" if request.references is None else request.references[at]
            yield Explored(at + 1, readings, reference, request.gold[at] if request.gold else None)
