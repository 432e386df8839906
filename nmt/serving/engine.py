"""Models that translate and score the lines of many requests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nmt.alignment.extraction import AlignedPair
from nmt.alignment.translation import Translation
from nmt.bundle.folder import Bundle
from nmt.bundle.places import find_model, model_name
from nmt.decoding.loading import load_bundles
from nmt.decoding.translator import Translator
from nmt.runtime.arguments import PrecisionName

_MOST_WEIGHTS = 40_000
"""Most pairs of words in an alignment; a larger one would be megabytes of JSON."""
_DIGITS = 4


@dataclass(frozen=True)
class ServedModel:
    """What clients learn of a model. A model of several pairs of languages is served as one model for each of them."""

    name: str
    source: str
    target: str
    has_attention: bool
    beam_size: int
    """Hypotheses of a search by its recipe: the beam size, or the number of samples."""


class Setting(NamedTuple):
    """What requests must have in common to be decoded in one batch."""

    model: int
    is_scored: bool = False
    """Whether known translations are scored, not lines translated."""
    has_prefix: bool = False
    """Whether translations must begin as given."""
    n_best: int = 1
    beam_size: int | None = None
    """None for the recipe's, increased to `n_best` if necessary."""
    is_aligned: bool = False
    posterior: bool = False
    """Whether an alignment is the posterior, not the attention."""


Task = str | tuple[str, str]
"""A line to translate, alone or with the beginning of its translation, or a line and its translation to score."""


class NextWord(NamedTuple):
    """A word that goes on a translation, and its probability."""

    word: str
    probability: float

    def as_json(self) -> dict[str, Any]:
        """The two keys that a hypothesis has more."""
        return {"next_word": self.word, "next_word_probability": round(self.probability, _DIGITS)}


@dataclass(frozen=True)
class ServedHypothesis:
    """A translation of a line, with its alignment if that was asked for and is not too large."""

    text: str
    score: float
    log_probability: float
    tokens: int
    pair: AlignedPair | None = None
    unknown: str = ""
    """The characters of the line that the model does not know."""
    next_word: NextWord | None = None
    """The first word after a prefix, or the one that the prefix begins."""

    @classmethod
    def of(
        cls, translation: Translation, rank: int, bundle: Bundle, *, is_aligned: bool, prefix: str = ""
    ) -> ServedHypothesis:
        """One hypothesis of a translation by a model."""
        hypothesis = translation.hypotheses[rank]
        pair = None
        if is_aligned and translation.is_aligned(rank):
            size = len(translation.words_of_tokens()[0]) * len(translation.words_of_tokens(rank)[0])
            pair = translation.aligned_pair(rank) if size <= _MOST_WEIGHTS else None
        score, log_probability, line = hypothesis.score, hypothesis.log_probability, translation.source
        unknown = bundle.source.unknown_characters(bundle.normalizer(line)) if translation.source_ids else ()
        next_word = _next_word(translation, rank, prefix) if prefix else None
        return cls(
            hypothesis.text, score, log_probability, hypothesis.length, pair, "".join(sorted(unknown)), next_word
        )

    def as_json(self) -> dict[str, Any]:
        """It as `nmt translate --format jsonl` and `nmt align --format json` write it."""
        alignment = None
        if self.pair is not None:
            words, links = self.pair.alignment, self.pair.links
            weights = words.weights.round(_DIGITS).tolist()
            alignment = {"source": words.source, "target": words.target, "weights": weights, "links": sorted(links)}
        return {
            "text": self.text,
            "score": round(self.score, _DIGITS) if math.isfinite(self.score) else None,
            "log_probability": round(self.log_probability, _DIGITS) if math.isfinite(self.log_probability) else None,
            "tokens": self.tokens,
            "alignment": alignment,
            **({} if self.next_word is None else self.next_word.as_json()),
        }


def _next_word(translation: Translation, rank: int, prefix: str) -> NextWord | None:
    """The first word of a hypothesis that is not in its prefix, or not whole, and its probability; None if there is none."""
    words, owners = translation.words_of_tokens(rank)
    rest, place = "".join(prefix.split()), 0
    while place < len(words) and rest.startswith(words[place]):
        rest, place = rest.removeprefix(words[place]), place + 1
    if place == len(words):
        return None
    log_probs = translation.hypotheses[rank].token_log_probs[: len(owners)]  # without the end mark
    of_word = [log_prob for owner, log_prob in zip(owners, log_probs, strict=True) if owner == place]
    return NextWord(words[place], math.exp(sum(of_word)))


class Engine:
    """Several models, each with its translator."""

    def __init__(self, paths: Sequence[Path], *, device: str = "auto", precision: PrecisionName = "fp32") -> None:
        """Load the models. Raises DataError or UsageError."""
        models: list[ServedModel] = []
        self._translators: list[Translator] = []
        self._bundles: list[Bundle] = []
        for path, bundle in zip(paths, load_bundles(map(find_model, paths), device), strict=True):
            recipe = bundle.recipe
            translator = Translator(bundle, precision=precision)
            for source, target in recipe.data.directions:
                name = model_name(path) if len(recipe.data.directions) == 1 else f"{model_name(path)} {source}-{target}"
                same = sum(model.name == name or model.name.startswith(f"{name} (") for model in models)
                name = f"{name} ({same + 1})" if same else name
                has_attention, width = recipe.model.has_attention, recipe.decoding.hypotheses
                models.append(ServedModel(name, source, target, has_attention, width))
                self._translators.append(translator.with_options(to=target))
                self._bundles.append(bundle)
        self.models = tuple(models)

    def run(self, setting: Setting, tasks: Sequence[Any]) -> list[list[ServedHypothesis]]:
        """Translate or score lines; gives the hypotheses of each. Raises DataError if a model is damaged."""
        translator, bundle = self._translators[setting.model], self._bundles[setting.model]
        is_aligned = setting.is_aligned and self.models[setting.model].has_attention
        options: dict[str, Any] = {"alignments": is_aligned, "posterior": is_aligned and setting.posterior}
        if setting.is_scored:
            prefixes: Sequence[str] = [""] * len(tasks)
            translations = translator.score(tasks, **options)
        else:
            wide_enough = bundle.recipe.decoding.wide_enough(setting.n_best)
            decoding = wide_enough if setting.beam_size is None else {"beam_size": setting.beam_size}
            lines, prefixes = zip(*tasks, strict=True) if setting.has_prefix else (tasks, [""] * len(tasks))
            translations = translator.translate(
                lines,
                prefix=prefixes,
                decoding=decoding,
                n_best=setting.n_best,
                alternatives=setting.has_prefix,
                **options,
            )
        return [
            [
                ServedHypothesis.of(translation, rank, bundle, is_aligned=is_aligned, prefix=prefix)
                for rank in _different(translation)
            ]
            for translation, prefix in zip(translations, prefixes, strict=True)
        ]


def _different(translation: Translation) -> Iterable[int]:
    """The ranks of the hypotheses whose text none before has."""
    texts = [hypothesis.text for hypothesis in translation.hypotheses]
    return (rank for rank, text in enumerate(texts) if text not in texts[:rank])
