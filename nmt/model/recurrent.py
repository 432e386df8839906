"""The attentional encoder-decoder of both papers behind the interface of a translation model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn

from nmt import recipe
from nmt.model.attention import AttentionMemory
from nmt.model.bridge import Bridge
from nmt.model.decoder import RecurrentState, build_decoder
from nmt.model.dropout import Dropout, WordDropout
from nmt.model.embedding import TokenEmbedding, initialize_ends_
from nmt.model.encoder import Encoder, EncoderOutput
from nmt.model.initialization import initialize_
from nmt.model.interface import ModelOutput, SentencePairs, Step, TranslationModel
from nmt.model.output import OutputLayer


@dataclass(frozen=True)
class RecurrentMemory:
    """What the decoder reads of each sentence, and s_0."""

    attention: AttentionMemory
    bridged: RecurrentState

    def select(self, rows: Int[Tensor, " M"]) -> RecurrentMemory:
        """The memory of the given sentences, in their order."""
        return RecurrentMemory(self.attention.select(rows), self.bridged.select(rows))


class RecurrentModel(TranslationModel[RecurrentMemory, RecurrentState]):
    """RNN encoder, attention, RNN decoder: every model of Bahdanau et al. (2015) and Luong et al. (2015)."""

    def __init__(self, config: recipe.RecurrentModelConfig, *, source_size: int, target_size: int) -> None:
        super().__init__()
        self.source_embedding = TokenEmbedding(source_size, config.embedding, config.embedding_scale)
        self.target_embedding = (
            self.source_embedding
            if config.tie == "all"
            else TokenEmbedding(target_size, config.embedding, config.embedding_scale)
        )
        keeps_cells = config.decoder.bridge == "copy" and config.decoder.cell == "lstm"
        self.encoder = Encoder(
            config.encoder,
            embedding=config.embedding,
            dropout=config.dropout,
            keeps_cells=keeps_cells,
            keeps_tokens=config.lexical,
        )
        self.bridge = Bridge(config)
        self.decoder = build_decoder(config)
        self.output = OutputLayer(config.decoder.readout.size, target_size)
        embedding_dropout = Dropout(config.dropout.embedding, variational=config.dropout.variational)
        self.dropout = nn.Sequential(WordDropout(config.dropout.word), embedding_dropout)
        self.readout_dropout = Dropout(config.dropout.readout, variational=config.dropout.variational)
        initialize_ends_(self.source_embedding, self.target_embedding, self.output, config.tie)
        initialize_(self, config.initialization)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> RecurrentMemory:
        """Annotations and keys of the source, and s_0."""
        return self.build_memory(self.encoder(self.dropout(self.source_embedding(source)), source_mask))

    def build_memory(self, encoded: EncoderOutput) -> RecurrentMemory:
        """The memory of annotations, whatever they were computed from: their keys, and s_0."""
        memory = self.decoder.attention.build_memory(encoded.annotations, encoded.mask, encoded.final[:, -1])
        return RecurrentMemory(memory, self.bridge(encoded))

    def start(self, memory: RecurrentMemory) -> RecurrentState:
        return self.decoder.start(memory.bridged, memory.attention)

    def step(
        self, tokens: Int[Tensor, " N"], state: RecurrentState, memory: RecurrentMemory, rows: Int[Tensor, " N"]
    ) -> Step:
        decoded = self.decoder(self.embed(tokens.unsqueeze(1)), state, memory.attention.read_by(rows))
        centers = None if decoded.centers is None else decoded.centers[:, 0]
        log_probs = self.output.log_probs(decoded.readouts[:, 0])
        return Step(log_probs, decoded.alignment[:, 0], decoded.state, centers)

    def forward(self, batch: SentencePairs, label_smoothing: float = 0.0) -> ModelOutput:
        memory = self.encode(batch.source, batch.source_mask)
        decoded = self.decoder(self.embed(batch.target_in), self.start(memory), memory.attention)
        readouts = self.readout_dropout(decoded.readouts)
        return self.output.known_targets(readouts, decoded.alignment, batch, label_smoothing)

    def position_log_probs(
        self,
        tokens: Int[Tensor, " B"],
        gold: Int[Tensor, " B"],
        state: RecurrentState,
        memory: RecurrentMemory,
        positions: Bool[Tensor, "B S"],
    ) -> Float[Tensor, "B S"]:
        """log p(y_t = gold | y_<t, c_t = h_j) for the positions j that are True, -inf for the others."""
        readouts = self.decoder.position_readouts(self.embed(tokens), state, memory.attention)
        gold = gold.unsqueeze(1).expand_as(positions)
        log_probs = self.output.gold_log_probs(readouts[positions], gold[positions])
        return log_probs.new_full(positions.shape, float("-inf")).masked_scatter(positions, log_probs)

    def embed(self, target: Int[Tensor, "*ids"]) -> Num[Tensor, "*ids E"]:
        """g E y of target tokens, with dropout in training."""
        embedded: Tensor = self.dropout(self.target_embedding(target))
        return embedded

    if TYPE_CHECKING:
        __call__ = forward
