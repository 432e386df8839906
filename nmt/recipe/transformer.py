"""The recipe's settings of the Transformer."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from nmt.recipe.section import WIDEST, Fraction, Heads, Layers, Section, Width, derived, short_form


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


class TransformerModelConfig(Section):
    """The Transformer (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    embedding: Width = 512
    """Width of embeddings and of all states, d_model in the paper; `heads` must divide it."""
    tie: Literal["none", "target", "all"] = "target"
    """As in recurrent models."""
    embedding_scale: Annotated[float, Field(gt=0, le=1000)] = derived(1)
    """Factor of the embeddings. By default the square root of `embedding` (3.4 in the paper)."""
    heads: Heads = 8
    feed_forward: Width = derived(2048)
    """Width of the feed-forward networks, d_ff in the paper. By default 4 x `embedding`."""
    norm: Literal["pre", "post"] = "post"
    """LayerNorm after each sublayer's sum (`post`, 3.1 in the paper) or on its input (`pre`), which trains without warm-up."""
    encoder: TransformerStackConfig = TransformerStackConfig()
    decoder: TransformerStackConfig = TransformerStackConfig()
    dropout: Annotated[TransformerDropoutConfig, short_form(int | float, "embedding", "residual")] = (
        TransformerDropoutConfig()
    )
    alignment_layer: Annotated[int, Field(ge=1)] = derived(1)
    """Decoder layer whose attention is shown and guided, from 1. By default the last but one (Garg et al. 2019)."""
    alignment_head: Annotated[int, Field(ge=1)] | None = None
    """Its head, from 1; null is the mean of all heads."""

    @model_validator(mode="after")
    def _follow(self) -> Self:
        values = {
            "embedding_scale": math.sqrt(self.embedding),
            "feed_forward": min(4 * self.embedding, WIDEST),
            "alignment_layer": max(self.decoder.layers - 1, 1),
        }
        self.__dict__.update({key: value for key, value in values.items() if key not in self.model_fields_set})
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.embedding % self.heads:
            raise ValueError(f"heads must divide embedding, but they are {self.heads} and {self.embedding}: change one")
        most = {"alignment_layer": self.decoder.layers, "alignment_head": self.heads}
        for key, limit in most.items():
            if (getattr(self, key) or 1) > limit:
                raise ValueError(f"{key} is {getattr(self, key)}, but there are only {limit}")
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

    @property
    def attention_in_words(self) -> dict[str, str]:
        """Score, window and order of the attention, as tables show them."""
        return {"score": f"scaled dot, {self.heads} heads", "window": "global", "order": "transformer"}
