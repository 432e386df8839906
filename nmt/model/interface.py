"""What training, search and alignment know of a translation model.

    encode -> start -> step, step, ...      one target token at a time: search, sampling, ensembles
    forward                                 all tokens of known targets: training, forced scoring

Any model behind this interface trains, decodes and scores. `Memory` and `DecoderState` are opaque to the caller but for `select`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt import recipe

SelfT = TypeVar("SelfT")


@runtime_checkable
class Memory(Protocol):
    """What a model knows of the source sentences, one row per sentence."""

    def select(self: SelfT, rows: Int[Tensor, " M"]) -> SelfT:  # noqa: PYI019 -- the tests' checker refuses Self
        """The memory of the given sentences, in their order."""
        ...


@runtime_checkable
class DecoderState(Protocol):
    """What a model carries from one decoder step to the next, one row per hypothesis."""

    def select(self: SelfT, rows: Int[Tensor, " N"]) -> SelfT:  # noqa: PYI019
        """The state of the given hypotheses, in their order."""
        ...


@runtime_checkable
class SentencePairs(Protocol):
    """A padded batch of sentence pairs: sources end with EOS, `target_in` starts with BOS, `target_out` ends with EOS."""

    @property
    def source(self) -> Int[Tensor, "B S"]: ...
    @property
    def source_mask(self) -> Bool[Tensor, "B S"]: ...
    @property
    def target_in(self) -> Int[Tensor, "B T"]: ...
    @property
    def target_out(self) -> Int[Tensor, "B T"]: ...
    @property
    def target_mask(self) -> Bool[Tensor, "B T"]: ...


@runtime_checkable
class LazyLogProbs(Protocol):
    """log p(y_t | y_<t, x) of N hypotheses [N V] that is computed for the rows that are indexed."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice | Tensor) -> Float[Tensor, "n V"]: ...


@dataclass(frozen=True)
class Step:
    """The result of one decoder step for N hypotheses."""

    log_probs: Float[Tensor, "N V"] | LazyLogProbs
    """log p(y_t | y_<t, x), as a tensor or as an object that computes the rows it is indexed with."""
    weights: Float[Tensor, "N S"]
    """Attention weights alpha_t."""
    state: Any
    """The state that the next step starts from."""
    centers: Float[Tensor, "N K"] | None = None
    """Center p_t of the attention window for each of K heads, in source positions; None without a local window."""


@dataclass(frozen=True)
class ModelOutput:
    """The result of a model for known targets (teacher forcing)."""

    loss: Float[Tensor, ""]
    """Cross-entropy with label smoothing, in nats, summed over the target tokens. Differentiable."""
    token_log_probs: Float[Tensor, "B T"]
    """log p(y_t | y_<t, x) of the gold tokens, 0 on padding. Not differentiable."""
    alignment: Float[Tensor, "B T S"]
    """Attention weights; row t belongs to the target token that step t predicts."""
    tokens: Int[Tensor, ""]
    """Number of target tokens, EOS included, padding not."""

    @property
    def nll(self) -> Float[Tensor, ""]:
        """Negative log-likelihood in nats, summed over the target tokens."""
        return -self.token_log_probs.sum()


MemoryT = TypeVar("MemoryT", bound=Memory)
StateT = TypeVar("StateT", bound=DecoderState)


class TranslationModel(nn.Module, Generic[MemoryT, StateT]):
    """A model of p(y | x) that reads and writes token ids. All state is passed; nothing of a sentence stays on the module."""

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> MemoryT:
        """Read the source sentences, once each. `source_mask` is True at real tokens."""
        raise NotImplementedError

    def start(self, memory: MemoryT) -> StateT:
        """The state before the first target token, one row per sentence."""
        raise NotImplementedError

    def step(self, tokens: Int[Tensor, " N"], state: StateT, memory: MemoryT, rows: Int[Tensor, " N"]) -> Step:
        """Feed one token to each of N hypotheses. Hypothesis n reads sentence `rows[n]` of the memory; `rows` is in ascending order."""
        raise NotImplementedError

    def forward(self, batch: SentencePairs, label_smoothing: float = 0.0) -> ModelOutput:
        """Loss and alignment of known targets."""
        raise NotImplementedError

    if TYPE_CHECKING:
        __call__ = forward


@runtime_checkable
class ModelBuilder(Protocol):
    """Makes a freshly initialized model for vocabularies of the given sizes. Seed torch first to get the same one again."""

    def __call__(
        self, config: recipe.ModelConfig, *, source_size: int, target_size: int
    ) -> TranslationModel[Any, Any]: ...


@runtime_checkable
class AttendsToPositions(Protocol):
    """A model that can say what it would predict if it attended to a single source position: posterior alignment needs it."""

    def position_log_probs(
        self,
        tokens: Int[Tensor, " B"],
        gold: Int[Tensor, " B"],
        state: Any,
        memory: Any,
        positions: Bool[Tensor, "B S"],
    ) -> Float[Tensor, "B S"]:
        """log p(y_t = gold | y_<t, c_t = h_j) for the positions j that are True, -inf for the others."""
        ...


def device_of(model: nn.Module) -> torch.device:
    """The device of a model's parameters."""
    return next(model.parameters()).device
