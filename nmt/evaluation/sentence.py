"""Figures of single sentences, which are too rough to judge a system by, but good to find sentences worth a look."""


def sentence_bleu(hypothesis: str, reference: str) -> float:
    """BLEU of one sentence, smoothed and of no longer n-grams than the hypothesis has (Chen and Cherry 2014, method 3).

    A whole text is judged by `nmt.evaluation.metrics.bleu`.
    """
    from sacrebleu import BLEU

    return float(BLEU(effective_order=True).sentence_score(hypothesis, [reference]).score)
