"""The Transformer (Vaswani et al. 2017): an encoder and a decoder that attend instead of recurring.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d)) V                            (eq. 1)
    MultiHead(Q, K, V) = [head_1; ...; head_K] W_O,  head_k = Attention(Q W_k^Q, K W_k^K, V W_k^V)      (3.2.2)
    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                     (eq. 2)
    PE(p, 2i) = sin(p / 10000^(2i/E));  PE(p, 2i+1) = cos(p / 10000^(2i/E))    (3.5)

The alignment is that of one decoder layer: the mean of its heads, or one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn

from nmt import recipe
from nmt.model.dropout import Dropout, WordDropout
from nmt.model.embedding import TokenEmbedding, initialize_ends_
from nmt.model.interface import ModelOutput, SentencePairs, Step, TranslationModel
from nmt.model.normalizers import masked_softmax
from nmt.model.output import OutputLayer
from nmt.model.precision import at_least_fp32

KeysAndValues = tuple[Float[Tensor, "N K _ d"], Float[Tensor, "N K _ d"]]
"""K W^K and V W^V of each head of a layer."""


@dataclass(frozen=True)
class LayerMemory:
    """What a decoder layer reads: keys and values of the annotations for each head, one row per sentence."""

    keys: Float[Tensor, "B K S d"]
    values: Float[Tensor, "B K S d"]
    mask: Bool[Tensor, "B S"]

    def select(self, rows: Int[Tensor, " M"]) -> LayerMemory:
        """The memory of the given sentences, in their order."""
        return LayerMemory(self.keys[rows], self.values[rows], self.mask[rows])


@dataclass(frozen=True)
class TransformerMemory:
    """What each decoder layer reads of the sentences."""

    layers: tuple[LayerMemory, ...]

    def select(self, rows: Int[Tensor, " M"]) -> TransformerMemory:
        """The memory of the given sentences, in their order."""
        return TransformerMemory(tuple(layer.select(rows) for layer in self.layers))


@dataclass(frozen=True)
class TransformerState:
    """Keys and values of the P target tokens read so far, for each layer: no step computes them again."""

    layers: tuple[KeysAndValues, ...]

    @property
    def position(self) -> int:
        """P, the number of the next step, from 0."""
        return self.layers[0][0].shape[2]

    def select(self, rows: Int[Tensor, " N"]) -> TransformerState:
        """The state of the given rows, in their order."""
        return TransformerState(
            tuple((keys.index_select(0, rows), values.index_select(0, rows)) for keys, values in self.layers)
        )


class ScaledDotAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, width: int, *, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)
        for linear in (self.query, self.key, self.value, self.output):
            initialize_(linear)

    def keys_and_values(self, source: Num[Tensor, "N S E"]) -> KeysAndValues:
        """K W^K and V W^V of each head."""
        return self.by_head(self.key(source)), self.by_head(self.value(source))

    def forward(
        self,
        queries: Num[Tensor, "N T E"],
        keys: Float[Tensor, "N K S d"],
        values: Float[Tensor, "N K S d"],
        allowed: Bool[Tensor, "#N #T S"],
    ) -> tuple[Float[Tensor, "N T E"], Float[Tensor, "N K T S"]]:
        """The contexts, and the weights of each head."""
        heads = self.by_head(self.query(queries))
        scores = heads @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])  # eq. 1
        weights = masked_softmax(at_least_fp32(scores), allowed.unsqueeze(-3))
        contexts = weights.to(values.dtype) @ values
        output: Tensor = self.output(contexts.transpose(1, 2).flatten(2))
        return output, weights

    def by_head(self, values: Float[Tensor, "N T E"]) -> Float[Tensor, "N K T d"]:
        """Each head's share of the width, in memory one after the other: each step of a search reads them."""
        return torch.unflatten(values, -1, (self.heads, -1)).transpose(1, 2).contiguous()

    if TYPE_CHECKING:
        __call__ = forward


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2   (Vaswani et al. 2017, eq. 2)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(width, hidden), nn.Linear(hidden, width)
        for linear in (self.inner, self.outer):
            initialize_(linear)

    def forward(self, values: Num[Tensor, "... E"]) -> Float[Tensor, "... E"]:
        output: Tensor = self.outer(torch.relu(self.inner(values)))
        return output

    if TYPE_CHECKING:
        __call__ = forward


class Residual(nn.Module):
    """The normalization and dropout around a sublayer f.

    post: LayerNorm(x + dropout(f(x)))     (Vaswani et al. 2017, 3.1)
    pre:  x + dropout(f(LayerNorm(x)))     (Wang et al. 2019); a last LayerNorm follows the stack
    """

    def __init__(self, config: recipe.TransformerModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.embedding)
        self.dropout = Dropout(config.dropout.residual, variational=False)
        self.is_pre = config.norm == "pre"

    def before(self, values: Float[Tensor, "... E"]) -> Float[Tensor, "... E"]:
        """What the sublayer reads."""
        normed: Tensor = self.norm(values) if self.is_pre else values
        return normed

    def after(self, values: Float[Tensor, "... E"], output: Float[Tensor, "... E"]) -> Float[Tensor, "... E"]:
        """The values with what the sublayer made of them."""
        total: Tensor = values + self.dropout(output)
        return total if self.is_pre else self.norm(total)


