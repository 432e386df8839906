"""Embedded tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

from jaxtyping import Float, Int
from torch import Tensor, nn


class TokenEmbedding(nn.Embedding):
    """g E y: a row of the embedding table times a constant g, which is `embedding_scale`.

    Rows initially have length 1, because a tied output layer needs that. With g = sqrt(E) the components of an embedded token are as
    large as those of a state (Vaswani et al. 2017, 3.4). With g = 1 they are sqrt(E) times smaller, and Adam takes long to scale them
    up (recipes/NOTES.md).
    """

    def __init__(self, size: int, width: int, scale: float) -> None:
        super().__init__(size, width)
        self.scale = scale

    def forward(self, ids: Int[Tensor, "*ids"]) -> Float[Tensor, "*ids E"]:
        return super().forward(ids) * self.scale

    if TYPE_CHECKING:
        __call__ = forward


def initialize_ends_(
    source: TokenEmbedding, target: TokenEmbedding, output: nn.Linear, tie: Literal["none", "target", "all"]
) -> None:
    """Initialize the embeddings and the output layer of a model so that rows have length 1, and share what `tie` says.

    With `all` the source embedding is the target's already.
    """
    for embedding in (source, target):
        nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
    nn.init.zeros_(output.bias)
    match tie:
        case "none":
            nn.init.normal_(output.weight, std=output.in_features**-0.5)
        case "target" | "all":
            output.weight = target.weight
        case _:
            assert_never(tie)
