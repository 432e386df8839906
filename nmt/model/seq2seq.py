"""The whole model: source ids -> Memory and first state; one step, or all steps of a known target; readout -> logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nmt import recipe
from nmt.model.attention import Memory
from nmt.model.cells import Dropout, WordDropout
from nmt.model.decoder import Bridge, Decoded, DecoderState, build_decoder
from nmt.model.encoder import Encoder


class WordEmbedding(nn.Embedding):
    """g E y: the rows of a table, of length 1 at first, as an output layer that shares them needs it, times a constant g.

    With g = sqrt(E) the components of a word are as large as those of a state (Vaswani et al. 2017, 3.4). With g = 1 they are
    sqrt(E) times smaller, and so little of a word reaches the states at first that Adam, which moves all weights by the same
    step, takes long to make up for it (measured in recipes/README.md).
    """

    def __init__(self, size: int, width: int, scale: float) -> None:
        super().__init__(size, width)
        self.scale = scale

    def forward(self, ids: Int[Tensor, "*ids"]) -> Float[Tensor, "*ids E"]:
        return super().forward(ids) * self.scale

    if TYPE_CHECKING:
        __call__ = forward


class Seq2Seq(nn.Module):
    """Attentional encoder-decoder. All state is passed; nothing of a sentence stays on the module."""

    def __init__(self, model: recipe.ModelConfig, *, source_size: int, target_size: int) -> None:
        super().__init__()
        self.source_embedding = WordEmbedding(source_size, model.embedding, model.embedding_scale)
        self.target_embedding = (
            self.source_embedding
            if model.tie == "all"
            else WordEmbedding(target_size, model.embedding, model.embedding_scale)
        )
        keeps_cells = model.decoder.bridge == "copy" and model.decoder.cell == "lstm"
        self.encoder = Encoder(model.encoder, embedding=model.embedding, dropout=model.dropout, keeps_cells=keeps_cells)
        self.bridge = Bridge(model)
        self.decoder = build_decoder(model)
        self.output = nn.Linear(model.decoder.readout.size, target_size)
        embedding_dropout = Dropout(model.dropout.embedding, variational=model.dropout.variational)
        self.dropout = nn.Sequential(WordDropout(model.dropout.word), embedding_dropout)
        self.readout_dropout = Dropout(model.dropout.readout, variational=model.dropout.variational)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=model.embedding**-0.5)
        nn.init.zeros_(self.output.bias)
        if model.tie == "none":
            nn.init.normal_(self.output.weight, std=model.decoder.readout.size**-0.5)
        else:
            self.output.weight = self.target_embedding.weight

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> tuple[Memory, DecoderState]:
        """Annotations of the source and the state s_0 that the decoder starts from."""
        encoded = self.encoder(self.dropout(self.source_embedding(source)), source_mask)
        memory = self.decoder.attention.remember(encoded.annotations, source_mask, encoded.final[:, -1])
        return memory, self.decoder.start(self.bridge(encoded), memory)

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState, memory: Memory
    ) -> tuple[Float[Tensor, "B R"], Float[Tensor, "B S"], DecoderState]:
        """One step of search: readout and weights after feeding the given words, and the state that follows."""
        decoded = self.decode(token.unsqueeze(1), state, memory)
        return decoded.readouts[:, 0], decoded.alignment[:, 0], decoded.state

    def decode(self, target_in: Int[Tensor, "B T"], state: DecoderState, memory: Memory) -> Decoded:
        """All steps of known target words."""
        return self.decoder(self.dropout(self.target_embedding(target_in)), state, memory)

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target_in: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T R"], Float[Tensor, "B T S"]]:
        """Readouts and alignment for known targets (teacher forcing)."""
        memory, state = self.encode(source, source_mask)
        decoded = self.decode(target_in, state, memory)
        return self.readout_dropout(decoded.readouts), decoded.alignment

    def logits(self, readout: Float[Tensor, "... R"]) -> Float[Tensor, "... V"]:
        """Unnormalised log p(y_i)."""
        logits: Tensor = self.output(readout)
        return logits

    if TYPE_CHECKING:
        __call__ = forward


def build_model(model: recipe.ModelConfig, *, source_size: int, target_size: int) -> Seq2Seq:
    """A freshly initialised model for vocabularies of the given sizes; seed torch first for the same one again."""
    return Seq2Seq(model, source_size=source_size, target_size=target_size)


def outline_model(model: recipe.ModelConfig, *, source_size: int, target_size: int) -> Seq2Seq:
    """The shapes of such a model, without memory for its weights."""
    with torch.device("meta"), _Undrawn():
        return build_model(model, source_size=source_size, target_size=target_size)


class _Undrawn(TorchFunctionMode):
    """Within it nothing is drawn from a normal distribution: where there are no values, torch would import its compiler for it."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if function in (Tensor.normal_, nn.init.normal_):
            return given.get("tensor", args[0] if args else None)
        return function(*args, **given)
