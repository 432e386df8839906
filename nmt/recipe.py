"""The recipe: everything that decides what a training run does, in one frozen, strictly validated tree.

A recipe is written as YAML. A union such as `score` is written as its kind alone (`score: additive`) or with its
settings (`score: {kind: additive, size: 512}`). An unknown key, a wrong type or an impossible combination is a
`UsageError` that names the dotted path, so nothing in a recipe is ever silently ignored.
"""

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from nmt.arguments import as_path
from nmt.errors import UsageError

Size = Annotated[int, Field(ge=1, lt=2**31)]
_WIDEST = 2**16
Width = Annotated[int, Field(ge=1, le=_WIDEST)]
"""Of a layer or window; beyond it no machine has the memory, and a model folder that asks for more is refused before it is built."""
Layers = Annotated[int, Field(ge=1, le=100)]
Heads = Annotated[int, Field(ge=1, le=1024)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
Ratio = Annotated[float, Field(gt=0, le=1000)]
Penalty = Annotated[float, Field(ge=0, le=100)]


class Section(BaseModel):
    """A part of the recipe: immutable, strict about types, closed to unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


SectionT = TypeVar("SectionT", bound=Section)


def _complete(section: SectionT, **values: object) -> SectionT:
    """The section with these values for those of its keys that nobody has given."""
    return section.model_copy(
        update={key: value for key, value in values.items() if key not in section.model_fields_set}
    )


def _derived(start: int | str) -> Any:
    """A default that follows from other keys; `start` is what it is where none of them is given."""
    return Field(default=start, json_schema_extra=lambda schema: schema.pop("default", None))


class _ContradictionError(ValueError):
    """Values of given keys that cannot go together; `keys` are their paths, from the section that says so."""

    def __init__(self, keys: Iterable[str], sentence: str) -> None:
        super().__init__(sentence)
        self.keys = tuple(keys)


def _kind(default: str) -> BeforeValidator:
    """Let a union be written as its bare kind, and let settings without a kind be those of the default one."""

    def complete(value: object) -> object:
        if isinstance(value, str):
            return {"kind": value}
        return {"kind": default, **value} if isinstance(value, dict) else value

    return BeforeValidator(complete)


_BY_KIND = Field(discriminator="kind")


# --- data -------------------------------------------------------------------------------------------------------


class Filters(Section):
    """Which training pairs are left out. Lengths are in tokens (subwords), counted before the end mark."""

    max_length: Size = 100
    """Longest side that is still trained on, in tokens."""
    max_ratio: Positive | None = 9.0
    """Largest quotient of the longer and the shorter side; null keeps all."""
    duplicates: bool = True
    """Whether a pair that occurs again is kept."""


class Data(Section):
    """The parallel text, as locators: `dir/train.{en,de}.gz`, a table, `hf:owner/name:split`, `multi30k/train`, `sample:train`."""

    source: str
    """Language code of the source side, as it stands in file names and columns."""
    target: str
    """Language code of the target side."""
    train: str
    valid: str
    test: str | None = None
    """Held-out text for `nmt evaluate`; never looked at in training."""
    filters: Filters = Filters()


class Subwords(Section):
    """SentencePiece models, trained by `nmt train` on the training text unless files are given."""

    kind: Literal["unigram", "bpe", "char", "word"] = "unigram"
    size: Annotated[int, Field(ge=8)] = 8000
    """Tokens in the vocabulary (of each side, unless joint), special ones included."""
    joint: bool = True
    """One model for both languages; needed to tie all embeddings."""
    byte_fallback: bool = True
    """Spell unseen characters as bytes, so that no text is lost as unknown."""
    sampling: Positive | None = None
    """Subword regularisation (Kudo 2018; BPE dropout): inverse temperature of unigram sampling or BPE dropout rate; null is off."""
    source_model: str | None = None
    """A SentencePiece file to use for the source instead of training one."""
    target_model: str | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.source_model is None) != (self.target_model is None):
            raise ValueError("source_model and target_model go together: give both (the same file when joint) or none")
        if self.sampling is not None and self.kind not in ("unigram", "bpe"):
            raise ValueError(f"sampling needs kind unigram or bpe, but kind is {self.kind}")
        if self.byte_fallback and self.kind == "unigram" and self.size < 300 and self.source_model is None:
            raise ValueError(
                f"size {self.size} leaves no room beside the 256 byte tokens: raise size or set byte_fallback: false"
            )
        return self


# --- model ------------------------------------------------------------------------------------------------------


class AdditiveScore(Section):
    """v_a^T tanh(W_a s + U_a h_j) (Bahdanau et al. 2015, A.1.2)."""

    kind: Literal["additive"] = "additive"
    size: Width = _derived(256)
    """Width of the hidden layer, n' in the paper; the heads share it. By default 256, or the next multiple of `heads`."""
    coverage: bool = False
    """Let the score see how much weight each word has had so far (Tu et al. 2016)."""


class DotScore(Section):
    """h_t^T h_s (Luong et al. 2015, eq. 8); needs annotations as wide as the decoder state."""

    kind: Literal["dot"] = "dot"


class GeneralScore(Section):
    """h_t^T W_a h_s (Luong et al. 2015, eq. 8)."""

    kind: Literal["general"] = "general"


class ConcatScore(Section):
    """v_a^T tanh(W_a [h_t; h_s]) (Luong et al. 2015, eq. 8)."""

    kind: Literal["concat"] = "concat"
    size: Width = _derived(256)
    """As in the additive score."""
    coverage: bool = False


class LocationScore(Section):
    """a_t = softmax(W_a h_t) (Luong et al. 2015, eq. 7); positions beyond max_source get no weight."""

    kind: Literal["location"] = "location"
    max_source: Width = 120


class NoScore(Section):
    """No attention: the context is the encoder's final state at every step (Cho et al. 2014)."""

    kind: Literal["none"] = "none"


Score = Annotated[
    AdditiveScore | DotScore | GeneralScore | ConcatScore | LocationScore | NoScore, _BY_KIND, _kind("additive")
]


class GlobalWindow(Section):
    """Every source position is attended to."""

    kind: Literal["global"] = "global"


class LocalMonotonicWindow(Section):
    """Positions within D of p_t = t (Luong et al. 2015, 3.2)."""

    kind: Literal["local-m"] = "local-m"
    half_width: Width = 10
    """D, in tokens."""
    ratio: Ratio = 1.0
    """Source tokens per target token, for languages of different length: p_t = ratio t, rounded."""


class LocalPredictiveWindow(Section):
    """Positions within D of a predicted centre p_t, under a Gaussian (Luong et al. 2015, eq. 9 and 10)."""

    kind: Literal["local-p"] = "local-p"
    half_width: Width = 10


Window = Annotated[GlobalWindow | LocalMonotonicWindow | LocalPredictiveWindow, _BY_KIND, _kind("global")]


class Attention(Section):
    score: Score = AdditiveScore()
    window: Window = GlobalWindow()
    heads: Heads = 1
    """Attentions side by side, each over its own share of projected state and annotations (Vaswani et al. 2017, 3.2.2)."""

    @model_validator(mode="after")
    def _follow(self) -> Self:
        if self.score.kind in ("additive", "concat"):
            size = _next_multiple(self.score.size, self.heads)
            self.__dict__["score"] = _complete(self.score, size=size)
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.score.kind == "none" and self.window.kind != "global":
            raise _ContradictionError(
                ("score", "window"),
                f"window {self.window.kind} has nothing to act on, because score is none: "
                "set window: global or choose a score",
            )
        if self.score.kind == "none" and self.heads > 1:
            raise _ContradictionError(
                ("score", "heads"),
                f"heads {self.heads} have nothing to attend with, because score is none: set heads: 1 or choose a score",
            )
        if self.score.kind in ("additive", "concat") and self.score.size % self.heads:
            raise _ContradictionError(
                ("heads", "score.size"),
                f"heads must divide score.size, but they are {self.heads} and {self.score.size}",
            )
        return self


def _next_multiple(number: int, of: int) -> int:
    """The least multiple that is not below a number."""
    return -(-number // of) * of


class Encoder(Section):
    """Recurrent encoder."""

    cell: Literal["gru", "lstm"] = "gru"
    hidden: Width = _derived(256)
    """Width of one direction; annotations of both directions are twice as wide. By default an annotation is as wide as
    `decoder.hidden` where that is given, else a direction is 256 wide; either way what `attention.heads` can divide."""
    layers: Layers = 1
    direction: Literal["both", "forward", "reversed"] = "both"
    """How the source is read: both ways (Bahdanau et al. 2015), left to right, or right to left, which is the source reversal of
    Sutskever et al. (2014) and Luong et al. (2015). Annotations keep the order of the words whatever way they were read."""
    residual: bool = False
    """Add to what a layer puts out what it read, from the second layer on (Wu et al. 2016, 3.1)."""
    layer_norm: bool = False
    """Normalise what enters the gates (Ba et al. 2016); no fused kernel does that, so it is slower."""

    @property
    def directions(self) -> int:
        """How many ways the source is read."""
        return 2 if self.direction == "both" else 1

    @property
    def annotation(self) -> int:
        """Width of an annotation h_j."""
        return self.directions * self.hidden


class AttendThenUpdate(Section):
    """s_{i-1} asks, the context enters the recurrence (Bahdanau et al. 2015, 3.1)."""

    kind: Literal["attend-then-update"] = "attend-then-update"
    conditional: bool = False
    """Let the state read y_{i-1} before it asks: the conditional GRU of dl4mt and Nematus (Sennrich et al. 2017)."""


class UpdateThenAttend(Section):
    """h_t asks, the attentional state is read from context and h_t (Luong et al. 2015, 3)."""

    kind: Literal["update-then-attend"] = "update-then-attend"
    input_feeding: bool = True
    """Feed the attentional state into the next step (Luong et al. 2015, 3.3)."""


Order = Annotated[AttendThenUpdate | UpdateThenAttend, _BY_KIND, _kind("attend-then-update")]


class MaxoutReadout(Section):
    """t_i = max over pairs of U_o s + V_o E y_{i-1} + C_o c_i (Bahdanau et al. 2015, A.2.2)."""

    kind: Literal["maxout"] = "maxout"
    size: Width = _derived(256)
    """Width after the maximum, l in the paper. By default that of `embedding`."""


class TanhReadout(Section):
    """tanh(U_o s + V_o E y_{i-1} + C_o c_i): the same inputs through one tanh layer (Pascanu et al. 2014)."""

    kind: Literal["tanh"] = "tanh"
    size: Width = _derived(256)
    """By default that of `embedding`."""


class AttentionalReadout(Section):
    """h~_t = tanh(W_c [c_t; h_t]) (Luong et al. 2015, eq. 5)."""

    kind: Literal["attentional"] = "attentional"
    size: Width = _derived(256)
    """By default that of `embedding`."""


Readout = Annotated[MaxoutReadout | TanhReadout | AttentionalReadout, _BY_KIND, _kind("maxout")]


class Decoder(Section):
    cell: Literal["gru", "lstm"] = "gru"
    hidden: Width = _derived(512)
    """By default the width of an annotation."""
    layers: Layers = 1
    order: Order = AttendThenUpdate()
    readout: Readout = MaxoutReadout()
    bridge: Literal["backward", "final", "mean", "copy", "zero"] = _derived("backward")
    """What s_0 is made of: the backward state at the first word (Bahdanau), the final states of the top layer, the mean
    annotation, the final states of each layer as they are (Luong), nothing. By default `backward`, or `final` where the
    encoder reads forward alone. With `copy` the cell and layers of one side are by default those given for the other."""
    residual: bool = False
    """As in the encoder."""
    layer_norm: bool = False
    """As in the encoder."""


class Dropout(Section):
    """Rates of dropout in training, one a place; `dropout: 0.3` sets embedding, annotations and readout at once."""

    embedding: Fraction = 0.2
    word: Fraction = 0.0
    """Of whole words, whose embedding is then all zero (Sennrich and Zhang 2019)."""
    annotations: Fraction = 0.2
    layers: Fraction = 0.0
    """Between stacked layers (Zaremba et al. 2014); in the decoder a new mask a step."""
    recurrent: Fraction = 0.0
    """On what the decoder's recurrent matrices see, one mask a sentence."""
    readout: Fraction = 0.2
    variational: bool = False
    """One mask for all time steps of a sentence (Gal and Ghahramani 2016) instead of a new one for each."""


def _from_rate(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"embedding": value, "annotations": value, "readout": value}
    return value


class Model(Section):
    """The network. A width that is not given follows from those that are, so that a recipe may give any one of them alone."""

    embedding: Width = _derived(256)
    """Width of an embedded word. By default 256, or `decoder.readout.size` where that is given and weights are shared."""
    tie: Literal["none", "target", "all"] = "target"
    """Share the output layer with the target embeddings, or all three with each other; the readout is then as wide as they are."""
    embedding_scale: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """What an embedded word, which has length 1 at first, is multiplied by; h~ is fed at the same length. The root of `embedding`
    (Vaswani et al. 2017, 3.4) makes its components as large as a state's: additive and concat scores then learn much faster.
    Products of states, as in dot and general, do not bear as much: try 4."""
    encoder: Encoder = Encoder()
    attention: Attention = Attention()
    decoder: Decoder = Decoder()
    dropout: Annotated[Dropout, BeforeValidator(_from_rate)] = Dropout()

    @model_validator(mode="after")
    def _follow(self) -> Self:
        """Fill in what is not given."""
        readout, shares = self.decoder.readout, self.tie != "none"
        leads = shares and "size" in readout.model_fields_set and "embedding" not in self.model_fields_set
        embedding = readout.size if leads else self.embedding
        encoder, decoder = self._stacks()
        decoder = decoder.model_copy(update={"readout": _complete(readout, size=embedding)})
        self.__dict__.update(embedding=embedding, encoder=encoder, decoder=decoder)
        return self

    def _stacks(self) -> tuple[Encoder, Decoder]:
        """Encoder and decoder, each with what follows from the other."""
        encoder, decoder, heads = self.encoder, self.decoder, self.attention.heads
        decoder = _complete(decoder, bridge="final" if encoder.direction == "forward" else "backward")
        if decoder.bridge == "copy":
            encoder = _complete(encoder, cell=decoder.cell, layers=decoder.layers)
            decoder = _complete(decoder, cell=encoder.cell, layers=encoder.layers)
        width = decoder.hidden if "hidden" in decoder.model_fields_set else encoder.annotation
        width = _next_multiple(width, math.lcm(heads, encoder.directions))
        encoder = _complete(encoder, hidden=width // encoder.directions)
        return encoder, _complete(decoder, hidden=min(encoder.annotation, _WIDEST - _WIDEST % heads))

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self._need_divisible_widths()
        if self.attention.score.kind == "dot":
            self._need_equal_widths("attention.score", "dot", remedy=": change one or use score: general")
        if self.decoder.bridge == "copy":
            self._need_equal_stacks()
            self._need_equal_widths("decoder.bridge", "copy")
        if self.decoder.bridge == "backward" and self.encoder.direction == "forward":
            raise _ContradictionError(
                ("decoder.bridge", "encoder.direction"),
                "decoder.bridge backward needs an encoder that reads backwards: "
                "use bridge: final, or encoder.direction both",
            )
        if self.tie != "none" and self.decoder.readout.size != self.embedding:
            raise _ContradictionError(
                ("embedding", "decoder.readout.size"),
                f"embedding and decoder.readout.size are {self.embedding} and {self.decoder.readout.size}, so the output "
                "layer cannot share its weights with the embeddings: make them equal or set tie: none",
            )
        return self

    def _need_equal_stacks(self) -> None:
        """What `copy` asks for."""
        for key in ("cell", "layers"):
            ours, theirs = getattr(self.decoder, key), getattr(self.encoder, key)
            if ours != theirs:
                raise _ContradictionError(
                    ("decoder.bridge", f"decoder.{key}", f"encoder.{key}"),
                    f"decoder.bridge copy needs decoder.{key} = encoder.{key}, but they are {ours} and {theirs}",
                )

    def _need_equal_widths(self, key: str, value: str, remedy: str = "") -> None:
        """Refuse states that are not as wide as annotations."""
        hidden, annotation, directions = self.decoder.hidden, self.encoder.annotation, self.encoder.directions
        sides = "2 x encoder.hidden" if directions == 2 else "encoder.hidden"
        if hidden % directions:
            raise _ContradictionError(
                (key, "decoder.hidden"),
                f"{key} {value} needs an even decoder.hidden, because annotations of both directions are as wide as it, "
                f"but it is {hidden}{remedy}",
            )
        if annotation > _WIDEST:
            raise _ContradictionError(
                (key, "encoder.hidden"),
                f"{key} {value} needs decoder.hidden = {sides}, which is {annotation}, more than the {_WIDEST} it can be"
                f"{remedy}",
            )
        if hidden != annotation:
            raise _ContradictionError(
                (key, "decoder.hidden", "encoder.hidden"),
                f"{key} {value} needs decoder.hidden = {sides}, but they are {hidden} and {annotation}{remedy}",
            )

    def _need_divisible_widths(self) -> None:
        heads, encoder, decoder = self.attention.heads, self.encoder, self.decoder
        widths = {
            "2 x encoder.hidden" if encoder.directions == 2 else "encoder.hidden": encoder.annotation,
            "decoder.hidden": decoder.hidden,
        }
        for side, width in widths.items():
            if width % heads:
                raise _ContradictionError(
                    ("attention.heads", side.split()[-1]),
                    f"attention.heads must divide {side}, but they are {heads} and {width}",
                )


# --- training and decoding --------------------------------------------------------------------------------------


class Adam(Section):
    kind: Literal["adam", "adamw"] = "adam"
    rate: Positive = 1e-3
    betas: Annotated[tuple[Fraction, Fraction], Field(strict=False)] = (0.9, 0.999)
    epsilon: Positive = 1e-8
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class Sgd(Section):
    kind: Literal["sgd"] = "sgd"
    rate: Positive = 1.0
    momentum: Fraction = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class ConstantSchedule(Section):
    kind: Literal["constant"] = "constant"
    warmup: Annotated[int, Field(ge=0)] = 0
    """Updates in which the rate rises linearly from 0."""


class InverseSqrtSchedule(Section):
    """rate x min(u / warmup, sqrt(warmup / u)) at update u."""

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    warmup: Size = 1000


class CosineSchedule(Section):
    """A half cosine from the rate down to `final` times it at the last update."""

    kind: Literal["cosine"] = "cosine"
    warmup: Annotated[int, Field(ge=0)] = 0
    final: Fraction = 0.0


class PlateauSchedule(Section):
    """The rate times `factor` whenever `patience` validations in a row brought no better score."""

    kind: Literal["plateau"] = "plateau"
    warmup: Annotated[int, Field(ge=0)] = 0
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    patience: Size = 2


class HalvingSchedule(Section):
    """Halve the rate every `every` epochs once `start` epochs are done (Luong et al. 2015, 4.1)."""

    kind: Literal["halving"] = "halving"
    warmup: Annotated[int, Field(ge=0)] = 0
    start: Annotated[int, Field(ge=0)] = 5
    every: Positive = 1.0


Optimizer = Annotated[Adam | Sgd, _BY_KIND, _kind("adam")]
Schedule = Annotated[
    ConstantSchedule | InverseSqrtSchedule | CosineSchedule | PlateauSchedule | HalvingSchedule,
    _BY_KIND,
    _kind("constant"),
]


Metric = Literal["bleu", "chrf", "perplexity"]


def _listed(value: object) -> object:
    """Let a single name stand for a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class Validation(Section):
    """When and how the model is judged in training, and what follows from it."""

    every: Size | None = None
    """Updates between validations; null is once an epoch."""
    metrics: Annotated[
        tuple[Metric, ...],
        BeforeValidator(_listed, json_schema_input_type=Metric | list[Metric]),
        Field(min_length=1, validation_alias=AliasChoices("metrics", "metric")),  # `metric` in recipes of 0.1
    ] = ("bleu",)
    """What `best` means, one name or a list: the first decides, the next ones break ties, and at last perplexity does. BLEU and
    chrF are those of real decoding of the validation text, compared with the two decimals that are shown."""
    beam_size: Annotated[int, Field(ge=1, le=10_000)] = 1
    patience: Size | None = 10
    """Stop after this many validations in a row without a better score; null never stops early."""
    keep_best: Size = 1
    """How many of the best checkpoints stay; with more than one their average becomes the model if it validates better."""


class GuidedAlignment(Section):
    """Cross-entropy of the attention against given word links, beside that of the words (Chen et al. 2016; Mi et al. 2016)."""

    links: str
    """A file with a line `i-j i-j ...` (source-target word, from 0; characters of text without spaces) a pair of
    data.train, `hmm`: those that `nmt links` finds in data.train, or `gold`: those of the sample."""
    weight: Positive = 0.5
    """What a nat of a linked token's attention counts beside a nat of a predicted token."""
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """What the weight is multiplied with after every epoch, for links that are only to show the way."""


class LinearDecay(Section):
    """min(1, max(floor, offset - slope u))."""

    kind: Literal["linear"] = "linear"
    floor: Fraction = 0.25
    """The least probability, at which the decay ends; epsilon in the paper."""
    offset: Positive = 1.0
    """k in the paper; above 1, the first updates are fed the reference alone."""
    slope: Positive = 1e-4
    """Of one update; c in the paper."""


class ExponentialDecay(Section):
    """base^u."""

    kind: Literal["exponential"] = "exponential"
    base: Annotated[float, Field(gt=0, lt=1)] = 0.9999
    """k in the paper."""


class InverseSigmoidDecay(Section):
    """scale / (scale + exp(u / scale)): near 1 at first, 1/2 at update scale x ln(scale)."""

    kind: Literal["inverse-sigmoid"] = "inverse-sigmoid"
    scale: Annotated[float, Field(ge=1)] = 1000.0
    """k in the paper, in updates; the larger, the slower."""


ScheduledSampling = Annotated[LinearDecay | ExponentialDecay | InverseSigmoidDecay, _BY_KIND, _kind("inverse-sigmoid")]


class Training(Section):
    epochs: Size = 30
    updates: Size | None = None
    """Stop after this many updates, whatever the epoch."""
    batch_tokens: Size = 4096
    """Target tokens in a batch, padding included."""
    accumulate: Size = 1
    """Batches whose gradients are summed into one update."""
    optimizer: Optimizer = Adam()
    schedule: Schedule = ConstantSchedule()
    clip_norm: Positive | None = 1.0
    label_smoothing: Fraction = 0.1
    guided_alignment: GuidedAlignment | None = None
    """Train the attention on word links too; null leaves it to itself."""
    scheduled_sampling: ScheduledSampling | None = None
    """How the probability of feeding the decoder the reference's word, not one it drew itself, falls with update u (Bengio et al.
    2015, 2.4); null always feeds the reference."""
    ema: Fraction | None = None
    """Decay of an exponential moving average of the weights, which is then what is validated and saved."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Matrix products in bf16 where the machine is fast at it (auto), always, or never."""
    validation: Validation = Validation()
    log_every: Size = 50
    """Updates between two lines of the log."""
    tensorboard: bool = False


Tokenizer = Literal[
    "13a", "zh", "ja-mecab", "ko-mecab", "char", "intl", "none", "spm", "flores101", "flores200", "spBLEU-1K"
]
"""All of sacreBLEU's, which is not imported to read a recipe."""


class Decoding(Section):
    """Defaults of `nmt translate` and `nmt evaluate` for this model."""

    beam_size: Annotated[int, Field(ge=1, le=10_000)] = 5
    length_penalty: Penalty = 1.0
    """alpha in ((5 + |y|) / 6)^alpha (Wu et al. 2016, eq. 14); 0 compares plain log-probabilities."""
    coverage_penalty: Penalty = 0.0
    """beta of the coverage penalty (Wu et al. 2016, eq. 14)."""
    max_ratio: Ratio = 3.0
    """Longest output, as a multiple of the source length in tokens, plus 10."""
    horizon: Size | None = 8
    """A beam stops once nothing alive could win by ending within this many tokens, even at no cost; null waits until it is certain,
    up to the longest output, which takes 1.2 to 1.8 times as long and has changed none of 2,928 translations."""
    prune: Penalty | None = None
    """A beam drops what is so many nats less probable than the best of its sentence in the same step (the absolute threshold of
    Freitag and Al-Onaizan 2017), and is so much faster; null drops nothing."""


class Evaluation(Section):
    """How translations are scored, by validation and `nmt evaluate`."""

    tokenize: Tokenizer | None = None
    """sacreBLEU's tokeniser for BLEU; null takes that of data.target as sacreBLEU does: zh for Chinese, ja-mecab and ko-mecab, or
    char without MeCab, for Japanese and Korean, 13a for all others."""


class Recipe(Section):
    """Everything that decides what a training run does."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Also the default output folder, under `runs/`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    data: Data
    subwords: Subwords = Subwords()
    model: Model = Model()
    training: Training = Training()
    decoding: Decoding = Decoding()
    evaluation: Evaluation = Evaluation()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.model.tie == "all" and not self.subwords.joint:
            raise _ContradictionError(
                ("model.tie", "subwords.joint"),
                "model.tie: all shares the embeddings of both languages, which needs subwords.joint: true",
            )
        self._possible_guidance()
        return self

    def _possible_guidance(self) -> None:
        guided = self.training.guided_alignment
        if guided is not None and self.model.attention.score.kind == "none":
            raise _ContradictionError(
                ("training.guided_alignment.links", "model.attention.score"),
                "training.guided_alignment has no attention to guide, because model.attention.score is none: "
                "leave it out or choose a score",
            )
        if guided is not None and guided.links == "gold" and not self.data.train.startswith("sample:"):
            raise _ContradictionError(
                ("training.guided_alignment.links", "data.train"),
                f"training.guided_alignment.links: gold needs a corpus that has links, sample:train, but data.train is "
                f"{self.data.train}: name a file of links",
            )


# --- reading and writing ----------------------------------------------------------------------------------------


_LARGEST = 100_000
"""Bytes of a recipe, which is a few thousand long; YAML is read slowly."""


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core types only: `no` is text, `1e-3` is a number, a date is text; duplicate keys are refused.

    So are tags and aliases, which no recipe needs: with a few aliases a short text grows beyond all memory.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012 -- PyYAML's own way to start without YAML 1.1's types

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        problem = None
        if isinstance(event, yaml.AliasEvent):
            problem = f"the alias '*{event.anchor}' is not read here; write out what it stands for"
        elif event.tag is not None:
            problem = f"the tag '{event.tag}' is not read here; leave it out"
        if problem is not None:
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            problem = None
            if not isinstance(key, yaml.ScalarNode):
                problem = "a key must be a word"
            elif key.value in seen:
                problem = f"the key '{key.value}' occurs twice"
            if problem is not None:
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes whatever text the loader would take for something else."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 -- as in the loader


_BREAKS = frozenset("\x85\u2028\u2029")

for _tag, _pattern, _first in (
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("bool", r"^(?:true|false)$", ["t", "f"]),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)
_Dumper.add_representer(  # in other quotes these would be line breaks, which come back as spaces
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if _BREAKS & set(text) else None
    ),
)


def _whole_number(_: _Loader, node: yaml.ScalarNode) -> int:
    """012 is twelve, not YAML 1.1's octal."""
    if len(node.value) > 40:
        problem = f"a number of {len(node.value):,} digits is no setting"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return int(node.value)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def parse_yaml(text: str, where: str) -> Any:
    """The plain value of a YAML text; `where` names it in errors."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 -- a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{where}{line}: {error.problem}.") from None
    except RecursionError:
        raise UsageError(f"{where}: not valid YAML (it is nested too deeply).") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise UsageError(f"{where}: not valid YAML ({str(error).splitlines()[0]}).") from None


def find_recipe(name: str) -> Path:
    """The file of a recipe: a path, or the name of one that ships with the toolkit (`quickstart`, `multi30k-en-de/bahdanau`)."""
    if _is_file(Path(name)):
        return Path(name)
    shipped = shipped_recipes()
    stem = name.removesuffix(".yaml").removeprefix("recipes/")
    if stem in shipped:
        return shipped[stem]
    names = _similar_recipes(stem, shipped)
    guess = (
        f"did you mean {' or '.join(map(repr, names))}?"
        if names
        else "give a YAML file, or a name of `nmt recipe list`."
    )
    raise UsageError(f"There is no recipe '{name}': {guess}")


def _similar_recipes(name: str, shipped: Iterable[str]) -> list[str]:
    """The recipes whose name, or its last part, looks like this one."""
    spellings: dict[str, list[str]] = {}
    for recipe in sorted(shipped):
        for spelling in {recipe, recipe.rpartition("/")[2]}:
            spellings.setdefault(spelling, []).append(recipe)
    nearest = difflib.get_close_matches(name, spellings, n=1)
    return spellings[nearest[0]] if nearest else []


def _is_file(path: Path) -> bool:
    """Whether there is such a file; also false for a name that none can have."""
    try:
        return path.is_file()
    except OSError:  # longer than names may be
        return False


def shipped_recipes() -> dict[str, Path]:
    """Name and file of every recipe that ships with the toolkit."""
    package = Path(str(resources.files("nmt")))
    root = next((folder for folder in (package / "recipes", package.parent / "recipes") if folder.is_dir()), None)
    if root is None:
        return {}
    return {str(path.relative_to(root).with_suffix("")): path for path in root.rglob("*.yaml")}


def recipe_title(path: Path) -> str:
    """What a recipe is, as the first line of the comment above it says before any colon."""
    with path.open(encoding="utf-8") as file:
        line = file.readline()
    return line.removeprefix("#").partition(": ")[0].strip().rstrip(".") if line.startswith("#") else ""


def load_recipe(name: str | Path, overrides: str | Iterable[str] = (), *, based: bool = True) -> Recipe:
    """Read a recipe, a file or one that ships with the toolkit, apply `a.b=value` overrides, validate. Raises UsageError.

    A recipe that says `base: FILE` or the name of a shipped recipe is that one with what it says itself laid over it; with
    `based` false no other file is read, and a recipe that names one is refused.
    """
    path = as_path(name, "The recipe")
    if based and isinstance(name, str):
        path = find_recipe(name)
    tree = _read_tree(path, ()) if based else _read_file(path)
    if not based and "base" in tree:
        raise UsageError(f"{path}: 'base' is not followed in a model folder, whose recipe says everything itself.")
    inherited = _inherited(path) if based else {}
    for override in [overrides] if isinstance(overrides, str) else overrides:
        _set(tree, override)
        inherited = {key: base for key, base in inherited.items() if not _is_within(key, override.partition("=")[0])}
    return parse_recipe(tree, str(path), inherited)


def _read_tree(path: Path, readers: tuple[Path, ...]) -> dict[str, Any]:
    """The plain tree of a recipe file, laid over its base; `readers` are the files on whose behalf it is read."""
    if path.resolve() in readers:
        raise UsageError(f"{path}: the recipe is its own base; take 'base' out of one of the files.")
    tree = _read_file(path)
    base = tree.pop("base", None)
    if base is None:
        return tree
    if not isinstance(base, str):
        raise UsageError(f"{path}: 'base' is the file or the name of a recipe, but is {_article(base)}.")
    return _laid_over(_read_tree(_base_file(path, base), (*readers, path.resolve())), tree)


def _base_file(path: Path, base: str) -> Path:
    """The file that a recipe calls its base: one beside it, or what `find_recipe` knows by that name."""
    beside = path.parent / base
    return beside if _is_file(beside) else find_recipe(base)


def _inherited(path: Path) -> dict[str, Path]:
    """The dotted keys that a recipe takes from its base, each with the file that gives it."""
    tree = _read_file(path)
    if "base" not in tree:
        return {}
    base = _base_file(path, tree["base"])
    given = {*_dotted_keys(tree)}
    below = dict.fromkeys(_dotted_keys(_read_file(base)), base) | _inherited(base)
    return {key: file for key, file in below.items() if key not in given}


def _dotted_keys(tree: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """The paths of all values that are no sections."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _dotted_keys(value, f"{at}{key}.")
        else:
            yield f"{at}{key}"


def _is_within(key: str, section: str) -> bool:
    """Whether a dotted key is a section or in it."""
    return f"{key}.".startswith(f"{section}.")


def _read_file(path: Path) -> dict[str, Any]:
    """The plain tree that a file holds itself."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{path} is no recipe: it has more than {_LARGEST:,} bytes.")
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the recipe {path}: {error}.") from None
    tree = parse_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise UsageError(
            f"{path}: a recipe is a mapping of sections (name, data, model, ...), but this is {_article(tree)}."
        )
    return tree


def _laid_over(base: dict[str, Any], tree: dict[str, Any]) -> dict[str, Any]:
    """The base with the tree's values in place of its own; sections join unless they are of another kind."""
    joined = dict(base)
    for key, value in tree.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict) and value.get("kind") in (None, below.get("kind")):
            value = _laid_over(below, value)
        joined[key] = value
    return joined


def parse_recipe(tree: Mapping[str, Any], where: str, inherited: Mapping[str, Path] | None = None) -> Recipe:
    """Validate a plain tree of values. Raises UsageError naming every wrong key.

    Args:
        tree: the values; what it leaves out follows from what it gives.
        where: names the tree in errors.
        inherited: the dotted keys that come from another file, which is named with them in errors.
    """
    return _validated(Recipe, tree, where, inherited=inherited or {})


def change_decoding(decoding: Decoding, settings: Mapping[str, Any], where: str) -> Decoding:
    """Decoding settings with others laid over them; `where` names these in errors. Raises UsageError naming every wrong key."""
    return _validated(Decoding, {**decoding.model_dump(mode="json"), **settings}, where, within=("decoding",))


def _validated(
    kind: type[SectionT],
    tree: Mapping[str, Any],
    where: str,
    *,
    within: tuple[str, ...] = (),
    inherited: Mapping[str, Path] = MappingProxyType({}),
) -> SectionT:
    """The section of a plain tree, which stands `within` a recipe."""
    try:
        return kind.model_validate_json(json.dumps(tree, ensure_ascii=False).encode())
    except ValidationError as error:
        sentences = (_sentence({**item, "loc": (*within, *item["loc"])}, inherited) for item in error.errors())
        raise UsageError(f"{where}: " + " ".join(sentences)) from None
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{where}: {error.object[max(error.start - 20, 0) : error.end]!r} has a lone surrogate."
        ) from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}.") from None


