"""The Transformer (Vaswani et al. 2017): an encoder and a decoder that attend instead of recurring.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d)) V                            (eq. 1)
    MultiHead(Q, K, V) = [head_1; ...; head_K] W_O,  head_k = Attention(Q W_k^Q, K W_k^K, V W_k^V)      (3.2.2)
    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                     (eq. 2)
    PE(p, 2i) = sin(p / 10000^(2i/E));  PE(p, 2i+1) = cos(p / 10000^(2i/E))    (3.5)

Encoder and decoder stand behind the same interfaces as the recurrent ones, so a recipe may combine one of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn

from nmt import recipe
from nmt.model.attention import masked_softmax
from nmt.model.decoder import Decoded
from nmt.model.encoder import EncoderOutput
from nmt.model.precision import at_least_fp32


@dataclass(frozen=True)
class CrossMemory:
    """Keys and values of the annotations for each layer and head, one row per sentence."""

    keys: Float[Tensor, "B L K S d"]
    values: Float[Tensor, "B L K S d"]
    mask: Bool[Tensor, "B S"]

    def select(self, rows: Int[Tensor, " M"]) -> CrossMemory:
        """The memory of the given sentences, in their order."""
        return CrossMemory(self.keys[rows], self.values[rows], self.mask[rows])


@dataclass(frozen=True)
class CachedState:
    """Keys and values of the P target tokens read so far, for each layer and head: no step computes them again."""

    keys: Float[Tensor, "N L K P d"]
    values: Float[Tensor, "N L K P d"]

    @property
    def position(self) -> int:
        """P, the number of the next step, from 0."""
        return self.keys.shape[3]

    def select(self, rows: Int[Tensor, " N"]) -> CachedState:
        """The state of the given rows, in their order."""
        return CachedState(self.keys.index_select(0, rows), self.values.index_select(0, rows))


class ScaledDotAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, 3.2); queries are `width` wide, what they read is `source` wide."""

    def __init__(self, width: int, *, heads: int, source: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = nn.Linear(source, width), nn.Linear(source, width)
        for linear in (self.query, self.key, self.value, self.output):
            initialise_(linear)

    def keys_and_values(
        self, source: Num[Tensor, "N S A"]
    ) -> tuple[Float[Tensor, "N K S d"], Float[Tensor, "N K S d"]]:
        """K W^K and V W^V of each head."""
        return self.by_head(self.key(source)), self.by_head(self.value(source))

    def forward(
        self,
        queries: Num[Tensor, "N T D"],
        keys: Float[Tensor, "N K S d"],
        values: Float[Tensor, "N K S d"],
        allowed: Bool[Tensor, "*N T S"],
    ) -> tuple[Float[Tensor, "N T D"], Float[Tensor, "N K T S"]]:
        """The contexts, and the weights of each head."""
        heads = self.by_head(self.query(queries))
        scores = heads @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])  # eq. 1
        weights = masked_softmax(at_least_fp32(scores), allowed.unsqueeze(-3))
        contexts = weights.to(values.dtype) @ values
        output: Tensor = self.output(contexts.transpose(1, 2).flatten(2))
        return output, weights

    def by_head(self, values: Float[Tensor, "N T D"]) -> Float[Tensor, "N K T d"]:
        return values.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    if TYPE_CHECKING:
        __call__ = forward


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2   (Vaswani et al. 2017, eq. 2)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(width, hidden), nn.Linear(hidden, width)
        for linear in (self.inner, self.outer):
            initialise_(linear)

    def forward(self, values: Num[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        output: Tensor = self.outer(torch.relu(self.inner(values)))
        return output

    if TYPE_CHECKING:
        __call__ = forward


class Residual(nn.Module):
    """The normalisation and dropout around a sublayer f.

    post: LayerNorm(x + dropout(f(x)))     (Vaswani et al. 2017, 3.1)
    pre:  x + dropout(f(LayerNorm(x)))     (Wang et al. 2019); a last LayerNorm follows the stack
    """

    def __init__(self, width: int, *, norm: Literal["pre", "post"], dropout: float) -> None:
        super().__init__()
        self.norm, self.is_pre, self.dropout = nn.LayerNorm(width), norm == "pre", nn.Dropout(dropout)

    def before(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """What the sublayer reads."""
        normed: Tensor = self.norm(values) if self.is_pre else values
        return normed

    def after(self, values: Float[Tensor, "... D"], output: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """The values with what the sublayer made of them."""
        total: Tensor = values + self.dropout(output)
        return total if self.is_pre else self.norm(total)


class TransformerEncoderLayer(nn.Module):
    """Self-attention and feed-forward network."""

    def __init__(self, config: recipe.TransformerEncoderConfig, dropout: float) -> None:
        super().__init__()
        self.attention = ScaledDotAttention(config.hidden, heads=config.heads, source=config.hidden)
        self.feed_forward = FeedForward(config.hidden, config.feed_forward)
        self.residuals = nn.ModuleList(Residual(config.hidden, norm=config.norm, dropout=dropout) for _ in range(2))

    def forward(self, values: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        attending, feeding = self.residuals
        normed = attending.before(values)
        contexts, _ = self.attention(normed, *self.attention.keys_and_values(normed), mask.unsqueeze(1))
        values = attending.after(values, contexts)
        values = feeding.after(values, self.feed_forward(feeding.before(values)))
        return values

    if TYPE_CHECKING:
        __call__ = forward


class TransformerEncoder(nn.Module):
    """Embedded tokens with their positions -> annotations h_j."""

    def __init__(self, config: recipe.TransformerEncoderConfig, dropout: recipe.DropoutConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TransformerEncoderLayer(config, dropout.layers) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden) if config.norm == "pre" else nn.Identity()
        self.dropout = nn.Dropout(dropout.annotations)

    def forward(self, embedded: Num[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> EncoderOutput:
        values = embedded + positional_encoding(0, embedded)
        for layer in self.layers:
            values = layer(values, mask)
        annotations = self.dropout(self.norm(values) * mask.unsqueeze(-1))
        mean = annotations.sum(1, keepdim=True) / mask.sum(1).view(-1, 1, 1)
        return EncoderOutput(annotations, mask, mean, None)

    if TYPE_CHECKING:
        __call__ = forward


class TransformerDecoderLayer(nn.Module):
    """Masked self-attention, attention to the annotations, and feed-forward network."""

    def __init__(self, config: recipe.TransformerDecoderConfig, *, annotation: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = ScaledDotAttention(config.hidden, heads=config.heads, source=config.hidden)
        self.attention = ScaledDotAttention(config.hidden, heads=config.heads, source=annotation)
        self.feed_forward = FeedForward(config.hidden, config.feed_forward)
        self.residuals = nn.ModuleList(Residual(config.hidden, norm=config.norm, dropout=dropout) for _ in range(3))

    def forward(
        self,
        values: Float[Tensor, "N T D"],
        past: tuple[Float[Tensor, "N K P d"], Float[Tensor, "N K P d"]],
        annotations: tuple[Float[Tensor, "N K S d"], Float[Tensor, "N K S d"]],
        mask: Bool[Tensor, "N S"],
    ) -> tuple[Float[Tensor, "N T D"], Float[Tensor, "N K Q d"], Float[Tensor, "N K Q d"], Float[Tensor, "N K T S"]]:
        """The output of T steps, the keys and values of all Q = P + T tokens so far, and the weights of the annotations."""
        recalling, attending, feeding = self.residuals
        normed = recalling.before(values)
        new = self.self_attention.keys_and_values(normed)
        keys, past_values = (torch.cat(parts, 2) for parts in zip(past, new, strict=True))
        contexts, _ = self.self_attention(normed, keys, past_values, no_future(values.shape[1], keys))
        values = recalling.after(values, contexts)
        contexts, weights = self.attention(attending.before(values), *annotations, mask.unsqueeze(1))
        values = attending.after(values, contexts)
        values = feeding.after(values, self.feed_forward(feeding.before(values)))
        return values, keys, past_values, weights

    if TYPE_CHECKING:
        __call__ = forward


class TransformerDecoder(nn.Module):
    """Embedded target tokens -> readouts. The alignment is the mean over the heads of one layer, or one of its heads."""

    def __init__(
        self, config: recipe.TransformerDecoderConfig, *, annotation: int, dropout: recipe.DropoutConfig
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerDecoderLayer(config, annotation=annotation, dropout=dropout.layers) for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.hidden) if config.norm == "pre" else nn.Identity()
        self.alignment_layer, self.alignment_head = config.alignment_layer, config.alignment_head

    def remember(self, encoded: EncoderOutput) -> CrossMemory:
        """Keys and values of the annotations, once per sentence."""
        each = [layer.attention.keys_and_values(encoded.annotations) for layer in self.layers]
        keys, values = (torch.stack(parts, 1) for parts in zip(*each, strict=True))
        return CrossMemory(keys, values, encoded.mask)

    def start(self, state: CachedState, memory: CrossMemory) -> CachedState:
        """The state before the first step: nothing is cached."""
        return state

    def forward(self, embedded: Num[Tensor, "N T E"], state: CachedState, memory: CrossMemory) -> Decoded[CachedState]:
        """T steps whose tokens are known, after those that the state has read."""
        values = embedded + positional_encoding(state.position, embedded)
        keys, cached, weights = [], [], []
        for depth, layer in enumerate(self.layers):
            past = state.keys[:, depth], state.values[:, depth]
            annotations = memory.keys[:, depth], memory.values[:, depth]
            values, layer_keys, layer_values, layer_weights = layer(values, past, annotations, memory.mask)
            keys.append(layer_keys)
            cached.append(layer_values)
            weights.append(layer_weights)
        state = CachedState(torch.stack(keys, 1), torch.stack(cached, 1))
        return Decoded(self.norm(values), self.alignment(weights), state)

    def alignment(self, weights: list[Float[Tensor, "N K T S"]]) -> Float[Tensor, "N T S"]:
        """The weights to show, of those of every layer."""
        heads = weights[self.alignment_layer]
        return heads.mean(1) if self.alignment_head is None else heads[:, self.alignment_head]

    def position_readouts(
        self, embedded: Num[Tensor, "B E"], state: CachedState, memory: CrossMemory
    ) -> Float[Tensor, "B S R"]:
        """The readouts of one step if every layer attended to each source position alone.

        Each position is a sentence of its own, of length 1, whose softmax is 1.
        """
        batch, length = memory.mask.shape
        rows = torch.arange(batch, device=embedded.device).repeat_interleave(length)
        keys, values = (part.movedim(3, 1).flatten(0, 1).unsqueeze(3) for part in (memory.keys, memory.values))
        alone = CrossMemory(keys, values, torch.ones_like(memory.mask).view(-1, 1))
        decoded = self(embedded[rows].unsqueeze(1), state.select(rows), alone)
        return decoded.readouts.view(batch, length, -1)

    if TYPE_CHECKING:
        __call__ = forward


class EmptyCache(nn.Module):
    """The bridge of a Transformer decoder: no token has been read."""

    def __init__(self, config: recipe.TransformerDecoderConfig) -> None:
        super().__init__()
        self.shape = (config.layers, config.heads, 0, config.hidden // config.heads)

    def forward(self, encoded: EncoderOutput) -> CachedState:
        empty = encoded.annotations.new_zeros(len(encoded.mask), *self.shape)
        return CachedState(empty, empty)

    if TYPE_CHECKING:
        __call__ = forward


def positional_encoding(first: int, embedded: Num[Tensor, "B T E"]) -> Float[Tensor, "T E"]:
    """Sines and cosines of the positions from `first` on   (Vaswani et al. 2017, 3.5)."""
    length, width = embedded.shape[1:]
    positions = torch.arange(first, first + length, device=embedded.device, dtype=torch.float64).unsqueeze(1)
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, device=embedded.device, dtype=torch.float64) / width)
    angles = positions * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width].to(embedded.dtype)


def no_future(steps: int, keys: Float[Tensor, "N K Q d"]) -> Bool[Tensor, "1 T Q"]:
    """Each of the last T tokens may read itself and what is before it."""
    total = keys.shape[2]
    positions = torch.arange(total, device=keys.device)
    return (positions <= positions[total - steps :].unsqueeze(1)).unsqueeze(0)


def initialise_(linear: nn.Linear) -> None:
    """Glorot and Bengio 2010; biases 0."""
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
