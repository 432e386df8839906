"""The API without HTTP: checked requests in, answers out, with the limits of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from nmt.alignment.weights import AlignmentWeights
from nmt.runtime.wording import counted, listed
from nmt.serving.batch_queue import Batcher
from nmt.serving.metrics import ServiceMetrics
from nmt.serving.refusals import RefusedError
from nmt.serving.schemas import (
    AUTO,
    DetectedLanguage,
    DetectInput,
    LanguageOutput,
    LineOutput,
    ScoreInput,
    ScoreOutput,
    TranslateInput,
    TranslateOutput,
    hypothesis_output,
)
from nmt.serving.texts import SplitText, split_lines
from nmt.serving.work import LineResult, LineTask, ModelDescription, ScoredLine, Setting
from nmt.text.languages import closest_code, language_name

T = TypeVar("T")
_USUAL_BEAM = 5
"""Widest beam for the longest text, unless the model's recipe has a wider one."""


@dataclass(frozen=True)
class Limits:
    """What the server takes.

    Attributes:
        characters: most characters per request.
        queue: most lines that wait; a request of more lines is refused for good.
        timeout: most seconds that a request takes.
    """

    characters: int = 5000
    queue: int = 1000
    timeout: float = 30.0


class Service:
    """Translates and scores for many clients at once."""

    def __init__(
        self, models: Sequence[ModelDescription], batcher: Batcher, limits: Limits, metrics: ServiceMetrics
    ) -> None:
        self.models = tuple(models)
        self.limits = limits
        self.metrics = metrics
        self._batcher = batcher
        metrics.watch_queue(lambda: batcher.waiting)
        self._by_identifier = {model.id: index for index, model in enumerate(self.models)}

    async def translate(self, request: TranslateInput) -> TranslateOutput:
        """Translate the lines of one text or several. Raises RefusedError."""
        index = self.choose(request.source, request.target, request.model)
        if request.beam_size is not None and request.hypotheses > request.beam_size:
            raise RefusedError(
                400, f"Invalid request: a beam of {request.beam_size} has fewer than {request.hypotheses} hypotheses."
            )
        self._check_length(sum(map(len, request.texts)))
        self._check_beam(index, request)
        texts = [split_lines(text) for text in request.texts]
        setting = Setting(index, "translate", request.hypotheses, request.beam_size)
        tasks = [LineTask(line, aligned=request.alignment) for text in texts for line in text.lines]
        results = iter(await self._decode(setting, tasks))
        answers = [self._answer(request, text, [next(results) for _ in text.lines]) for text in texts]
        model = self.models[index]

        def shaped(values: list[T]) -> T | list[T]:
            """One value for one text, a list for a list."""
            return values[0] if isinstance(request.q, str) else values

        return TranslateOutput(
            translatedText=shaped([translation for translation, _, _ in answers]),
            alternatives=shaped([alternatives for _, alternatives, _ in answers]) if request.alternatives else None,
            detectedLanguage=shaped([_only(model.source)] * len(answers)) if request.source.lower() == AUTO else None,
            lines=shaped([lines for _, _, lines in answers]) if request.is_detailed else None,
            model=model.id,
        )

    def _answer(
        self, request: TranslateInput, text: SplitText, results: Sequence[LineResult]
    ) -> tuple[str, list[str], list[LineOutput]]:
        """The translation of a text, its alternatives, and its lines in detail."""
        ranked = [text.join([_at(result, rank).text for result in results]) for rank in range(request.alternatives + 1)]
        alternatives = [other for other in dict.fromkeys(ranked) if other != ranked[0]]
        if not request.is_detailed:
            return ranked[0], alternatives, []
        lines = [
            LineOutput(source=line, hypotheses=[hypothesis_output(each) for each in result[: request.n_best or 1]])
            for line, result in zip(text.lines, results, strict=True)
        ]
        return ranked[0], alternatives, lines

    async def score(self, request: ScoreInput) -> ScoreOutput:
        """Score and align a translation. Raises RefusedError."""
        index = self.choose(request.source, request.target, request.model)
        line = await self.score_line(index, request.q, request.translation, request.weights)
        return ScoreOutput(**dict(hypothesis_output(line)), model=self.models[index].id)

    async def score_line(self, index: int, source: str, translation: str, weights: AlignmentWeights) -> ScoredLine:
        """Score and align a translation by a model. Raises RefusedError."""
        self._check_length(len(source) + len(translation))
        if not source.strip():
            raise RefusedError(400, "Invalid request: q: the source is blank.")
        setting = Setting(index, "score", weights=weights)
        [result] = await self._decode(setting, [LineTask(source, translation, aligned=True)])
        if not result:
            raise RefusedError(413, "A line and its translation can be scored up to 500 tokens each.")
        return result[0]

    def detect(self, request: DetectInput) -> list[DetectedLanguage]:
        """The source language, if there is only one. Raises RefusedError."""
        self._check_length(len(request.q))
        return [_only(self._source(AUTO))]

    def languages(self) -> list[LanguageOutput]:
        """All languages, sources first, with their targets; a language that is only a target has none."""
        codes = dict.fromkeys([*(model.source for model in self.models), *(model.target for model in self.models)])
        return [LanguageOutput(code=code, name=language_name(code), targets=self._targets(code)) for code in codes]

    def choose(self, source: str, target: str, identifier: str | None) -> int:
        """The index of the model that is named, or of the first that translates so. Raises RefusedError."""
        if identifier is not None:
            index = self._by_identifier.get(identifier)
            if index is None:
                raise RefusedError(400, "There is no such model: GET /models lists them.")
            model = self.models[index]
            if not (_means(source, AUTO, model.source) and _means(target, "", model.target)):
                raise RefusedError(400, f"This model translates from {model.source} to {model.target}.")
            return index
        source = self._source(source)
        if not target:
            raise RefusedError(400, "Invalid request: missing target parameter.")
        closest = closest_code(target, self._targets(source))
        for index, model in enumerate(self.models):
            if (model.source, model.target) == (source, closest):
                return index
        raise RefusedError(400, f"From {source} this server translates to {listed(self._targets(source))} only.")

    def _source(self, code: str) -> str:
        """A source language, checked."""
        codes = list(dict.fromkeys(model.source for model in self.models))
        if code.lower() == AUTO:
            if len(codes) > 1:
                raise RefusedError(
                    400, f"This server does not detect languages: name the source, {' or '.join(codes)}."
                )
            return codes[0]
        closest = closest_code(code, codes)
        if closest is None:
            raise RefusedError(400, f"This server translates from {listed(codes)} only.")
        return closest

    def _targets(self, source: str) -> list[str]:
        return list(dict.fromkeys(model.target for model in self.models if model.source == source))

    def _check_length(self, characters: int) -> None:
        if characters > self.limits.characters:
            most = f"{self.limits.characters:,}"
            raise RefusedError(413, f"The text has {counted(characters, 'character')}, but at most {most} are allowed.")

    def _check_beam(self, index: int, request: TranslateInput) -> None:
        """Refuse a wide beam for a long text: their product is what decoding takes."""
        usual = self.models[index].beam_size
        beam = request.beam_size or max(usual, request.hypotheses)
        most = self.limits.characters * max(usual, _USUAL_BEAM) // beam
        if sum(map(len, request.texts)) > most:
            raise RefusedError(413, f"With a beam of {beam} a text may have {counted(most, 'character')} at most.")

    async def _decode(self, setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
        if len(tasks) > self.limits.queue:
            most = f"{self.limits.queue:,}"
            raise RefusedError(413, f"The text has {counted(len(tasks), 'line')}, but at most {most} are allowed.")
        future = self._batcher.submit(setting, tasks)
        model = self.models[setting.model].id
        self.metrics.characters.labels(model).inc(sum(len(task.source) for task in tasks))
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise RefusedError(503, "The server is too busy to answer in time.", retry_after=5) from None


def _means(code: str, any_code: str, served: str) -> bool:
    """Whether a language code leaves the language open or means the one that is served."""
    return code.lower() == any_code or closest_code(code, [served]) is not None


def _at(result: LineResult, rank: int) -> ScoredLine:
    """A hypothesis of a line; the best one if it has fewer."""
    return result[rank] if rank < len(result) else result[0]


def _only(code: str) -> DetectedLanguage:
    return DetectedLanguage(language=code, confidence=100)
