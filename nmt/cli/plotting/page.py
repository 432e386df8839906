"""`nmt plot -o page.html`: an HTML page of sentences aligned by one or two models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.plotting.request import Request
from nmt.cli.streams import open_output
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.alignment.translation import Translation
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator
    from nmt.plotting.explorer import Reading


def write_page(
    output: Path, request: Request, models: Sequence[tuple[str, Bundle, Translator]], *, quiet: bool
) -> None:
    """Align the sentences by each model and write the page. Blank sentences are left out."""
    from nmt.bundle.languages import choose_direction
    from nmt.plotting.explorer import Explored, explorer_page

    columns = [request.read(translator, name, quiet=quiet) for name, _, translator in models]
    sentences = []
    for index, translations in enumerate(zip(*columns, strict=True)):
        readings = tuple(
            _reading(request, index, translation, bundle)
            for translation, (_, bundle, _) in zip(translations, models, strict=True)
            if translation.source_ids
        )
        if readings:
            reference = request.references[index] if request.references else ""
            sentences.append(Explored(index + 1, readings, reference, request.gold[index] if request.gold else None))
    if not sentences:
        raise DataError("There are no sentences to explore: all lines are blank.")
    names = [name for name, _, _ in models]
    languages = choose_direction(models[0][1].recipe.data, request.to)
    page = explorer_page(sentences, names, title="Alignments: " + " and ".join(names), languages=languages)
    with open_output(output) as stream:
        stream.write(page.encode())


def _reading(request: Request, index: int, translation: Translation, bundle: Bundle) -> Reading:
    from nmt.alignment.weights import entropy
    from nmt.plotting.explorer import Reading

    words, best = translation.word_alignment(), translation.hypotheses[0]
    figures = {
        "length": len(words.source),
        "score": best.log_probability / len(best.token_log_probs) if best.token_log_probs else None,
        "entropy": float(entropy(words.weights).mean()) if words.weights.size else None,
        "bleu": request.bleu(index, best.text, bundle),
        "aer": request.error_rate(index, translation),
    }
    available = {name: value for name, value in figures.items() if value is not None}
    return Reading(words, translation.token_alignment(), translation.links, available)
