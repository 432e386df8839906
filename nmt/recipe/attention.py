"""The recipe's settings of attention: the score, and the window it looks through."""

from typing import Annotated, Literal, Self

from pydantic import model_validator

from nmt.recipe.section import BY_KIND, Heads, Ratio, Section, Width, default_kind


class AdditiveScoreConfig(Section):
    """v_a^T tanh(W_a s + U_a h_j) (Bahdanau et al. 2015, A.1.2)."""

    kind: Literal["additive"] = "additive"
    size: Width = 256
    """Width of the hidden layer, n' in the paper; the heads share it."""


class DotScoreConfig(Section):
    """h_t^T h_s (Luong et al. 2015, 3.1). Annotations must be as wide as the decoder state."""

    kind: Literal["dot"] = "dot"


class GeneralScoreConfig(Section):
    """h_t^T W_a h_s (Luong et al. 2015, 3.1)."""

    kind: Literal["general"] = "general"


class ConcatScoreConfig(Section):
    """v_a^T tanh(W_a [h_t; h_s]) (Luong et al. 2015, 3.1)."""

    kind: Literal["concat"] = "concat"
    size: Width = 256
    """As in the additive score; rows of W_a."""


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
    BY_KIND,
    default_kind("additive"),
]


class GlobalWindowConfig(Section):
    """Attend to all source positions (Luong et al. 2015, 3.1)."""

    kind: Literal["global"] = "global"


class LocalMonotonicWindowConfig(Section):
    """Attend to positions within D of the center p_t = t (Luong et al. 2015, 3.2)."""

    kind: Literal["local-m"] = "local-m"
    half_width: Width = 10
    """D, in tokens."""
    ratio: Ratio = 1.0
    """Source tokens per target token, for languages of different length: p_t = ratio t, rounded."""


class LocalPredictiveWindowConfig(Section):
    """Attend to positions within D of a predicted center p_t, weighted by a Gaussian (Luong et al. 2015, eq. 9 and 10)."""

    kind: Literal["local-p"] = "local-p"
    half_width: Width = 10
    """D, in tokens."""


WindowConfig = Annotated[
    GlobalWindowConfig | LocalMonotonicWindowConfig | LocalPredictiveWindowConfig, BY_KIND, default_kind("global")
]

NormalizerKind = Literal["softmax", "sparsemax", "entmax15"]


class AttentionConfig(Section):
    score: ScoreConfig = AdditiveScoreConfig()
    window: WindowConfig = GlobalWindowConfig()
    normalizer: NormalizerKind = "softmax"
    """What makes weights of scores; sparsemax (Martins and Astudillo 2016) and entmax15 (Peters et al. 2019) give most words exactly 0."""
    heads: Heads = 1
    """Number of attention heads; each uses its own part of the projected state and annotations (Vaswani et al. 2017, 3.2.2)."""
    coverage: bool = False
    """Add the attention that each source position has had so far to its score, with a weight that the state chooses, so that the decoder
    repeats and leaves out less (after Tu et al. 2016)."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for key, value, usual in (("window", self.window.kind, "global"), ("normalizer", self.normalizer, "softmax")):
            if self.score.kind == "none" and value != usual:
                raise ValueError(
                    f"{key} {value} has nothing to act on, because score is none: set {key}: {usual} or choose a score"
                )
        if self.score.kind == "none" and self.heads > 1:
            raise ValueError(
                f"heads {self.heads} have nothing to attend with, because score is none: set heads: 1 or choose a score"
            )
        if self.score.kind == "none" and self.coverage:
            raise ValueError(
                "coverage has no score to be added to, because score is none: set coverage: false or choose a score"
            )
        if self.score.kind in ("additive", "concat") and self.score.size % self.heads:
            raise ValueError(
                f"heads must divide score.size, but they are {self.heads} and {self.score.size}: change one"
            )
        return self
