"""One vector of the words of a text, or of its sentences: a bidirectional GRU, and attention with a learned query.

    h_1 ... h_S = Encoder(words)                                       or the words themselves
    alpha_j = softmax_j(score(q, h_j)),  c = sum_j alpha_j h_j         the query q is learned

A document can be read twice: the words of each sentence, then the sentences (Yang et al. 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from nmt.model import AdditiveScore, DotScore, Encoder, EncoderOutput, Score, masked_softmax
from nmt.recipe import DropoutConfig, EncoderConfig

SIZE = 32
"""Of the state of each direction."""
ATTENTIONS = ("additive", "scaled-dot", "4-heads", "mean", "last")
"""Ways to make one vector of the annotations. The last two are without attention: their mean, and the encoder's last state."""


class ScaledDotScore(DotScore):
    """q^T h_j / sqrt(d)   (Vaswani et al. 2017, eq. 1)."""

    def forward(self, queries: Tensor, keys: Tensor) -> Float[Tensor, "B K S"]:
        return super().forward(queries, keys) / math.sqrt(keys.shape[-1])


class LearnedQueries(nn.Module):
    """Attention with any score of nmt and K learned queries, one per head; the contexts of the heads stand side by side.

    With `AdditiveScore` it is the word attention of Yang et al. (2016, eq. 5 to 7): W q, which is learned, is their bias, and
    v their context vector u_w. Heads need no projections of their own, since q^T (U h) = (U^T q)^T h, and U^T q is learned too.
    Queries start at random with standard deviation `spread`: small for `AdditiveScore`, where W q is a bias.
    """

    def __init__(self, score: Score, width: int, *, heads: int = 1, spread: float = 1.0) -> None:
        super().__init__()
        self.score, self.queries = score, nn.Parameter(spread * torch.randn(heads, width))

    def forward(self, encoded: EncoderOutput) -> tuple[Float[Tensor, "B KA"], Float[Tensor, "B K S"]]:
        scores = self.score(self.queries.expand(len(encoded.mask), -1, -1), self.score.keys(encoded.annotations))
        weights = masked_softmax(scores, encoded.mask.unsqueeze(1))
        return (weights @ encoded.annotations).flatten(1), weights


def read_mean(encoded: EncoderOutput) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B 1 S"]]:
    """c is the mean of all annotations: the weight of every word is 1 / S."""
    weights = (encoded.mask / encoded.mask.sum(1, keepdim=True)).unsqueeze(1)
    return (weights @ encoded.annotations).squeeze(1), weights


def read_last(encoded: EncoderOutput) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B 1 S"]]:
    """c is the state of each direction after it has read all words: no word has a weight."""
    return encoded.final[:, -1], torch.zeros_like(encoded.mask.unsqueeze(1), dtype=torch.float)


def build_reading(attention: str, width: int) -> tuple[Callable[[EncoderOutput], tuple[Tensor, Tensor]], int]:
    """What makes a context of annotations, and how many times as wide as they are the context is."""
    match attention:
        case "additive":
            return LearnedQueries(AdditiveScore(width, width, width), width, spread=width**-0.5), 1
        case "scaled-dot":
            return LearnedQueries(ScaledDotScore(), width), 1
        case "4-heads":
            return LearnedQueries(ScaledDotScore(), width, heads=4), 4
        case "mean":
            return read_mean, 1
        case _:
            return read_last, 1


class Reader(nn.Module):
    """A bidirectional GRU, if `encoder` is "gru", and what makes a context of its annotations; else of the vectors themselves."""

    def __init__(self, inputs: int, *, attention: str, encoder: str) -> None:
        super().__init__()
        config, none = EncoderConfig(hidden=SIZE), DropoutConfig(annotations=0)
        self.encoder = Encoder(config, embedding=inputs, dropout=none) if encoder == "gru" else None
        width = inputs if self.encoder is None else config.annotation
        self.read, heads = build_reading(attention, width)
        self.width = heads * width

    def forward(
        self, vectors: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B KA"], Float[Tensor, "B K S"]]:
        """The context, and the weights of each head. Without an encoder there is no last state."""
        if self.encoder is not None:
            context, weights = self.read(self.encoder(vectors, mask))
        else:
            context, weights = self.read(EncoderOutput(vectors, mask, final=vectors[:, :0], cell=None))
        return context, weights


class HierarchicalReader(nn.Module):
    """Reads the words of each sentence, then the sentences (Yang et al. 2016, 2.2)."""

    def __init__(self, inputs: int, *, attention: str, encoder: str) -> None:
        super().__init__()
        self.words = Reader(inputs, attention=attention, encoder=encoder)
        self.sentences = Reader(self.words.width, attention=attention, encoder=encoder)
        self.width = self.sentences.width

    def forward(
        self, vectors: Float[Tensor, "B T S E"], mask: Bool[Tensor, "B T S"]
    ) -> tuple[Float[Tensor, "B KA"], Float[Tensor, "B K T S"]]:
        """The context, and the weights of the words: that of the sentence, shared out among its words."""
        present = mask.any(-1)
        read, within = self.words(vectors[present], mask[present])
        context, of_sentences = self.sentences(place(read, present), present)
        return context, of_sentences.unsqueeze(-1) * place(within.mean(1), present).unsqueeze(1)


def place(values: Float[Tensor, "N D"], present: Bool[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
    """Each value where a sentence is, and 0 where there is none."""
    placed = values.new_zeros(*present.shape, values.shape[1])
    placed[present] = values
    return placed
