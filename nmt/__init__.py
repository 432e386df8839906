"""Attentional recurrent translation: train, translate, score, and see the alignments."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt import search
    from nmt.alignment.corpus_links import links
    from nmt.alignment.translation import TranslationHypothesis
    from nmt.alignment.weights import Alignment
    from nmt.bundle.folder import Bundle
    from nmt.comparison.evaluation import Evaluation, evaluate
    from nmt.data.corpus import ParallelCorpus
    from nmt.data.locators import load_corpus
    from nmt.decoding.loading import load
    from nmt.decoding.options import DecodingOptions
    from nmt.decoding.translator import Translation, Translator
    from nmt.errors import DataError, NmtError, UsageError
    from nmt.plotting.heatmap import plot_alignment
    from nmt.plotting.importances import plot_importances
    from nmt.plotting.style import Drawing
    from nmt.recipe import Recipe
    from nmt.search.sampling import Sampling
    from nmt.sharing.publishing import Upload, export, push
    from nmt.text.subwords import Subwords
    from nmt.training.auto import load_recipe
    from nmt.training.trainer import TrainingResult, train


__version__ = "0.1.0"

__all__ = [
    "Alignment",
    "Bundle",
    "DataError",
    "DecodingOptions",
    "Drawing",
    "Evaluation",
    "NmtError",
    "ParallelCorpus",
    "Recipe",
    "Sampling",
    "Subwords",
    "TrainingResult",
    "Translation",
    "TranslationHypothesis",
    "Translator",
    "Upload",
    "UsageError",
    "evaluate",
    "export",
    "links",
    "load",
    "load_corpus",
    "load_recipe",
    "plot_alignment",
    "plot_importances",
    "push",
    "search",
    "train",
]

_HOME = {
    "Alignment": "nmt.alignment.weights",
    "Bundle": "nmt.bundle.folder",
    "DataError": "nmt.errors",
    "DecodingOptions": "nmt.decoding.options",
    "Drawing": "nmt.plotting.style",
    "Evaluation": "nmt.comparison.evaluation",
    "NmtError": "nmt.errors",
    "ParallelCorpus": "nmt.data.corpus",
    "Recipe": "nmt.recipe",
    "Sampling": "nmt.search.sampling",
    "Subwords": "nmt.text.subwords",
    "TrainingResult": "nmt.training.trainer",
    "Translation": "nmt.decoding.translator",
    "TranslationHypothesis": "nmt.alignment.translation",
    "Translator": "nmt.decoding.translator",
    "Upload": "nmt.sharing.publishing",
    "UsageError": "nmt.errors",
    "evaluate": "nmt.comparison.evaluation",
    "export": "nmt.sharing.publishing",
    "links": "nmt.alignment.corpus_links",
    "load": "nmt.decoding.loading",
    "load_corpus": "nmt.data.locators",
    "load_recipe": "nmt.training.auto",
    "plot_alignment": "nmt.plotting.heatmap",
    "plot_importances": "nmt.plotting.importances",
    "push": "nmt.sharing.publishing",
    "search": "nmt.search",
    "train": "nmt.training.trainer",
}
"""Where each public name lives; it is imported when first asked for, so that `import nmt` stays instant."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nmt' has no attribute '{name}'")
    from importlib import import_module

    home = import_module(_HOME[name])
    value = globals()[name] = home if home.__name__ == f"nmt.{name}" else getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
