"""Score a model's translations of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from nmt.alignment.gold import gold_links
from nmt.comparison.held_out import held_out_texts
from nmt.comparison.measure import WithProgress, forced_error_rate
from nmt.comparison.translation_scores import Evaluation
from nmt.data.corpus import ParallelCorpus
from nmt.decoding.loading import Folder, load
from nmt.decoding.translator import Translator
from nmt.errors import DataError, UsageError
from nmt.evaluation import metrics
from nmt.recipe import Recipe
from nmt.runtime.wording import counted


def evaluate(
    model: Translator | Folder | Sequence[Folder],
    corpus: str | ParallelCorpus | Sequence[ParallelCorpus] = "test",
    *,
    baseline: Sequence[str] | None = None,
    tokenize: str | None = None,
    lowercase: bool = False,
    published: bool = False,
    bootstrap: int = 1000,
    device: str | torch.device = "auto",
    progress: WithProgress[Any] = lambda items, _, __: iter(items),
    **options: Any,
) -> Evaluation:
    """Translate a corpus, and score the translations: BLEU, chrF and TER by sacreBLEU, as `nmt evaluate` does.

        result = nmt.evaluate("runs/mine", "test", beam_size=10)
        str(result)  # what the command prints
        result.bleu.score, result.bleu.margin, result.bleu.signature

    Args:
        model: a `Translator`, or what `nmt.load` takes: a model folder, or several for an ensemble.
        corpus: `test` or `valid` of the (first) model's recipe, the locator of a corpus, or one or several from
            `nmt.load_corpus`.
        baseline: translations by another system, to compare with by paired approximate randomization.
        tokenize: sacreBLEU's tokenizer for BLEU. Default: the recipe's, else by language.
        lowercase: compute BLEU and chrF in lower case.
        published: score as Multi30k papers do, lowercased and as Moses tokens.
        bootstrap: number of resamples for confidence intervals, and of shuffles for `baseline`; 0 for none.
        device: where to compute, if a folder is loaded.
        progress: shows the progress; by default nothing does.
        options: options of `nmt.load`.

    Returns:
        The scores and the translations; of several texts the means, and the scores of each in `texts`. For text with gold
        links, also the alignment error rate of the attention.

    Raises:
        DataError: a folder or corpus cannot be used, or `baseline` has another number of lines.
        UsageError: an option is wrong, a tokenizer cannot be used, or the recipe names no such text.
    """
    changes: dict[str, Any] = {**options}
    translator = model.with_options(**changes) if isinstance(model, Translator) else load(model, device, **changes)
    recipe = translator.recipe
    if recipe is None:
        raise UsageError("This model has no recipe, which names its languages: save it, and evaluate its folder.")
    if published and tokenize is not None:
        raise UsageError("published has its own tokenizer: leave out tokenize.")
    if isinstance(corpus, str):
        texts = held_out_texts(recipe, corpus, translator.to)
    else:
        texts = [corpus] if isinstance(corpus, ParallelCorpus) else list(corpus)
    scorings = [_scoring(recipe, text, tokenize, published=published) for text in texts]
    if baseline is not None and len(texts) > 1:
        raise UsageError(
            f"A baseline translates one text, but there are {len(texts)}: choose one by its language (to, --to)."
        )
    if baseline is not None and len(baseline) != len(texts[0]):
        lines = counted(len(baseline), "line")
        raise DataError(
            f"The baseline has {lines}, but {texts[0].name} has {len(texts[0]):,}: the lines do not correspond."
        )
    system = "translator" if isinstance(model, Translator) else str(model)
    evaluations = [
        _translated(translator, system, text, bootstrap, progress).scored(
            baseline=baseline, lowercase=lowercase, published=published, bootstrap=bootstrap, **scoring
        )
        for text, scoring in zip(texts, scorings, strict=True)
    ]
    return evaluations[0] if len(texts) == 1 else Evaluation.mean(evaluations)


def _scoring(recipe: Recipe, text: ParallelCorpus, tokenize: str | None, *, published: bool) -> dict[str, str | None]:
    """Target language and tokenizer of a text. Raises UsageError before any work is done if it cannot be scored so."""
    language = text.languages[1]
    if published:
        metrics.published_form(["a"], language)
    else:
        tokenize = metrics.choose_tokenizer(language, tokenize or recipe.evaluation.tokenize)
        metrics.check_tokenizer(tokenize)
    return {"language": language, "tokenize": tokenize}


def _translated(
    translator: Translator, system: str, text: ParallelCorpus, bootstrap: int, progress: WithProgress[Any]
) -> Evaluation:
    """The translations of a text, not scored, with the error rate of the attention if it has gold links."""
    source, target = text.languages
    translator = translator.with_options(alignments=False, to=target)
    results = progress(translator.stream(text.source), "translating", len(text))
    translations = [result.text for result in results]
    gold, errors = gold_links(text.name, source=source), None
    if gold is not None and translator.recipe is not None and translator.recipe.model.has_attention:
        aligner = translator.with_options(alignments=True, posterior=False)
        errors = forced_error_rate(aligner, text, gold, bootstrap=bootstrap, progress=progress)
    return Evaluation(text.name, system, translations, [list(text.target)], alignment=errors, languages=text.languages)
