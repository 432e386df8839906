"""Requests and answers of the API."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from nmt.alignment.weights import AlignmentWeights
from nmt.serving.work import ScoredLine

AUTO = "auto"
"""The source language of clients that leave it to the server."""
TEXT_FIELDS = ("q", "translation", "compared_translation")
"""Fields that may be empty; any other is left out where it is empty or null."""
NOT_BLANK = r"[^\s\u001c-\u001f\u0085]"
"""A pattern of JSON Schema for texts that are not blank, as Python sees it."""
MOST_HYPOTHESES = 10
WIDEST_BEAM = 20
_DIGITS = 4
Picture = Literal["png", "svg", "html", "json"]
PICTURES: dict[Picture, str] = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
}
"""The files of an alignment, and their media types."""

Identifier = Annotated[str, Field(max_length=200)] | None
NumberOfHypotheses = Annotated[int, Field(ge=1, le=MOST_HYPOTHESES)]
BeamSize = Annotated[int, Field(ge=1, le=WIDEST_BEAM)]


class _Input(BaseModel):
    """What all requests have in common. Unknown fields are ignored, as LibreTranslate ignores them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    source: str = Field(AUTO, max_length=50, description="Source language; `auto` if there is only one.")
    target: str = Field("", max_length=50, description="Target language; may be left out if a model is named.")
    model: Identifier = Field(
        None, description="Identifier of a model, from `GET /models`. Default: the first that fits."
    )
    api_key: Identifier = Field(None, description="The key, if the server needs one; also as header `X-API-Key`.")


class TranslateInput(_Input):
    """A text to translate, or several. Each sentence is translated by itself; scores and alignments are those of lines."""

    q: str | list[str] = Field(description="The text, or a list of texts.")
    format: Literal["text"] = Field("text", description="Only plain text is translated.")
    alternatives: int = Field(0, ge=0, lt=MOST_HYPOTHESES, description="Other translations to return.")
    alignment: bool = Field(False, description="Whether to return the alignment of each line.")
    n_best: NumberOfHypotheses | None = Field(
        None, description="Return this many hypotheses of each line, with scores."
    )
    beam_size: BeamSize | None = Field(None, description="Beam size. Default: that of the model's recipe.")

    @property
    def texts(self) -> list[str]:
        """The texts, one if `q` is a str."""
        return [self.q] if isinstance(self.q, str) else self.q

    @property
    def hypotheses(self) -> int:
        """Number of hypotheses to search for."""
        return max(self.n_best or 1, self.alternatives + 1)

    @property
    def is_detailed(self) -> bool:
        """Whether the answer has scores or alignments of each line."""
        return self.alignment or self.n_best is not None


class ScoreInput(_Input):
    """A line and a translation of it, to score and align."""

    q: str = Field(description="The source, one line.", json_schema_extra={"pattern": NOT_BLANK})
    translation: str = Field(description="Its translation, one line.")
    weights: AlignmentWeights = Field(
        "posterior", description="Weights of the alignment: `posterior`, given the target word, or `attention`."
    )


class DetectInput(BaseModel):
    """A text whose language is asked for."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    q: str
    api_key: Identifier = None


class PictureInput(ScoreInput):
    """A line and a translation of it, to draw; with a second model, to compare."""

    compared: Identifier = Field(None, description="Identifier of a second model.")
    compared_translation: str | None = Field(None, description="The second model's translation. Default: the same.")
    compared_weights: AlignmentWeights | None = Field(
        None, description="The second model's weights. Default: the same."
    )


class WordAlignmentOutput(BaseModel):
    """Weights between words, one row per target word and one column per source word; links are (source, target), from 0."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]
    links: list[tuple[int, int]]


class HypothesisOutput(BaseModel):
    """A translation of a line, with the figures of `nmt translate --format jsonl`."""

    text: str
    score: float | None = Field(description="What hypotheses are ranked by.")
    log_probability: float | None = Field(description="Natural logarithm of the probability of the whole translation.")
    tokens: int = Field(description="Tokens of the translation, end mark included.")
    alignment: WordAlignmentOutput | None = Field(
        None, description="Null without attention, or for lines with more than 40,000 pairs of words."
    )


class LineOutput(BaseModel):
    """A line and its translations, best first."""

    source: str
    hypotheses: list[HypothesisOutput]


class DetectedLanguage(BaseModel):
    """A source language; the confidence is always 100, since it is the only one of this server."""

    language: str
    confidence: float


class TranslateOutput(BaseModel):
    """The translation; if `q` was a list, all fields are lists."""

    translatedText: str | list[str]  # noqa: N815 -- the name of LibreTranslate
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Only if `alternatives` was given.")
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(  # noqa: N815
        None, description="Only if the source language was `auto`."
    )
    lines: list[LineOutput] | list[list[LineOutput]] | None = Field(
        None, description="Only with `n_best` or `alignment`: the lines of the text, without blank ones' alignments."
    )
    model: str = Field(description="Identifier of the model.")


class ScoreOutput(HypothesisOutput):
    """Score and alignment of a given translation."""

    model: str


class LanguageOutput(BaseModel):
    """A language and what it can be translated to."""

    code: str
    name: str
    targets: list[str]


class HealthOutput(BaseModel):
    """`ok` while the server takes requests."""

    status: Literal["ok", "stopping"]


class ErrorOutput(BaseModel):
    """What is wrong, in one sentence."""

    error: str


# --- answers --------------------------------------------------------------------------------------------------------


def hypothesis_output(line: ScoredLine) -> HypothesisOutput:
    """A hypothesis as it is sent, with figures rounded as `nmt translate` rounds them."""
    return HypothesisOutput(
        text=line.text,
        score=_finite(line.score),
        log_probability=_finite(line.log_probability),
        tokens=line.tokens,
        alignment=_alignment_output(line),
    )


def _alignment_output(line: ScoredLine) -> WordAlignmentOutput | None:
    if line.pair is None:
        return None
    alignment = line.pair.alignment
    return WordAlignmentOutput.model_construct(  # it is ours, and large: nothing to check
        source=list(alignment.source),
        target=list(alignment.target),
        weights=alignment.weights.round(_DIGITS).tolist(),
        links=sorted(line.pair.links),
    )


def _finite(value: float) -> float | None:
    return round(value, _DIGITS) if math.isfinite(value) else None