class TransformerEncoderLayer(nn.Module):
    """Self-attention and feed-forward network."""

    def __init__(self, config: recipe.TransformerModelConfig) -> None:
        super().__init__()
        self.attention = ScaledDotAttention(config.embedding, heads=config.heads)
        self.feed_forward = FeedForward(config.embedding, config.feed_forward)
        self.around_attention, self.around_feed_forward = Residual(config), Residual(config)

    def forward(
        self, values: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B S E"], Float[Tensor, "B K S S"]]:
        """The output, and the weights of each head: row i is what position i reads."""
        normed = self.around_attention.before(values)
        contexts, weights = self.attention(normed, *self.attention.keys_and_values(normed), mask.unsqueeze(1))
        values = self.around_attention.after(values, contexts)
        output = self.feed_forward(self.around_feed_forward.before(values))
        return self.around_feed_forward.after(values, output), weights

    if TYPE_CHECKING:
        __call__ = forward


class TransformerDecoderLayer(nn.Module):
    """Masked self-attention, attention to the annotations, and feed-forward network."""

    def __init__(self, config: recipe.TransformerModelConfig) -> None:
        super().__init__()
        self.self_attention = ScaledDotAttention(config.embedding, heads=config.heads)
        self.attention = ScaledDotAttention(config.embedding, heads=config.heads)
        self.feed_forward = FeedForward(config.embedding, config.feed_forward)
        self.around_self_attention = Residual(config)
        self.around_attention, self.around_feed_forward = Residual(config), Residual(config)

    def forward(
        self, values: Float[Tensor, "N T E"], past: KeysAndValues, source: LayerMemory
    ) -> tuple[Float[Tensor, "N T E"], KeysAndValues, Float[Tensor, "N K T S"]]:
        """The output of T steps, the keys and values of all target tokens so far, and the weights of the annotations."""
        normed = self.around_self_attention.before(values)
        new = self.self_attention.keys_and_values(normed)
        tokens = torch.cat([past[0], new[0]], 2), torch.cat([past[1], new[1]], 2)
        contexts, _ = self.self_attention(normed, *tokens, no_future(values.shape[1], tokens[0]))
        values = self.around_self_attention.after(values, contexts)
        contexts, weights = self.attend(self.around_attention.before(values), source)
        values = self.around_attention.after(values, contexts)
        output = self.feed_forward(self.around_feed_forward.before(values))
        return self.around_feed_forward.after(values, output), tokens, weights

    def attend(
        self, queries: Float[Tensor, "N T E"], source: LayerMemory
    ) -> tuple[Float[Tensor, "N T E"], Float[Tensor, "N K T S"]]:
        """Contexts of the annotations, and the weights of each head."""
        return self.attention(queries, source.keys, source.values, source.mask.unsqueeze(1))

    if TYPE_CHECKING:
        __call__ = forward


class TransformerModel(TranslationModel[TransformerMemory, TransformerState]):
    """Encoder and decoder of N layers each (Vaswani et al. 2017, 3.1)."""

    def __init__(self, config: recipe.TransformerModelConfig, *, source_size: int, target_size: int) -> None:
        super().__init__()
        width = config.embedding
        self.source_embedding = TokenEmbedding(source_size, width, config.embedding_scale)
        self.target_embedding = (
            self.source_embedding if config.tie == "all" else TokenEmbedding(target_size, width, config.embedding_scale)
        )
        self.word_dropout = WordDropout(config.dropout.word)
        self.dropout = Dropout(config.dropout.embedding, variational=False)
        self.encoder = nn.ModuleList(TransformerEncoderLayer(config) for _ in range(config.encoder.layers))
        self.decoder = nn.ModuleList(TransformerDecoderLayer(config) for _ in range(config.decoder.layers))
        is_pre = config.norm == "pre"
        self.encoder_norm, self.decoder_norm = (nn.LayerNorm(width) if is_pre else nn.Identity() for _ in range(2))
        self.output = OutputLayer(width, target_size)
        self.alignment_layer, self.alignment_head = config.alignment_layer, config.alignment_head
        initialize_ends_(self.source_embedding, self.target_embedding, self.output, config.tie)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> TransformerMemory:
        for values, _ in self.read(source, source_mask):
            annotations = values
        annotations = self.encoder_norm(annotations)
        layers = cast("Iterable[TransformerDecoderLayer]", self.decoder)
        each = (layer.attention.keys_and_values(annotations) for layer in layers)
        return TransformerMemory(tuple(LayerMemory(keys, values, source_mask) for keys, values in each))

    def read(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> Iterator[tuple[Float[Tensor, "B S E"], Float[Tensor, "B K S S"]]]:
        """The output of each layer of the encoder, and the weights of its self-attention, which only the caller keeps."""
        values = self.embed(self.source_embedding, source, first=0)
        for layer in self.encoder:
            values, weights = layer(values, mask)
            yield values, weights

    def start(self, memory: TransformerMemory) -> TransformerState:
        """The state before the first step: nothing is cached."""
        return TransformerState(tuple((layer.keys[:, :, :0], layer.values[:, :, :0]) for layer in memory.layers))

    def step(
        self, tokens: Int[Tensor, " N"], state: TransformerState, memory: TransformerMemory, rows: Int[Tensor, " N"]
    ) -> Step:
        readouts, alignment, state = self.decode(tokens.unsqueeze(1), state, memory.select(rows))
        return Step(self.output.log_probs(readouts[:, 0]), alignment[:, 0], state)

    def forward(self, batch: SentencePairs, label_smoothing: float = 0.0) -> ModelOutput:
        memory = self.encode(batch.source, batch.source_mask)
        readouts, alignment, _ = self.decode(batch.target_in, self.start(memory), memory)
        return self.output.known_targets(readouts, alignment, batch, label_smoothing)

    def decode(
        self, target: Int[Tensor, "N T"], state: TransformerState, memory: TransformerMemory
    ) -> tuple[Float[Tensor, "N T E"], Float[Tensor, "N T S"], TransformerState]:
        """Readouts, alignment and the next state of T steps whose tokens are known, after those that the state has read."""
        values = self.embed(self.target_embedding, target, first=state.position)
        tokens, weights = [], []
        for layer, past, source in zip(self.decoder, state.layers, memory.layers, strict=True):
            values, layer_tokens, layer_weights = layer(values, past, source)
            tokens.append(layer_tokens)
            weights.append(layer_weights)
        return self.decoder_norm(values), self.alignment(weights), TransformerState(tuple(tokens))

    def attending(self, layer: int, head: int | None) -> TransformerModel:
        """The same model, its modules shared, whose alignment is that of another layer, and of a head or the mean of the heads."""
        other = copy(self)
        other.alignment_layer, other.alignment_head = layer, head
        return other

    def alignment(self, weights: Sequence[Float[Tensor, "N K T S"]]) -> Float[Tensor, "N T S"]:
        """The weights to show, of those of every layer."""
        heads = weights[self.alignment_layer - 1]
        return heads.mean(1) if self.alignment_head is None else heads[:, self.alignment_head - 1]

    def position_log_probs(
        self,
        tokens: Int[Tensor, " B"],
        gold: Int[Tensor, " B"],
        state: TransformerState,
        memory: TransformerMemory,
        positions: Bool[Tensor, "B S"],
    ) -> Float[Tensor, "B S"]:
        """log p(y_t = gold | y_<t) if every layer attended to position j alone, for the j that are True, -inf for the others.

        Each position becomes a sentence of length 1, whose only weight is 1.
        """
        rows = positions.nonzero()[:, 0]
        mask = torch.ones_like(rows, dtype=torch.bool).unsqueeze(1)
        layers = (LayerMemory(at(layer.keys, positions), at(layer.values, positions), mask) for layer in memory.layers)
        alone = TransformerMemory(tuple(layers))
        readouts, _, _ = self.decode(tokens[rows].unsqueeze(1), state.select(rows), alone)
        log_probs = self.output.gold_log_probs(readouts[:, 0], gold[rows])
        return log_probs.new_full(positions.shape, float("-inf")).masked_scatter(positions, log_probs)

    def embed(self, embedding: TokenEmbedding, ids: Int[Tensor, "N T"], *, first: int) -> Float[Tensor, "N T E"]:
        """Embedded tokens with their positions, which count from `first`."""
        embedded: Tensor = self.word_dropout(embedding(ids))
        summed: Tensor = self.dropout(embedded + positional_encoding(first, embedded))
        return summed

    if TYPE_CHECKING:
        __call__ = forward


def positional_encoding(first: int, embedded: Num[Tensor, "B T E"]) -> Float[Tensor, "T E"]:
    """Sines and cosines of the positions from `first` on   (Vaswani et al. 2017, 3.5)."""
    length, width = embedded.shape[1:]
    dtype = torch.promote_types(embedded.dtype, torch.float32)
    positions = torch.arange(first, first + length, device=embedded.device, dtype=dtype).unsqueeze(1)
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, device=embedded.device, dtype=dtype) / width)
    angles = positions * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width].to(embedded.dtype)


def at(keys: Float[Tensor, "B K S d"], positions: Bool[Tensor, "B S"]) -> Float[Tensor, "M K 1 d"]:
    """The keys or values of single positions, each as a sentence of its own."""
    return keys.transpose(1, 2)[positions].unsqueeze(2)


def no_future(steps: int, keys: Float[Tensor, "N K Q d"]) -> Bool[Tensor, "1 T Q"]:
    """Each of the last T tokens may read itself and what is before it."""
    total = keys.shape[2]
    positions = torch.arange(total, device=keys.device)
    return (positions <= positions[total - steps :].unsqueeze(1)).unsqueeze(0)


def initialize_(linear: nn.Linear) -> None:
    """Glorot and Bengio 2010; biases 0."""
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