def dump_recipe(recipe: Recipe) -> str:
    """The complete effective recipe as YAML, defaults included; `load_recipe` reads it back unchanged."""
    tree = json.loads(recipe.model_dump_json())
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def changed_keys(recipe: Recipe, path: Path) -> list[str]:
    """The dotted paths at which a recipe differs from the one in a file."""
    return _differences(json.loads(recipe.model_dump_json()), json.loads(load_recipe(path).model_dump_json()))


def _differences(one: Any, other: Any, at: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        return [path for key in keys for path in _differences(one.get(key), other.get(key), f"{at}.{key}".lstrip("."))]
    return [] if one == other else [at]


def recipe_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe file, for editors that complete and check YAML."""
    schema = Recipe.model_json_schema()
    schema["properties"]["base"] = {"type": "string", "description": "A recipe that this one is laid over."}
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["base"]}]
    return schema


def _set(tree: dict[str, Any], override: str) -> None:
    """Put one `a.b=value` into the tree; the value is YAML."""
    path, equals, value = override.partition("=")
    if not equals or not all(path.split(".")):
        raise UsageError(f"--set takes a.b=value, but got '{override}'.")
    *parents, last = path.split(".")
    for parent in parents:
        child = tree.get(parent)
        if child is None:  # not there, or an optional section that is off
            child = tree[parent] = {}
        elif isinstance(child, str):  # a union written as its bare kind
            child = tree[parent] = {"kind": child}
        if not isinstance(child, dict):
            raise UsageError(f"--set {override}: '{parent}' is {_article(child)}, so it has no key '{last}'.")
        tree = child
    tree[last] = parse_yaml(value, f"--set {override}")


def _article(value: object) -> str:
    names = {
        list: "a list",
        dict: "a mapping",
        str: "text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
    }
    return names.get(type(value), "nothing")


def _sentence(error: Any, inherited: Mapping[str, Path]) -> str:
    """One validation error as a sentence with its dotted path."""
    path = _dotted(error["loc"])
    match error["type"]:
        case "extra_forbidden":
            guess = difflib.get_close_matches(str(error["loc"][-1]), _keys_at(error["loc"][:-1]), n=1, cutoff=0.5)
            return f"unknown key '{path}'" + (f"; did you mean '{guess[0]}'?" if guess else ".")
        case "missing":
            return f"'{path}' is missing."
        case "union_tag_invalid":
            wrong, known = error["ctx"]["tag"], error["ctx"]["expected_tags"]
            guess = difflib.get_close_matches(wrong, [tag.strip("' ") for tag in known.split(",")], n=1, cutoff=0.5)
            return f"'{path}' cannot be '{wrong}'; " + (
                f"did you mean '{guess[0]}'?" if guess else f"it is one of {known}."
            )
        case "literal_error":
            guess = difflib.get_close_matches(
                str(error["input"]), re.findall("'([^']*)'", error["ctx"]["expected"]), n=1, cutoff=0.5
            )
            return f"'{path}' cannot be {error['input']!r}; " + (
                f"did you mean '{guess[0]}'?" if guess else f"it is {error['ctx']['expected']}."
            )
        case "union_tag_not_found" | "model_type" | "model_attributes_type":
            return f"'{path}' is a section with keys of its own, but is {error['input']!r}."
        case "value_error":
            problem = error["ctx"]["error"]
            return (f"'{path}': " if path else "") + f"{problem}{_bases(path, problem, inherited)}."
        case _:
            message = error["msg"][0].lower() + error["msg"][1:]
            return f"'{path}': {message}, but is {error['input']!r}."


def _bases(path: str, problem: Exception, inherited: Mapping[str, Path]) -> str:
    """Which of the keys that contradict each other come from a base."""
    keys = [f"{path}.{key}".lstrip(".") for key in getattr(problem, "keys", ())]
    files = {key: file for key in keys for name, file in inherited.items() if _is_within(name, key)}
    shown = ", ".join(f"{key} comes from the base {file}" for key, file in files.items())
    return f" ({shown})" if files else ""


def _dotted(location: tuple[int | str, ...]) -> str:
    """The path as it stands in the YAML, without the tag that a union adds after its own key."""
    return ".".join(str(part) for part in _follow(location)[0])


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    """The keys that the section at this location knows."""
    return list(_follow(location)[1].get("properties", {}))


def _follow(location: tuple[int | str, ...]) -> tuple[list[int | str], Any]:
    """The keys on the way through the schema to a location, unions' tags left out, and the schema found there."""
    schema: Any = Recipe.model_json_schema()
    path: list[int | str] = []
    node, definitions = schema, schema["$defs"]
    for part in location:
        node = _resolve(node, definitions)
        tagged = node["discriminator"]["mapping"] if "oneOf" in node else {}
        if part in tagged:
            node = {"$ref": tagged[part]}
        else:
            path.append(part)
            node = node.get("properties", {}).get(part, {})
    return path, _resolve(node, definitions)


def _resolve(node: Any, definitions: Any) -> Any:
    """What a reference, or a section that may be null, stands for."""
    while "$ref" in node or "anyOf" in node:
        node = definitions[node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else node["anyOf"][0]
    return node
