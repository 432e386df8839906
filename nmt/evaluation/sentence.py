"""Sentence-level BLEU, to find sentences worth looking at. It is too coarse to compare systems."""

from nmt.evaluation.metrics import choose_tokenizer


def sentence_bleu(
    hypothesis: str, reference: str, *, language: str | None = None, tokenize: str | None = None
) -> float:
    """Smoothed BLEU of one sentence, with n-grams no longer than the hypothesis (Chen and Cherry 2014, method 3).

    The tokenizer is that of `nmt.evaluation.metrics.bleu`, which scores whole texts.
    """
    from sacrebleu import BLEU

    bleu = BLEU(effective_order=True, tokenize=choose_tokenizer(language, tokenize))
    return float(bleu.sentence_score(hypothesis, [reference]).score)
