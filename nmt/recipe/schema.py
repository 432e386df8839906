"""The schema of recipes: every setting of a training run, as frozen and strictly validated pydantic models.

Defaults of some settings follow from others. Values that contradict each other are errors.
"""

import math
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

Size = Annotated[int, Field(ge=1, lt=2**31)]
_WIDEST = 2**16
Width = Annotated[int, Field(ge=1, le=_WIDEST)]
"""Width of a layer or window. The limit keeps a damaged model folder from asking for more memory than any machine has."""
Layers = Annotated[int, Field(ge=1, le=100)]
Heads = Annotated[int, Field(ge=1, le=1024)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Ratio = Annotated[float, Field(gt=0, le=1000)]
Penalty = Annotated[float, Field(ge=0, le=100)]


class Section(BaseModel):
    """A section of the recipe: immutable, strict about types, without unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


SectionT = TypeVar("SectionT", bound=Section)


def _complete(section: SectionT, **values: object) -> SectionT:
    """Set values of keys that the recipe does not set."""
    return section.model_copy(
        update={key: value for key, value in values.items() if key not in section.model_fields_set}
    )


def _derived(start: int | str) -> Any:
    """A default that other keys determine; `start` is the value if none of them is set."""
    return Field(default=start, json_schema_extra=lambda schema: schema.pop("default", None))


class _ContradictionError(ValueError):
    """Values of several keys contradict each other. `keys` are their paths, relative to the section that raises the error."""

    def __init__(self, keys: Iterable[str], sentence: str) -> None:
        super().__init__(sentence)
        self.keys = tuple(keys)


def _kind(default: str) -> BeforeValidator:
    """Accept a union written as its kind alone, and settings without a kind as those of the default kind."""

    def complete(value: object) -> object:
        if isinstance(value, str):
            return {"kind": value}
        return {"kind": default, **value} if isinstance(value, dict) else value

    return BeforeValidator(complete)


_BY_KIND = Field(discriminator="kind")


# --- data -------------------------------------------------------------------------------------------------------


class FiltersConfig(Section):
    """Which training pairs to leave out, besides those with an empty side. Lengths are in tokens, EOS not counted.

    The rules apply in the order of the keys, and a pair counts for the first one that it breaks. A rule on one side applies to both.
    """

    max_length: Size = 100
    """Most tokens of the longer side."""
    max_ratio: Positive | None = 9.0
    """Largest ratio of the longer to the shorter side; null keeps all."""
    duplicates: bool = True
    """Whether to keep repeated pairs."""
    copies: bool = True
    """Whether to keep pairs whose two sides are equal but for spaces."""
    max_word_length: Size | None = None
    """Most characters of a word, which is what spaces separate; 40 removes most addresses and lines without spaces. null keeps all."""
    min_letters: Share | None = None
    """Least share of letters in the characters of a side, spaces not counted, such as 0.5; null keeps all."""
    scripts: bool = False
    """Whether more than half of the letters of a side must be of the scripts that its language is written in."""
    language: Share | None = None
    """Least probability that a side is in its language, by py3langid (`pip install "nmt[langid]"`); null keeps all. Short lines get low
    probabilities: 0.1 removes 0.7 % of the English lines of Tatoeba, 0.5 removes 7 %."""


def _from_locator(value: object) -> object:
    """Accept the locator of a corpus alone."""
    return {"corpus": value} if isinstance(value, str) else value


class CorpusConfig(Section):
    """A corpus of a mixture; its locator alone has weight 1 and no tag."""

    corpus: str
    """Its locator."""
    weight: Ratio = 1.0
    """How often an epoch shows each pair: 2 twice, 0.5 half of the pairs, and the other half in the next epoch."""
    tag: Annotated[str, Field(pattern=r"^<[^\s<>\u2581]+>$", max_length=40)] | None = None
    """A word in angle brackets that is put before every source line, such as `<BT>` for back-translated text (Caswell et al. 2019).
    It is one token of the subwords that are trained. Validation and test text get no tag."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.tag in ("<s>", "</s>", "<pad>", "<unk>") or (self.tag and re.fullmatch("<0x..>", self.tag)):
            raise ValueError(f"tag {self.tag} is the name of another token: choose another word, such as <BT>")
        return self

    def __str__(self) -> str:
        weight = "" if self.weight == 1 else f" x {self.weight:g}"
        return f"{self.tag + ' ' if self.tag else ''}{self.corpus}{weight}"


def _one_or_several(value: object) -> str | None:
    """Which alternative of `data.train` a value is meant for."""
    if isinstance(value, str):
        return "locator"
    return "mixture" if isinstance(value, list | tuple) and value else None


_CorpusOfMixture = Annotated[CorpusConfig, BeforeValidator(_from_locator, json_schema_input_type=str | CorpusConfig)]
_TrainingCorpus = Annotated[
    Annotated[str, Tag("locator")] | Annotated[tuple[_CorpusOfMixture, ...], Tag("mixture")],
    Discriminator(
        _one_or_several,
        custom_error_type="mixture",
        custom_error_message="It is a locator, or a list of locators and sections {corpus, weight, tag}",
    ),
]


class DataConfig(Section):
    """The parallel text, as locators: `dir/train.{en,de}.gz`, a file with both sides (`.tsv .csv .jsonl .parquet .tmx .xlf .po`), an
    archive `x.zip`, `hf:owner/name:split`, `multi30k/train`, `sample:train`, `sacrebleu:wmt14/en-de`. `[:10000]` at the end takes
    the first 10,000 pairs, `[10000:]` all others.
    """

    source: str
    """Language code of the source side, as in file names and columns."""
    target: str
    """Language code of the target side."""
    train: _TrainingCorpus
    """A corpus, or a mixture: a list of locators and of sections such as `{corpus: LOCATOR, weight: 2, tag: "<BT>"}`."""
    temperature: Annotated[float, Field(ge=1, le=1000)] | None = None
    """Mix in proportion to lines^(1/T) instead of by weights, in epochs as long as all corpora together (Arivazhagan et al. 2019,
    4.2): 1 takes every pair once, 5 is common for many languages, 1000 is almost uniform."""
    valid: str
    test: str | None = None
    """Held-out text for `nmt evaluate`; not used in training."""
    filters: FiltersConfig = FiltersConfig()

    @property
    def corpora(self) -> tuple[CorpusConfig, ...]:
        """The training corpora, of which there is one unless they are mixed."""
        return (CorpusConfig(corpus=self.train),) if isinstance(self.train, str) else self.train

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.temperature is not None and isinstance(self.train, str):
            raise _ContradictionError(
                ("temperature", "train"),
                f"temperature {self.temperature:g} has nothing to mix, because train is one corpus: leave it out or list several",
            )
        weighted = next((item for item in self.corpora if item.weight != 1), None)
        if self.temperature is not None and weighted is not None:
            raise _ContradictionError(
                ("temperature", "train"),
                f"temperature {self.temperature:g} and the weight {weighted.weight:g} of {weighted.corpus} both say how often pairs "
                "are shown: leave one out",
            )
        return self

    @model_serializer(mode="wrap")
    def _without_temperature(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out a temperature of null, so that recipes with one corpus stay as they were before there were mixtures."""
        tree: dict[str, Any] = serialize(self)
        if tree.get("temperature", 0) is None:
            del tree["temperature"]
        return tree


class SubwordsConfig(Section):
    """SentencePiece models, trained by `nmt train` on the training text unless files are given."""

    kind: Literal["unigram", "bpe", "char", "word"] = "unigram"
    size: Annotated[int, Field(ge=8)] = 8000
    """Size of the vocabulary (of each side, unless joint) in tokens, special ones included."""
    joint: bool = True
    """One model for both languages; needed to tie all embeddings."""
    byte_fallback: bool = True
    """Spell unseen characters as bytes, so that there are no unknown tokens."""
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
            raise ValueError(
                f"sampling needs kind unigram or bpe, but kind is {self.kind}: change kind or leave sampling out"
            )
        if self.byte_fallback and self.kind == "unigram" and self.size < 300 and self.source_model is None:
            raise ValueError(
                f"size {self.size} leaves no room beside the 256 byte tokens: raise size or set byte_fallback: false"
            )
        return self


# --- model ------------------------------------------------------------------------------------------------------


class AdditiveScoreConfig(Section):
    """v_a^T tanh(W_a s + U_a h_j) (Bahdanau et al. 2015, A.1.2)."""

    kind: Literal["additive"] = "additive"
    size: Width = _derived(256)
    """Width of the hidden layer, n' in the paper; the heads share it. By default 256, or the next multiple of `heads`."""
    coverage: bool = False
    """Let the score see the total weight of each source position so far (Tu et al. 2016)."""


class DotScoreConfig(Section):
    """h_t^T h_s (Luong et al. 2015, 3.1). Annotations must be as wide as the decoder state."""

    kind: Literal["dot"] = "dot"


class GeneralScoreConfig(Section):
    """h_t^T W_a h_s (Luong et al. 2015, 3.1)."""

    kind: Literal["general"] = "general"


class ConcatScoreConfig(Section):
    """v_a^T tanh(W_a [h_t; h_s]) (Luong et al. 2015, 3.1)."""

    kind: Literal["concat"] = "concat"
    size: Width = _derived(256)
    """As in the additive score; rows of W_a."""
    coverage: bool = False
    """As in the additive score."""


class LocationScoreConfig(Section):
    """a_t = softmax(W_a h_t) (Luong et al. 2015, eq. 8). Positions beyond max_source get no weight."""

    kind: Literal["location"] = "location"
    max_source: Width = 120
    """Number of source positions that W_a has scores for, in tokens."""


class NoScoreConfig(Section):
    """No attention: the context is the encoder's final state at every step (Cho et al. 2014)."""

    kind: Literal["none"] = "none"


ScoreConfig = Annotated[
    AdditiveScoreConfig | DotScoreConfig | GeneralScoreConfig | ConcatScoreConfig | LocationScoreConfig | NoScoreConfig,
    _BY_KIND,
    _kind("additive"),
]


class GlobalWindowConfig(Section):
    """Attend to all source positions (Luong et al. 2015, 3.1)."""

    kind: Literal["global"] = "global"


class LocalMonotonicWindowConfig(Section):
    """Attend to positions within D of the centre p_t = t (Luong et al. 2015, 3.2)."""

    kind: Literal["local-m"] = "local-m"
    half_width: Width = 10
    """D, in tokens."""
    ratio: Ratio = 1.0
    """Source tokens per target token, for languages of different length: p_t = ratio t, rounded."""


class LocalPredictiveWindowConfig(Section):
    """Attend to positions within D of a predicted centre p_t, weighted by a Gaussian (Luong et al. 2015, eq. 9 and 10)."""

    kind: Literal["local-p"] = "local-p"
    half_width: Width = 10
    """D, in tokens."""


WindowConfig = Annotated[
    GlobalWindowConfig | LocalMonotonicWindowConfig | LocalPredictiveWindowConfig, _BY_KIND, _kind("global")
]


class AttentionConfig(Section):
    score: ScoreConfig = AdditiveScoreConfig()
    window: WindowConfig = GlobalWindowConfig()
    heads: Heads = 1
    """Number of attention heads; each uses its own part of the projected state and annotations (Vaswani et al. 2017, 3.2.2)."""

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
                f"heads must divide score.size, but they are {self.heads} and {self.score.size}: change one",
            )
        return self


def _next_multiple(number: int, of: int) -> int:
    """Round a number up to a multiple of another."""
    return -(-number // of) * of


Cell = Literal["gru", "gru-reset-before", "lstm"]


class EncoderConfig(Section):
    """Recurrent encoder."""

    cell: Cell = "gru"
    """`gru` has r * (U s), as cuDNN does; `gru-reset-before` has U (r * s), as Bahdanau et al. (2015, A.1.1) do, and is slower."""
    hidden: Width = _derived(256)
    """Width of one direction; with both directions, annotations are twice as wide. By default 256, or the width that makes
    annotations as wide as `decoder.hidden` if that is set; rounded up to what `attention.heads` divides."""
    layers: Layers = 1
    direction: Literal["both", "forward", "reversed"] = "both"
    """Direction of reading: both (Bahdanau et al. 2015), left to right, or right to left, which is the source reversal of
    Sutskever et al. (2014) and Luong et al. (2015). Annotations are always in source order."""
    residual: bool = False
    """Add the input of a layer to its output, from the second layer on (Wu et al. 2016, 3.1)."""
    layer_norm: bool = False
    """Normalise the inputs of the gates (Ba et al. 2016). Slower, because fused kernels do not support it."""

    @property
    def directions(self) -> int:
        """Number of directions."""
        return 2 if self.direction == "both" else 1

    @property
    def annotation(self) -> int:
        """Width of an annotation h_j."""
        return self.directions * self.hidden


class AttendThenUpdateConfig(Section):
    """The query is s_{i-1}; the context enters the recurrence (Bahdanau et al. 2015, 3.1)."""

    kind: Literal["attend-then-update"] = "attend-then-update"
    conditional: bool = False
    """The query has already read y_{i-1}: the conditional GRU of dl4mt and Nematus (Sennrich et al. 2017)."""


class UpdateThenAttendConfig(Section):
    """The query is h_t; the readout is computed from context and h_t (Luong et al. 2015, 3)."""

    kind: Literal["update-then-attend"] = "update-then-attend"
    input_feeding: bool = True
    """Feed the readout h~_t into the next step (Luong et al. 2015, 3.3)."""
    feed_scale: Ratio | None = None
    """Factor of the fed h~_t; 1 feeds it as it is, like the paper. null is `embedding_scale` / sqrt(`readout.size`), which makes it as
    long as an embedded token."""


OrderConfig = Annotated[AttendThenUpdateConfig | UpdateThenAttendConfig, _BY_KIND, _kind("attend-then-update")]


class MaxoutReadoutConfig(Section):
    """t_i = max over pairs of U_o s + V_o E y_{i-1} + C_o c_i (Bahdanau et al. 2015, A.2.2)."""

    kind: Literal["maxout"] = "maxout"
    size: Width = _derived(256)
    """Width after the maximum, l in the paper. By default `embedding`."""


class TanhReadoutConfig(Section):
    """tanh(U_o s + V_o E y_{i-1} + C_o c_i) (Pascanu et al. 2014)."""

    kind: Literal["tanh"] = "tanh"
    size: Width = _derived(256)
    """By default `embedding`."""


class AttentionalReadoutConfig(Section):
    """h~_t = tanh(W_c [c_t; h_t]) (Luong et al. 2015, eq. 5)."""

    kind: Literal["attentional"] = "attentional"
    size: Width = _derived(256)
    """By default `embedding`."""


class StateReadoutConfig(Section):
    """h_t itself: the output layer reads the decoder state alone (Luong et al. 2015, base system; Sutskever et al. 2014)."""

    kind: Literal["state"] = "state"
    size: Width = _derived(512)
    """`decoder.hidden`."""


ReadoutConfig = Annotated[
    MaxoutReadoutConfig | TanhReadoutConfig | AttentionalReadoutConfig | StateReadoutConfig, _BY_KIND, _kind("maxout")
]


class DecoderConfig(Section):
    cell: Cell = "gru"
    """As in the encoder."""
    hidden: Width = _derived(512)
    """By default the width of an annotation."""
    layers: Layers = 1
    order: OrderConfig = AttendThenUpdateConfig()
    readout: ReadoutConfig = MaxoutReadoutConfig()
    bridge: Literal["backward", "final", "mean", "copy", "zero"] = _derived("backward")
    """How s_0 is computed: from the backward state at the first token (`backward`, Bahdanau), the final states of the top layer
    (`final`), or the mean annotation (`mean`); as a copy of the final states of each layer (`copy`, Luong); or zero. By default
    `backward`, or `final` if the encoder reads forward only. With `copy`, cell and layers of one side default to the other's."""
    residual: bool = False
    """As in the encoder."""
    layer_norm: bool = False
    """As in the encoder."""


class DropoutConfig(Section):
    """Dropout rates in training; `dropout: 0.3` sets embedding, annotations and readout at once."""

    embedding: Fraction = 0.2
    word: Fraction = 0.0
    """Rate of dropping whole tokens: their embedding is zero (Sennrich and Zhang 2019)."""
    annotations: Fraction = 0.2
    layers: Fraction = 0.0
    """Between stacked layers (Zaremba et al. 2014); in the decoder with a new mask per step."""
    recurrent: Fraction = 0.0
    """On the states that the decoder's recurrent matrices read, with one mask per sentence."""
    readout: Fraction = 0.2
    variational: bool = False
    """Use one mask for all time steps of a sentence (Gal and Ghahramani 2016) instead of one per step."""


def _from_rate(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"embedding": value, "annotations": value, "readout": value}
    return value


class DefaultInitializationConfig(Section):
    """U orthogonal, other matrices by Glorot's or PyTorch's uniform rules, embeddings of length 1 on average."""

    kind: Literal["default"] = "default"


class GaussianInitializationConfig(Section):
    """U orthogonal, other matrices N(0, std^2), those of the score N(0, score_std^2), v_a and biases 0 (Bahdanau et al. 2015, B.1)."""

    kind: Literal["gaussian"] = "gaussian"
    std: Positive = 0.01
    score_std: Positive = 0.001


class UniformInitializationConfig(Section):
    """All weights and biases U(-bound, bound) (Luong et al. 2015, 4.1)."""

    kind: Literal["uniform"] = "uniform"
    bound: Positive = 0.1


InitializationConfig = Annotated[
    DefaultInitializationConfig | GaussianInitializationConfig | UniformInitializationConfig,
    _BY_KIND,
    _kind("default"),
]


class RecurrentModelConfig(Section):
    """The models of both papers. Widths that are not set follow from those that are, so a recipe may set just one of them."""

    kind: Literal["recurrent"] = "recurrent"
    embedding: Width = _derived(256)
    """Width of embeddings. By default 256, or `decoder.readout.size` if that is set and weights are shared."""
    tie: Literal["none", "target", "all"] = "target"
    """Share the output layer with the target embeddings, or both with the source embeddings too. The readout must then be as
    wide as the embeddings."""
    embedding_scale: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Factor of the embeddings, which initially have length 1; with input feeding, h~ is scaled to the same length. The square
    root of `embedding` (Vaswani et al. 2017, 3.4) makes their components as large as those of a state: additive and concat
    scores then learn much faster. For dot and general use less: try 4."""
    encoder: EncoderConfig = EncoderConfig()
    attention: AttentionConfig = AttentionConfig()
    decoder: DecoderConfig = DecoderConfig()
    dropout: Annotated[DropoutConfig, BeforeValidator(_from_rate)] = DropoutConfig()
    initialization: InitializationConfig = DefaultInitializationConfig()
    """How the weights start."""

    @model_validator(mode="after")
    def _follow(self) -> Self:
        """Set the widths that other keys determine."""
        readout, shares = self.decoder.readout, self.tie != "none"
        is_width_of_embedding = (
            shares and "size" in readout.model_fields_set and "embedding" not in self.model_fields_set
        )
        embedding = readout.size if is_width_of_embedding else self.embedding
        encoder, decoder = self._stacks()
        size = decoder.hidden if readout.kind == "state" else embedding
        decoder = decoder.model_copy(update={"readout": _complete(readout, size=size)})
        self.__dict__.update(embedding=embedding, encoder=encoder, decoder=decoder)
        return self

    def _stacks(self) -> tuple[EncoderConfig, DecoderConfig]:
        """Encoder and decoder, with the settings that one determines for the other."""
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
            self._need_equal_widths("decoder.bridge", "copy", remedy=": change one or use another bridge")
        if self.decoder.bridge == "backward" and self.encoder.direction == "forward":
            raise _ContradictionError(
                ("decoder.bridge", "encoder.direction"),
                "decoder.bridge backward needs an encoder that reads backwards: "
                "use bridge: final, or encoder.direction both",
            )
        if self.decoder.readout.kind == "state" and self.decoder.readout.size != self.decoder.hidden:
            raise _ContradictionError(
                ("decoder.readout.size", "decoder.hidden"),
                "decoder.readout state is the decoder state, so its size is decoder.hidden, but they are "
                f"{self.decoder.readout.size} and {self.decoder.hidden}: leave decoder.readout.size out",
            )
        if self.tie != "none" and self.decoder.readout.size != self.embedding:
            raise _ContradictionError(
                ("embedding", "decoder.readout.size"),
                f"embedding and decoder.readout.size are {self.embedding} and {self.decoder.readout.size}, so the output "
                "layer cannot share its weights with the embeddings: make them equal or set tie: none",
            )
        return self

    @property
    def has_attention(self) -> bool:
        """Whether there are weights to show."""
        return self.attention.score.kind != "none"

    def _need_equal_stacks(self) -> None:
        """Check that both sides have the same cell and layers, as the bridge `copy` needs."""
        for key in ("cell", "layers"):
            ours, theirs = getattr(self.decoder, key), getattr(self.encoder, key)
            if ours != theirs:
                raise _ContradictionError(
                    ("decoder.bridge", f"decoder.{key}", f"encoder.{key}"),
                    f"decoder.bridge copy needs decoder.{key} = encoder.{key}, but they are {ours} and {theirs}: "
                    "make them equal or use another bridge",
                )

    def _need_equal_widths(self, key: str, value: str, *, remedy: str) -> None:
        """Check that decoder states are as wide as annotations."""
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
                    f"attention.heads must divide {side}, but they are {heads} and {width}: change one",
                )


class TransformerStackConfig(Section):
    layers: Layers = 6


class TransformerDropoutConfig(Section):
    """Dropout rates in training; `dropout: 0.3` sets embedding and residual at once."""

    embedding: Fraction = 0.1
    """On embedded tokens with their positions (Vaswani et al. 2017, 5.4)."""
    word: Fraction = 0.0
    """Rate of dropping whole words, as in recurrent models."""
    residual: Fraction = 0.1
    """On the output of each sublayer, before it is added to its input (Vaswani et al. 2017, 5.4)."""


def _from_transformer_rate(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"embedding": value, "residual": value}
    return value


class TransformerModelConfig(Section):
    """The Transformer (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    embedding: Width = 512
    """Width of embeddings and of all states, d_model in the paper; `heads` must divide it."""
    tie: Literal["none", "target", "all"] = "target"
    """As in recurrent models."""
    embedding_scale: Annotated[float, Field(gt=0, le=1000)] = _derived(1)
    """Factor of the embeddings. By default the square root of `embedding` (3.4 in the paper)."""
    heads: Heads = 8
    feed_forward: Width = _derived(2048)
    """Width of the feed-forward networks, d_ff in the paper. By default 4 x `embedding`."""
    norm: Literal["pre", "post"] = "post"
    """LayerNorm after each sublayer's sum (`post`, 3.1 in the paper) or on its input (`pre`), which trains without warm-up."""
    encoder: TransformerStackConfig = TransformerStackConfig()
    decoder: TransformerStackConfig = TransformerStackConfig()
    dropout: Annotated[TransformerDropoutConfig, BeforeValidator(_from_transformer_rate)] = TransformerDropoutConfig()
    alignment_layer: Annotated[int, Field(ge=1)] = _derived(1)
    """Decoder layer whose attention is shown and guided, from 1. By default the last but one (Garg et al. 2019)."""
    alignment_head: Annotated[int, Field(ge=1)] | None = None
    """Its head, from 1; null is the mean of all heads."""

    @model_validator(mode="after")
    def _follow(self) -> Self:
        values = {
            "embedding_scale": math.sqrt(self.embedding),
            "feed_forward": min(4 * self.embedding, _WIDEST),
            "alignment_layer": max(self.decoder.layers - 1, 1),
        }
        self.__dict__.update({key: value for key, value in values.items() if key not in self.model_fields_set})
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.embedding % self.heads:
            raise _ContradictionError(
                ("heads", "embedding"),
                f"heads must divide embedding, but they are {self.heads} and {self.embedding}: change one",
            )
        most = {"alignment_layer": self.decoder.layers, "alignment_head": self.heads}
        for key, limit in most.items():
            if (getattr(self, key) or 1) > limit:
                raise _ContradictionError((key,), f"{key} is {getattr(self, key)}, but there are only {limit}")
        return self

    @property
    def aligned_by(self) -> str:
        """The layer and head whose attention is the alignment, in words."""
        head = "mean of the heads" if self.alignment_head is None else f"head {self.alignment_head}"
        return f"layer {self.alignment_layer}, {head}"

    @property
    def has_attention(self) -> bool:
        """Whether there are weights to show."""
        return True


ModelConfig = Annotated[RecurrentModelConfig | TransformerModelConfig, _BY_KIND, _kind("recurrent")]


# --- training and decoding --------------------------------------------------------------------------------------


class AdamConfig(Section):
    kind: Literal["adam", "adamw"] = "adam"
    rate: Positive = 1e-3
    betas: Annotated[tuple[Fraction, Fraction], Field(strict=False)] = (0.9, 0.999)
    epsilon: Positive = 1e-8
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class AdadeltaConfig(Section):
    """Steps by the ratio of decayed root mean squares of updates and gradients (Zeiler 2012)."""

    kind: Literal["adadelta"] = "adadelta"
    rate: Positive = 1.0
    """Factor of the steps; the paper has none."""
    rho: Fraction = 0.95
    epsilon: Positive = 1e-6
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class SgdConfig(Section):
    kind: Literal["sgd"] = "sgd"
    rate: Positive = 1.0
    momentum: Fraction = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class ConstantScheduleConfig(Section):
    kind: Literal["constant"] = "constant"
    warmup: Annotated[int, Field(ge=0)] = 0
    """Number of updates in which the rate rises linearly from 0."""


class InverseSqrtScheduleConfig(Section):
    """rate x min(u / warmup, sqrt(warmup / u)) at update u."""

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    warmup: Size = 1000


class CosineScheduleConfig(Section):
    """A half cosine from the rate to `final` times the rate at the last update."""

    kind: Literal["cosine"] = "cosine"
    warmup: Annotated[int, Field(ge=0)] = 0
    final: Fraction = 0.0


class PlateauScheduleConfig(Section):
    """Multiply the rate by `factor` after `patience` validations in a row without a better score."""

    kind: Literal["plateau"] = "plateau"
    warmup: Annotated[int, Field(ge=0)] = 0
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    patience: Size = 2


class HalvingScheduleConfig(Section):
    """Halve the rate every `every` epochs once `start` epochs are done (Luong et al. 2015, 4.1)."""

    kind: Literal["halving"] = "halving"
    warmup: Annotated[int, Field(ge=0)] = 0
    start: Annotated[int, Field(ge=0)] = 5
    every: Positive = 1.0


OptimizerConfig = Annotated[AdamConfig | AdadeltaConfig | SgdConfig, _BY_KIND, _kind("adam")]
ScheduleConfig = Annotated[
    ConstantScheduleConfig
    | InverseSqrtScheduleConfig
    | CosineScheduleConfig
    | PlateauScheduleConfig
    | HalvingScheduleConfig,
    _BY_KIND,
    _kind("constant"),
]


Metric = Literal["bleu", "chrf", "perplexity"]


def _listed(value: object) -> object:
    """Accept a single name as a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class ValidationConfig(Section):
    """When and how to validate in training, and when to stop."""

    every: Size | None = None
    """Updates between validations; null is once per epoch."""
    metrics: Annotated[
        tuple[Metric, ...],
        BeforeValidator(_listed, json_schema_input_type=Metric | list[Metric]),
        Field(min_length=1, validation_alias=AliasChoices("metrics", "metric")),  # `metric` in recipes of 0.1
    ] = ("bleu",)
    """The metrics that select the best model, one name or a list: the first decides, the others break ties, and perplexity breaks the
    rest. BLEU and chrF are computed by decoding the validation text, and compared with two decimals."""
    beam_size: Annotated[int, Field(ge=1, le=10_000)] = 1
    patience: Size | None = 10
    """Stop after this many validations in a row without a better score; null never stops early."""
    keep_best: Size = 1
    """How many of the best checkpoints to keep. If more than one, their average becomes the model if it validates better."""


class GuidedAlignmentConfig(Section):
    """Add the cross-entropy of the attention against given word links to the loss (Chen et al. 2016; Mi et al. 2016)."""

    links: str
    """The links: a file with one line `i-j i-j ...` per pair of data.train (source-target word from 0; characters in text without
    spaces), `hmm` for those that `nmt links` finds in data.train, or `gold` for those of the sample."""
    weight: Positive = 0.5
    """Weight of the attention's cross-entropy per linked token, relative to that per predicted token."""
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor of the weight after every epoch."""


def _from_folder(value: object) -> object:
    """Accept the folder alone."""
    return {"model": value} if isinstance(value, str) else value


class PretrainedConfig(Section):
    """The model to start from: fine-tuning, or transfer to another language pair (Zoph et al. 2016)."""

    model: str
    """Its folder. Its `model` settings must be the same, but for dropout and whatever else leaves the shapes as they are."""
    subwords: Literal["same", "new"] = "same"
    """`same` uses its subword models. `new` trains others, or uses the files of `subwords`, and takes over the embeddings of the
    tokens that both have (Kocmi and Bojar 2020)."""


class LinearDecayConfig(Section):
    """min(1, max(floor, offset - slope u))."""

    kind: Literal["linear"] = "linear"
    floor: Fraction = 0.25
    """Least probability, at which the decay ends; epsilon in the paper."""
    offset: Positive = 1.0
    """k in the paper. Above 1, the first updates use only the reference."""
    slope: Positive = 1e-4
    """Decrease per update; c in the paper."""


class ExponentialDecayConfig(Section):
    """base^u."""

    kind: Literal["exponential"] = "exponential"
    base: Annotated[float, Field(gt=0, lt=1)] = 0.9999
    """k in the paper."""


class InverseSigmoidDecayConfig(Section):
    """scale / (scale + exp(u / scale)): near 1 at first, 1/2 at update scale x ln(scale)."""

    kind: Literal["inverse-sigmoid"] = "inverse-sigmoid"
    scale: Annotated[float, Field(ge=1)] = 1000.0
    """k in the paper, in updates. Larger values decay more slowly."""


ScheduledSamplingConfig = Annotated[
    LinearDecayConfig | ExponentialDecayConfig | InverseSigmoidDecayConfig, _BY_KIND, _kind("inverse-sigmoid")
]


class TrainingConfig(Section):
    epochs: Size = 30
    updates: Size | None = None
    """Stop after this many updates, even within an epoch."""
    batch_tokens: Size = 4096
    """Target tokens per batch, padding included."""
    batch_sentences: Size | None = None
    """Sentence pairs per batch (80 in Bahdanau et al. 2015, 128 in Luong et al. 2015), instead of `batch_tokens`, which then limits
    the batches of validation alone."""
    sort_within: Size | None = None
    """Sort the pairs by length within every this many batches, in the order of the corpus (20 in Bahdanau et al. 2015, B.2); null
    sorts the whole corpus and shuffles the batches. Needs `batch_sentences`."""
    shuffle: Literal["every-epoch", "once"] = "every-epoch"
    """When to shuffle: before every epoch, or only before training (Bahdanau et al. 2015, B.2)."""
    normalization: Literal["tokens", "sentences"] = "tokens"
    """What the loss of an update is averaged over: target tokens, or sentence pairs, as in both papers. Its gradient is some 15 to 30
    times larger over sentences, which changes what `clip_norm` and the rate of SGD mean."""
    accumulate: Size = 1
    """Batches per update, whose gradients are summed."""
    optimizer: OptimizerConfig = AdamConfig()
    schedule: ScheduleConfig = ConstantScheduleConfig()
    clip_norm: Positive | None = 1.0
    label_smoothing: Fraction = 0.1
    pretrained: Annotated[
        PretrainedConfig | None, BeforeValidator(_from_folder, json_schema_input_type=str | PretrainedConfig | None)
    ] = None
    """Start from the weights of another model, named by its folder; null starts from random ones."""
    guided_alignment: GuidedAlignmentConfig | None = None
    """Train the attention on word links too; null is off."""
    scheduled_sampling: ScheduledSamplingConfig | None = None
    """Teacher forcing ratio as a function of update u: the probability of feeding the reference token rather than one sampled from
    the model (Bengio et al. 2015, 2.4); null always feeds the reference."""
    ema: Fraction | None = None
    """Decay of an exponential moving average of the weights, which is validated and saved instead of them; null is off."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Precision of matrix products; auto is bf16 where that is faster, and fp16 on older GPUs."""
    compile: Literal["auto"] | bool = "auto"
    """Whether PyTorch compiles the steps of the model (`torch.compile`), which takes a minute at the start; auto does so on NVIDIA GPUs
    from Volta on that have Triton. On a CPU the toolkit's own kernels are faster."""
    validation: ValidationConfig = ValidationConfig()
    log_every: Size = 50
    """Updates between lines of the log."""
    tensorboard: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.batch_sentences is None and self.sort_within is not None:
            raise _ContradictionError(
                ("sort_within", "batch_sentences"),
                "sort_within counts batches of a number of sentences: set batch_sentences or leave sort_within out",
            )
        return self


Tokenizer = Literal[
    "13a", "zh", "ja-mecab", "ko-mecab", "char", "intl", "none", "spm", "flores101", "flores200", "spBLEU-1K"
]
"""sacreBLEU's tokenisers, listed here so that reading a recipe does not import it."""


class DecodingConfig(Section):
    """Defaults of `nmt translate` and `nmt evaluate` for this model."""

    beam_size: Annotated[int, Field(ge=1, le=10_000)] = 5
    length_penalty: Penalty = 1.0
    """alpha in ((5 + |y|) / 6)^alpha (Wu et al. 2016, eq. 14); 0 ranks by log-probability."""
    coverage_penalty: Penalty = 0.0
    """beta of the coverage penalty (Wu et al. 2016, eq. 14)."""
    max_ratio: Ratio = 3.0
    """Longest output, as a multiple of the source length in tokens, plus 10."""
    horizon: Size | None = 8
    """Stop the search once no live hypothesis could win by ending within this many tokens, even with probability 1. null searches
    until the result is certain, which takes 1.2 to 1.8 times as long and has changed none of 2,928 translations."""
    prune: Penalty | None = None
    """Drop hypotheses that are this many nats less probable than the best of the same sentence and step (absolute threshold of
    Freitag and Al-Onaizan 2017), which is faster; null drops none."""


class EvaluationConfig(Section):
    """How validation and `nmt evaluate` score translations."""

    tokenize: Tokenizer | None = None
    """sacreBLEU's tokeniser for BLEU. null chooses by data.target as sacreBLEU does: zh for Chinese, ja-mecab for Japanese,
    ko-mecab for Korean (char without MeCab), 13a for all others."""


# --- reported scores --------------------------------------------------------------------------------------------


class ReportedDecoding(Section):
    """How a reported system decoded, where that is known; null is as the recipe decodes."""

    beam_size: Annotated[int, Field(ge=1, le=10_000)] | None = None
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


class Recipe(Section):
    """All settings of a training run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Name of the recipe, and of the default output folder under `runs/`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    data: DataConfig
    subwords: SubwordsConfig = SubwordsConfig()
    model: ModelConfig = RecurrentModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    reported: tuple[ReportedScore, ...] = ()
    """Scores of others on data.test, for `nmt reproduce`. A recipe does not inherit those of its base."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.model.tie == "all" and not self.subwords.joint:
            raise _ContradictionError(
                ("model.tie", "subwords.joint"),
                "model.tie: all shares the embeddings of both languages, which needs subwords.joint: true",
            )
        pretrained = self.training.pretrained
        if pretrained is not None and pretrained.subwords == "same" and self.subwords.source_model is not None:
            raise _ContradictionError(
                ("training.pretrained.subwords", "subwords.source_model"),
                "training.pretrained.subwords: same uses the subwords of the pretrained model, but subwords.source_model names "
                "a file: set training.pretrained.subwords: new or leave the file out",
            )
        self._possible_guidance()
        return self

    def _possible_guidance(self) -> None:
        guided = self.training.guided_alignment
        if guided is not None and not self.model.has_attention:
            raise _ContradictionError(
                ("training.guided_alignment.links", "model.attention.score"),
                "training.guided_alignment has no attention to guide, because model.attention.score is none: "
                "leave it out or choose a score",
            )
        train = self.data.train if isinstance(self.data.train, str) else "a mixture"
        if guided is not None and guided.links == "gold" and not train.startswith("sample:"):
            raise _ContradictionError(
                ("training.guided_alignment.links", "data.train"),
                f"training.guided_alignment.links: gold needs a corpus that has links, sample:train, but data.train is "
                f"{train}: name a file of links",
            )


def recipe_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe file, for editors that complete and check YAML."""
    schema = Recipe.model_json_schema()
    schema["properties"]["base"] = {"type": "string", "description": "A recipe from which this one inherits."}
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["base"]}]
    return schema
