"""The recipe's settings of recurrent models: the encoder-decoders of both papers."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from nmt.recipe.attention import AttentionConfig
from nmt.recipe.section import (
    BY_KIND,
    Fraction,
    Layers,
    Positive,
    Ratio,
    Section,
    Width,
    complete,
    default_kind,
    derived,
    short_form,
)

Cell = Literal["gru", "gru-reset-before", "lstm"]


class EncoderConfig(Section):
    """Recurrent encoder."""

    cell: Cell = "gru"
    """`gru` has r * (U s), as cuDNN does; `gru-reset-before` has U (r * s), as Bahdanau et al. (2015, A.1.1) do, and is slower."""
    hidden: Width = derived(256)
    """Width of one direction; with both directions, annotations are twice as wide. By default 256, or the width that makes
    annotations as wide as `decoder.hidden` if that is set."""
    layers: Layers = 1
    direction: Literal["both", "forward", "reversed"] = "both"
    """Direction of reading: both (Bahdanau et al. 2015), left to right, or right to left, which is the source reversal of
    Sutskever et al. (2014) and Luong et al. (2015). Annotations are always in source order."""
    residual: bool = False
    """Add the input of a layer to its output, from the second layer on (Wu et al. 2016, 3.1)."""
    layer_norm: bool = False
    """Normalize the inputs of the gates (Ba et al. 2016). Slower, because fused kernels do not support it."""

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


OrderConfig = Annotated[AttendThenUpdateConfig | UpdateThenAttendConfig, BY_KIND, default_kind("attend-then-update")]


class MaxoutReadoutConfig(Section):
    """t_i = max over pairs of U_o s + V_o E y_{i-1} + C_o c_i (Bahdanau et al. 2015, A.2.2)."""

    kind: Literal["maxout"] = "maxout"
    size: Width = derived(256)
    """Width after the maximum, l in the paper. By default `embedding`."""


class TanhReadoutConfig(Section):
    """tanh(U_o s + V_o E y_{i-1} + C_o c_i) (Pascanu et al. 2014)."""

    kind: Literal["tanh"] = "tanh"
    size: Width = derived(256)
    """By default `embedding`."""


class AttentionalReadoutConfig(Section):
    """h~_t = tanh(W_c [c_t; h_t]) (Luong et al. 2015, eq. 5)."""

    kind: Literal["attentional"] = "attentional"
    size: Width = derived(256)
    """By default `embedding`."""


class StateReadoutConfig(Section):
    """h_t itself: the output layer reads the decoder state alone (Luong et al. 2015, base system; Sutskever et al. 2014)."""

    kind: Literal["state"] = "state"
    size: Width = derived(512)
    """`decoder.hidden`."""


ReadoutConfig = Annotated[
    MaxoutReadoutConfig | TanhReadoutConfig | AttentionalReadoutConfig | StateReadoutConfig,
    BY_KIND,
    default_kind("maxout"),
]


class DecoderConfig(Section):
    cell: Cell = "gru"
    """As in the encoder."""
    hidden: Width = derived(512)
    """By default the width of an annotation."""
    layers: Layers = 1
    order: OrderConfig = AttendThenUpdateConfig()
    readout: ReadoutConfig = MaxoutReadoutConfig()
    bridge: Literal["backward", "final", "mean", "copy", "zero"] = derived("backward")
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
    BY_KIND,
    default_kind("default"),
]


class RecurrentModelConfig(Section):
    """The models of both papers. Widths that are not set follow from those that are, so a recipe may set just one of them."""

    kind: Literal["recurrent"] = "recurrent"
    embedding: Width = derived(256)
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
    dropout: Annotated[DropoutConfig, short_form(int | float, "embedding", "annotations", "readout")] = DropoutConfig()
    lexical: bool = False
    """Let the output layer see the attended source tokens themselves: annotations hold g E x_j too, and W_l tanh(sum_j alpha_ij g E x_j) is
    added to the readout (after Nguyen and Chiang 2018). With little text, models learn faster and copy more names; with
    `tie: all` a token points at itself."""
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
        decoder = decoder.model_copy(update={"readout": complete(readout, size=size)})
        self.__dict__.update(embedding=embedding, encoder=encoder, decoder=decoder)
        return self

    def _stacks(self) -> tuple[EncoderConfig, DecoderConfig]:
        """Encoder and decoder, with the settings that one determines for the other."""
        encoder, decoder = self.encoder, self.decoder
        decoder = complete(decoder, bridge="final" if encoder.direction == "forward" else "backward")
        if decoder.bridge == "copy":
            encoder = complete(encoder, cell=decoder.cell, layers=decoder.layers)
            decoder = complete(decoder, cell=encoder.cell, layers=encoder.layers)
        if "hidden" in decoder.model_fields_set:
            encoder = complete(encoder, hidden=-(-decoder.hidden // encoder.directions))
        return encoder, complete(decoder, hidden=encoder.annotation)

    @model_validator(mode="after")
    def _possible_attention(self) -> Self:
        attention = self.attention
        for side, width in {"annotations": self.encoder.annotation, "decoder.hidden": self.decoder.hidden}.items():
            if width % attention.heads:
                raise ValueError(
                    f"attention.heads must divide the width of {side}, but they are {attention.heads} and {width}: change one"
                )
        if self.lexical and attention.score.kind in ("none", "dot"):
            raise ValueError(
                f"lexical attends to tokens beside states, which attention.score {attention.score.kind} cannot: "
                "use another score or leave lexical out"
            )
        if self.lexical and attention.heads > 1:
            raise ValueError(
                f"lexical reads the weights of one attention, but attention.heads is {attention.heads}: leave one out"
            )
        return self

    @model_validator(mode="after")
    def _possible_stacks(self) -> Self:
        encoder, decoder = self.encoder, self.decoder
        annotation = "2 x encoder.hidden" if encoder.directions == 2 else "encoder.hidden"
        for key in ("cell", "layers"):
            ours, theirs = getattr(decoder, key), getattr(encoder, key)
            if decoder.bridge == "copy" and ours != theirs:
                raise ValueError(
                    f"decoder.bridge copy needs decoder.{key} = encoder.{key}, but they are {ours} and {theirs}: "
                    "make them equal or use another bridge"
                )
        for key, value in (("attention.score", self.attention.score.kind), ("decoder.bridge", decoder.bridge)):
            if value in ("dot", "copy") and decoder.hidden != encoder.annotation:
                raise ValueError(
                    f"{key} {value} needs decoder.hidden = {annotation}, but they are {decoder.hidden} and "
                    f"{encoder.annotation}: change one or use another {key}"
                )
        if decoder.bridge == "backward" and encoder.direction == "forward":
            raise ValueError(
                "decoder.bridge backward needs an encoder that reads backwards: "
                "use bridge: final, or encoder.direction both"
            )
        if decoder.readout.kind == "state" and decoder.readout.size != decoder.hidden:
            raise ValueError(
                "decoder.readout state is the decoder state, so its size is decoder.hidden, but they are "
                f"{decoder.readout.size} and {decoder.hidden}: leave decoder.readout.size out"
            )
        if self.tie != "none" and decoder.readout.size != self.embedding:
            raise ValueError(
                f"embedding and decoder.readout.size are {self.embedding} and {decoder.readout.size}, so the output "
                "layer cannot share its weights with the embeddings: make them equal or set tie: none"
            )
        return self

    @property
    def has_attention(self) -> bool:
        """Whether there are weights to show."""
        return self.attention.score.kind != "none"

    @property
    def attention_in_words(self) -> dict[str, str]:
        """Score with normalizer, window and order of the attention, as tables show them."""
        score, window, order = self.attention.score, self.attention.window, self.decoder.order
        heads = f"{self.attention.heads} heads" if self.attention.heads > 1 else ""
        normalizer = self.attention.normalizer if self.attention.normalizer != "softmax" else ""
        settings = [name for name in ("conditional", "input_feeding") if getattr(order, name, False)]
        words: dict[str, list[str]] = {
            "score": [score.kind, "coverage" if self.attention.coverage else "", heads, normalizer],
            "window": [window.kind if self.has_attention else "none"],
            "order": [order.kind, *(name.replace("_", " ") for name in settings)],
        }
        if window.kind != "global":
            words["window"].append(f"D = {window.half_width}")
        return {key: ", ".join(filter(None, texts)) for key, texts in words.items()}

    @property
    def annotation(self) -> int:
        """Width of an annotation, with the embedded token if it is lexical."""
        return self.encoder.annotation + (self.embedding if self.lexical else 0)
