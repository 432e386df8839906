"""Figures of single sentences, which are too rough to judge a system by, but good to find sentences worth a look."""

from nmt.evaluation.metrics import choose_tokenizer


def sentence_bleu(
    hypothesis: str, reference: str, *, language: str | None = None, tokenize: str | None = None
) -> float:
    """BLEU of one sentence, smoothed and of no longer n-grams than the hypothesis has (Chen and Cherry 2014, method 3).

    A whole text is judged by `nmt.evaluation.metrics.bleu`, whose tokeniser this takes too.
    """
    from sacrebleu import BLEU

    bleu = BLEU(effective_order=True, tokenize=choose_tokenizer(language, tokenize))
    return float(bleu.sentence_score(hypothesis, [reference]).score)
