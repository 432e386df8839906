"""Translate and score batches of lines with several models: the work of a process that decodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from nmt.alignment.extraction import AlignedPair
from nmt.bundle.folder import Bundle
from nmt.decoding.loading import load_bundles
from nmt.decoding.translator import Translator
from nmt.runtime.device import choose_device
from nmt.serving.work import (
    EngineDescription,
    EngineOptions,
    LineResult,
    LineTask,
    ModelDescription,
    ScoredLine,
    Setting,
)

if TYPE_CHECKING:
    from nmt.alignment.translation import Translation

_BATCH_TOKENS = 4096
MOST_WEIGHTS = 40_000
"""Most pairs of words in an alignment; a larger one would be megabytes of JSON."""
MOST_SCORED_TOKENS = 500
"""Most tokens per side of a pair to score, as for `nmt align`: memory grows with the product of both."""


class _Served(NamedTuple):
    """A model for one of its pairs of languages."""

    bundle: Bundle
    translator: Translator


def _served(bundle: Bundle, options: EngineOptions) -> list[_Served]:
    """A model for each of its pairs of languages, in the order of `describe`."""
    translator = Translator(
        bundle,
        precision=options.precision,
        batch_tokens=_BATCH_TOKENS,
        alignments=bundle.recipe.model.has_attention,
        split_sentences=True,
    )
    return [_Served(bundle, translator.with_options(to=target)) for _, target in bundle.recipe.data.directions]


class Engine:
    """Models, and what they are asked for."""

    def __init__(self, options: EngineOptions) -> None:
        """Load the models. Raises DataError or UsageError."""
        torch.set_num_threads(1)  # several processes use the cores better
        device = choose_device(options.device)
        bundles = load_bundles(options.folders, device)
        self._served = [served for bundle in bundles for served in _served(bundle, options)]
        self._posterior_translators = [each.translator.with_options(posterior=True) for each in self._served]
        self.description = EngineDescription(describe(bundles, options.names), device.type)
        for model in range(len(self._served)):
            self.run(Setting(model), [LineTask("a")])  # the first line compiles kernels and fills caches

    def run(self, setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
        """Translate or score lines, in one batch as far as it fits. Raises DataError if a model is damaged."""
        bundle, translator = self._served[setting.model]
        posterior = setting.weights == "posterior" and bundle.recipe.model.has_attention
        if posterior:
            translator = self._posterior_translators[setting.model]
        if setting.kind == "translate":
            own = bundle.recipe.decoding.wide_enough(setting.n_best)
            search = own if setting.beam_size is None else {"beam_size": setting.beam_size}
            translations = translator.translate([task.source for task in tasks], decoding=search, n_best=setting.n_best)
            return [
                self._result(setting, task, translation) for task, translation in zip(tasks, translations, strict=True)
            ]
        short = [_is_short(task, bundle) for task in tasks]
        pairs = [(task.source, task.target) for task, fits in zip(tasks, short, strict=True) if fits]
        scored = iter(translator.score(pairs))
        return [
            self._result(setting, task, next(scored)) if fits else () for task, fits in zip(tasks, short, strict=True)
        ]

    def _result(self, setting: Setting, task: LineTask, translation: Translation) -> LineResult:
        return tuple(
            ScoredLine(
                text=hypothesis.text,
                score=hypothesis.score,
                log_probability=hypothesis.log_probability,
                tokens=hypothesis.length,
                pair=self._pair(setting, translation, rank) if task.aligned else None,
            )
            for rank, hypothesis in enumerate(translation.hypotheses)
        )

    def _pair(self, setting: Setting, translation: Translation, rank: int) -> AlignedPair | None:
        """The alignment between words and its links; None without attention, or if it is too large."""
        bundle = self._served[setting.model].bundle
        size = len(translation.source.split()) * len(translation.hypotheses[rank].text.split())
        if not bundle.recipe.model.has_attention or not translation.is_aligned(rank) or size > MOST_WEIGHTS:
            return None
        pair = translation.aligned_pair(rank)
        return pair if pair.alignment.weights.size <= MOST_WEIGHTS else None  # without spaces every token is a word


def _is_short(task: LineTask, bundle: Bundle) -> bool:
    sides = bundle.source.encode(bundle.normalizer(task.source)), bundle.target.encode(bundle.normalizer(task.target))
    return max(map(len, sides)) <= MOST_SCORED_TOKENS


def describe(bundles: Sequence[Bundle], model_names: Sequence[str]) -> tuple[ModelDescription, ...]:
    """What clients learn of the models: each pair of languages of a model is one. Names are numbered where two are the same."""
    directions = [
        (bundle, name, direction, f" {'-'.join(direction)}" if len(bundle.recipe.data.directions) > 1 else "")
        for bundle, name in zip(bundles, model_names, strict=True)
        for direction in bundle.recipe.data.directions
    ]
    names = unique([f"{name or 'model'}{pair}" for _, name, _, pair in directions], " ({})")
    identifiers = unique([_slug(f"{name}{pair}") for _, name, _, pair in directions], "-{}")
    return tuple(
        ModelDescription(
            id=identifier,
            name=name,
            source=source,
            target=target,
            alignment=bundle.recipe.model.has_attention,
            beam_size=bundle.recipe.decoding.hypotheses,
            parameters=bundle.parameters,
        )
        for identifier, name, (bundle, _, (source, target), _) in zip(identifiers, names, directions, strict=True)
    )


def unique(names: Sequence[str], suffix: str) -> list[str]:
    """Append a numbered suffix to each name that occurred before."""
    result: list[str] = []
    for name in names:
        candidates = (name + (suffix.format(number) if number > 1 else "") for number in range(1, len(names) + 1))
        result.append(next(candidate for candidate in candidates if candidate not in result))
    return result


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "model"
