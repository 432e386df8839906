"""Settings that follow from the text: what `chosen: auto` fills in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nmt.recipe.data import DataConfig
from nmt.runtime.wording import counted

AUTO = "auto"
"""The value of `chosen` that asks for choices."""
LENGTH_PENALTY, MBR_SAMPLES, MBR_BETA = (f"decoding.{name}" for name in ("length_penalty", "mbr_samples", "mbr_beta"))
"""What training chooses itself, at its end."""
_METRICS = "training.validation.metrics"
_VOCABULARIES = ((2e6, 8000), (20e6, 14_000), (math.inf, 32_000))
"""Size of a vocabulary by the most tokens of text that it is for."""
_VOCABULARY_FOR_UNSEEN_WORDS = 3000
"""Smaller pieces, of which new words are made."""
_BITS_PER_TOKEN = 9.6
"""How much a subword says: about 4.5 letters of English, 2.9 syllables of Cherokee."""
_SHARED_LETTERS = 0.3
"""The least overlap of letters for one vocabulary."""
_SPECIAL = 260
"""Tokens that are bytes, or begin and end sentences."""
_OCCURRENCES = 10
"""Least mean occurrences of a token."""
_DROPOUT = (
    (250e3, {"embedding": 0.3, "word": 0.2, "annotations": 0.3, "readout": 0.5}),
    (700e3, {"embedding": 0.3, "word": 0.1, "annotations": 0.3, "readout": 0.4}),
    (math.inf, {"embedding": 0.2, "word": 0.05, "annotations": 0.2, "readout": 0.3}),
)
"""Dropout by the most target tokens that it is for."""
_BATCHES = ((250e3, 1024, 2e-3), (700e3, 1536, 1.5e-3), (math.inf, 2048, 1e-3))
"""Tokens per batch and learning rate by the most target tokens that they are for."""
_LONGER = 1.4
"""How many times as long as in training lines must be in validation for joined pairs to be worth their time."""
_COPYING, _UNSEEN_FOR_COPYING = 0.3, 0.1
"""The share of pairs with copied words, and from which share of new words on."""
_MOST_GUIDED = 20e6
"""The most target tokens whose word links guide attention. It helps long sentences most: of TED's talks (110,000 tokens) and of KFTT
(11 million). With 170,000 tokens of short ones BLEU is the same (23.4 and 24.0). The links of KFTT take five minutes of one core."""
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 150
_SHORT, _LONG = 16, 48
"""Target tokens per pair from which on, and up to which, training is longer."""
_FEW_PAIRS, _MANY_UNSEEN = 25_000, 0.2


@dataclass(frozen=True)
class SideProfile:
    """What one side of a training text is like."""

    words: int
    """Number of words, or of characters in text without spaces."""
    types: int
    """Number of different words."""
    characters: int
    alphabet: int
    """Number of different characters, a space and tags among them."""
    bits: float
    """Bits per character once it is compressed: 2.1 in English, 3.3 in the syllables of Cherokee."""
    is_spaced: bool
    """Whether there are spaces between words."""
    unseen: float
    """The share of the words of the validation text that are not among these."""

    @property
    def tokens(self) -> float:
        """About how many subwords it has."""
        return self.characters * max(1 / 4.5, self.bits / _BITS_PER_TOKEN) if self.is_spaced else self.characters / 1.5


@dataclass(frozen=True)
class TextProfile:
    """What a training text is like, duplicates not counted, beside its validation text."""

    pairs: int
    duplicates: int
    """Pairs that are there again."""
    source: SideProfile
    target: SideProfile
    types: int
    """Number of different words of both sides together."""
    alphabet: int
    """Number of different characters of both sides together, a space and tags among them."""
    shared_letters: float
    """The overlap of the letters' frequencies on both sides: 1 if they are equal, near 0 between two scripts, whose texts only have
    some names of the other."""
    valid_length: float
    """Target words per pair of the validation text."""
    longest: int
    """Words, on the longer side, that only a hundredth of the pairs exceed."""

    @property
    def length(self) -> float:
        """Target tokens per pair."""
        return self.target.tokens / self.pairs

    @property
    def unit(self) -> str:
        """What its words are."""
        return "words" if self.source.is_spaced and self.target.is_spaced else "words or characters"

    @property
    def unseen(self) -> float:
        """The larger share of unseen words of the two sides."""
        return max(self.source.unseen, self.target.unseen)


@dataclass(frozen=True)
class Choice:
    """Settings by dotted key, and why they have these values, in one sentence."""

    settings: Mapping[str, Any]
    reason: str


Choose = Callable[[DataConfig, Mapping[str, Any]], list[Choice]]
"""Chooses settings for a text, given those that the recipe says itself by dotted key."""


def choose_settings(text: TextProfile, given: Mapping[str, Any]) -> list[Choice]:
    """Choose settings that suit a text. The experiments behind the rules: recipes/NOTES.md, "Settings that follow from the text".

    Args:
        text: what the text is like.
        given: the settings that the recipe says itself, by dotted key.
    """
    filters = _filters(text, given)
    shown = text
    if given.get("data.concatenation", filters.settings["data.concatenation"]):  # as many pairs again, joined
        source, target = (replace(side, characters=3 * side.characters) for side in (text.source, text.target))
        shown = replace(text, pairs=2 * text.pairs, source=source, target=target)
    return [
        filters,
        _subwords(text, given),
        _model(text, shown, given),
        _training(shown, given),
        *_guidance(text, given),
        *_validation(text, given),
    ]


def _filters(text: TextProfile, given: Mapping[str, Any]) -> Choice:
    """Without duplicates, and with nearly all of the rest."""
    most = given.get("data.filters.max_length", min(max(_rounded(4 * text.longest, 50), 100), 300))
    may_join, may_copy = (key not in given for key in ("data.concatenation", "data.copying"))
    is_short = may_join and text.valid_length > _LONGER * text.target.words / text.pairs
    has_names = text.source.is_spaced and _has_same_letters(text)
    copies = may_copy and text.unseen > _UNSEEN_FOR_COPYING and has_names
    is_left_out = text.duplicates and not given.get("data.filters.duplicates")
    duplicates = f" ({counted(text.duplicates, 'duplicate')} left out)" if is_left_out else ""
    return Choice(
        {
            "data.filters.duplicates": False,
            "data.filters.max_length": most,
            "data.concatenation": 1.0 if is_short else 0.0,
            "data.copying": _COPYING if copies else 0.0,
        },
        f"Text: {counted(text.pairs, 'pair')}{duplicates}, 99 % of at most {text.longest:,} {text.unit}; up to {most} tokens are read"
        f"{'. Pairs are also shown joined in twos, since lines for validation are longer' if is_short else ''}"
        f"{'. Numbers and rare words are put into pairs, to learn to copy' if copies else ''}.",
    )


def _subwords(text: TextProfile, given: Mapping[str, Any]) -> Choice:
    """One vocabulary if the languages share letters, as large as the tokens are still frequent."""
    joint = given.get("subwords.joint", _has_same_letters(text))
    sides = (text.source, text.target)
    if joint:
        tokens, types, alphabet = sum(side.tokens for side in sides), text.types, text.alphabet
    else:
        tokens, types = min(side.tokens for side in sides), min(side.types for side in sides)
        alphabet = max(side.alphabet for side in sides)
    largest = next(size for most, size in _VOCABULARIES if tokens <= most)
    if text.unseen > _MANY_UNSEEN:
        largest = _VOCABULARY_FOR_UNSEEN_WORDS
    size = max(min(_rounded(tokens / _OCCURRENCES, 100), largest), 500)
    kind = given.get("subwords.kind", "bpe")
    if kind != "word":
        size = max(min(size, types + _SPECIAL), alphabet + _SPECIAL)
    return Choice(
        {
            "subwords.kind": kind,
            "subwords.size": size,
            "subwords.joint": joint,
            "model.tie": "all" if joint else "target",
        },
        f"Subwords: {'one vocabulary' if joint else 'a vocabulary for each side'} of up to "
        f"{counted(given.get('subwords.size', size), 'token')}: the sides have {text.shared_letters:.0%} of their letters in common, "
        f"and up to {text.unseen:.0%} of the validation {text.unit} of a side are new.",
    )


def _model(text: TextProfile, shown: TextProfile, given: Mapping[str, Any]) -> Choice:
    """Wider for more and longer text that is shown, joined pairs included; less dropout for more text itself."""
    size = 256 * (shown.target.tokens / 190e3) ** 0.4 * (shown.length / 9) ** 0.2
    hidden = given.get("model.encoder.hidden", min(max(_rounded(size, 64), 128), 320))
    embedding = given.get("model.embedding", 128 if hidden <= 128 else 256)
    dropout = next(rates for most, rates in _DROPOUT if text.target.tokens <= most)
    is_lexical = given.get(
        "model.lexical", _score(given) not in ("dot", "none") and given.get("model.attention.heads", 1) == 1
    )
    return Choice(
        {
            "model.kind": "recurrent",
            "model.embedding": embedding,
            "model.embedding_scale": round(math.sqrt(embedding), 2),
            "model.encoder.cell": "gru",
            "model.encoder.hidden": hidden,
            "model.attention.score.kind": "additive",
            "model.attention.score.size": hidden,
            "model.attention.coverage": _score(given) != "none",
            "model.decoder.cell": "gru",
            "model.decoder.order": {"kind": "attend-then-update", "conditional": True},
            "model.decoder.readout.kind": "maxout",
            "model.decoder.bridge": "mean",
            "model.lexical": is_lexical,
            "model.dropout": dropout,
        },
        f"Model: dropout for about {text.target.tokens:,.0f} target tokens."
        if given.get("training.pretrained") or given.get("training.pretrained.model")
        else f"Model: an encoder of {hidden} in each direction, for about {text.target.tokens:,.0f} target tokens, "
        f"{text.length:.0f} per pair{'. The output layer also reads the attended source tokens' if is_lexical else ''}.",
    )


def _training(text: TextProfile, given: Mapping[str, Any]) -> Choice:
    """More tokens for more and longer text, in a limited number of epochs."""
    tokens = text.target.tokens
    seen = 8e6 * max((tokens / 190e3) ** (1 / 3) * max(min(text.length, _LONG) / _SHORT, 1), 1)
    seen = min(max(seen, _FEWEST_EPOCHS * tokens), _MOST_EPOCHS * tokens)
    batch, rate = next(values for most, *values in _BATCHES if tokens <= most)
    batch = given.get("training.batch_tokens", batch)
    suitable = max(_rounded(seen / batch, 100), 500)
    limit = given.get("training.updates", None if "training.epochs" in given else suitable)
    updates = limit or suitable
    length = counted(limit, "update") if limit else counted(given.get("training.epochs", 1000), "epoch")
    return Choice(
        {
            **({} if "training.epochs" in given else {"training.epochs": 1000, "training.updates": updates}),
            "training.batch_tokens": batch,
            "training.optimizer": {"kind": "adam", "rate": rate},
            "training.schedule": {"kind": "cosine", "warmup": max(updates // 15, 100), "final": 0.03},
            "training.ema": 0.999,
            "training.label_smoothing": 0.1,
        },
        f"Training: at most {length}, in batches of up to {batch:,} tokens.",
    )


def _guidance(text: TextProfile, given: Mapping[str, Any]) -> list[Choice]:
    """Attention hardly learns from little text where to look; word links, which need no model, tell it."""
    if text.target.tokens > _MOST_GUIDED or _score(given) == "none":
        return []
    return [Choice({"training.guided_alignment.links": "hmm"}, "Attention: guided by the word links of `nmt links`.")]


def _validation(text: TextProfile, given: Mapping[str, Any]) -> list[Choice]:
    """By chrF where BLEU tells little apart: little text, or words of many forms; and what training tries at its end."""
    metric, because = "bleu", ""
    if text.pairs < _FEW_PAIRS or text.unseen > _MANY_UNSEEN:
        metric = "chrf"
        because = ", since BLEU hardly tells models apart with so little text or so many new words"
    settings = {
        "training.validation.every": 250,
        _METRICS: [metric],
        "training.validation.keep_best": 3,
        "training.validation.patience": 10,
    }
    reason = f"Validation: by {'chrF' if metric == 'chrf' else 'BLEU'}{because}."
    last = "on the validation text once training ends"
    choices = [
        Choice(settings, "Validation: as the recipe says." if _METRICS in given else reason),
        Choice({LENGTH_PENALTY: 1.0}, f"Search: the length penalty is chosen {last}."),
    ]
    if given.get(_METRICS, [metric])[0] == "chrf":  # which says whether samples are better
        choices.append(
            Choice(
                {MBR_SAMPLES: None, MBR_BETA: 2.0},
                f"Search: minimum Bayes risk decoding is tried {last} if the model is weak.",
            )
        )
    return choices


def _score(given: Mapping[str, Any]) -> Any:
    """The attention's score, if the recipe says it."""
    return given.get("model.attention.score.kind", given.get("model.attention.score"))


def _has_same_letters(text: TextProfile) -> bool:
    return text.shared_letters >= _SHARED_LETTERS


def _rounded(value: float, to: int) -> int:
    """The nearest multiple."""
    return round(value / to) * to
