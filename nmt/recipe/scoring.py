"""The recipe's settings of decoding and evaluation, and the scores that others reported."""

from typing import Annotated, Literal

from pydantic import Field

from nmt.recipe.section import BeamSize, Penalty, Ratio, Section, Size

Tokenizer = Literal[
    "13a", "zh", "ja-mecab", "ko-mecab", "char", "intl", "none", "spm", "flores101", "flores200", "spBLEU-1K"
]
"""sacreBLEU's tokenizers, listed here so that reading a recipe does not import it."""


FOUND_IN_TRAINING = ("split_sentences", "keep_numbers")
"""Settings of decoding that training finds out where they are null."""


class DecodingConfig(Section):
    """Defaults of `nmt translate` and `nmt evaluate` for this model."""

    beam_size: BeamSize = 5
    """Hypotheses per sentence that search keeps; 1 is greedy search."""
    length_penalty: Penalty = 1.0
    """alpha in ((5 + |y|) / 6)^alpha (Wu et al. 2016, eq. 14); 0 ranks by log-probability."""
    coverage_penalty: Penalty = 0.0
    """beta of the coverage penalty (Wu et al. 2016, eq. 14)."""
    max_ratio: Ratio = 3.0
    """Longest output, as a multiple of the source length in tokens, plus 10."""
    horizon: Size | None = 8
    """Stop the search once no live hypothesis could win by ending within this many tokens, even with probability 1. null searches
    until the result is certain, which takes 1.2 to 1.8 times as long and changed none of 2,000 translations (recipes/NOTES.md)."""
    prune: Penalty | None = None
    """Drop hypotheses that are this many nats less probable than the best of the same sentence and step (absolute threshold of
    Freitag and Al-Onaizan 2017), which is faster; null drops none."""
    mbr_samples: Size | None = None
    """Minimum Bayes risk decoding: draw so many translations and take the one most like all of them by chrF (Eikema and Aziz 2020).
    null is beam search."""
    mbr_temperature: Annotated[float, Field(ge=0.001, le=1000)] = 0.5
    """Their softmax temperature; below 1 probable tokens become more probable."""
    mbr_beta: Annotated[float, Field(gt=0, le=10)] = 2.0
    """beta of chrF there: recall counts beta times as much as precision. Smaller values make translations shorter."""

    split_sentences: bool | None = None
    """Whether each sentence of a line is translated by itself; scores, hypotheses and alignments are those of the line. null: as training
    finds it, true unless a tenth of the lines of the training text have several sentences."""
    keep_numbers: bool | None = None
    """Whether a line without letters, such as 12345, stays as it is. null: as training finds it, true unless half of the lines of the
    training text are such lines."""

    @property
    def hypotheses(self) -> int:
        """How many translations of a sentence are at work at a time: samples, or the beam size."""
        return self.mbr_samples or self.beam_size

    @property
    def way(self) -> str:
        """How it decodes, in words."""
        if self.mbr_samples is not None:
            return f"minimum Bayes risk, {self.mbr_samples} samples"
        return "greedy" if self.beam_size == 1 else f"beam {self.beam_size}, length penalty {self.length_penalty:g}"

    def wide_enough(self, n_best: int) -> dict[str, int]:
        """The setting that gives at least so many hypotheses."""
        return {"mbr_samples" if self.mbr_samples else "beam_size": max(self.hypotheses, n_best)}


class EvaluationConfig(Section):
    """How validation and `nmt evaluate` score translations."""

    tokenize: Tokenizer | None = None
    """sacreBLEU's tokenizer for BLEU. null chooses by data.target as sacreBLEU does: zh for Chinese, ja-mecab for Japanese,
    ko-mecab for Korean (char without MeCab), 13a for all others."""


class ReportedDecoding(Section):
    """How a reported system decoded, where that is known; null is as the recipe decodes."""

    beam_size: BeamSize | None = None
    """1 is greedy search."""
    length_penalty: Penalty | None = None
    replace_unknown: bool = False
    """Replace unknown words by their aligned source words (unk replace in Luong et al. 2015)."""


class ReportedScore(Section):
    """A score that others reported for the test text, which `nmt reproduce` sets beside that of the trained model."""

    system: str
    metric: Literal["bleu", "chrf", "aer"] = "bleu"
    value: Annotated[float, Field(ge=0, le=100)]
    """From 0 to 100, also for the alignment error rate."""
    source: str
    """Where it can be read: paper and table, or repository and file."""
    scoring: Literal["cased", "lowercased", "tokens", "lowercased-tokens", "published", "other"] = "cased"
    """How it was computed. `cased` is `nmt evaluate`, `lowercased` the same in lower case. `tokens` splits the text at spaces, as
    multi-bleu.perl does; `lowercased-tokens` also lowercases it. `published` is `nmt evaluate --published`. `other` is any other way, or
    on other text: the score is shown, but not compared."""
    decoding: ReportedDecoding = ReportedDecoding()
    weights: Literal["posterior", "attention"] = "posterior"
    """Which links the alignment error rate is that of, as in `nmt align`."""
