"""One or several models as one: a step function for search, and forced decoding of known targets.

    p(y_t | y_<t, x) = 1/M sum_m p_m(y_t | y_<t, x)

The members share the target vocabulary; each may cut the source into pieces of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from nmt.data.batching import make_batch
from nmt.data.subwords import PAD
from nmt.device import Precision, autocast
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.seq2seq import Seq2Seq

_LOGITS_AT_ONCE = 2048
"""Target positions whose logits are held at a time in forced decoding: [2048 V]."""


@dataclass(frozen=True)
class EnsembleState:
    """Memory and decoder state of each member, and which sentence each row belongs to."""

    memories: tuple[Memory, ...]
    states: tuple[DecoderState, ...]
    sentence: Int[Tensor, " N"]

    def select(self, rows: Int[Tensor, " N"]) -> EnsembleState:
        """The given rows; the memories, by far the largest part, are left where the rows' sentences stay the same."""
        sentence = self.sentence[rows]
        memories = self.memories
        if not torch.equal(sentence, self.sentence):
            memories = tuple(memory.select(rows) for memory in memories)
        return EnsembleState(memories, tuple(state.select(rows) for state in self.states), sentence)


@dataclass(frozen=True)
class Forced:
    """What models think of known targets, 0 on padding: log p(y_t | y_<t, x) and the alignment."""

    token_log_probs: Float[Tensor, "B T"]
    alignment: Float[Tensor, "B T S"]


class Ensemble:
    """Models behind one step function. Alignments are averaged if all read the same source pieces, else the first's."""

    def __init__(self, models: Sequence[Seq2Seq], *, same_source: bool, precision: Precision) -> None:
        self.models = tuple(models)
        self.same_source = same_source
        self.precision = precision
        self.device = next(self.models[0].parameters()).device

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """No gradients, no dropout, the chosen precision; afterwards each model is in the mode it was in before."""
        training = [model.training for model in self.models]
        try:
            for model in self.models:
                model.eval()
            with torch.inference_mode(), autocast(self.precision, self.device):
                yield
        finally:
            for model, was_training in zip(self.models, training, strict=True):
                model.train(was_training)

    def encode(self, sources: Sequence[Int[Tensor, "B _S"]]) -> EnsembleState:
        """The state before the first step, for padded sources as each member cuts them."""
        encoded = [model.encode(source, source != PAD) for model, source in zip(self.models, sources, strict=True)]
        memories, states = zip(*encoded, strict=True)
        return EnsembleState(memories, states, torch.arange(len(sources[0]), device=self.device))

    def step(
        self, tokens: Int[Tensor, " N"], state: EnsembleState
    ) -> tuple[Float[Tensor, "N V"], Float[Tensor, "N S"], EnsembleState]:
        """One time step: log-probabilities, weights and the state that follows."""
        log_probs, weights, states = [], [], []
        for model, memory, before in zip(self.models, state.memories, state.states, strict=True):
            readout, looked, after = model.step(tokens, before, memory)
            log_probs.append(torch.log_softmax(model.logits(readout).float(), dim=-1))
            weights.append(looked)
            states.append(after)
        shown = self._mean(weights[: len(self._shown())])
        return _log_mean_exp(log_probs), shown, EnsembleState(state.memories, tuple(states), state.sentence)

    def force(self, sources: Sequence[Sequence[Sequence[int]]], targets: Sequence[Sequence[int]]) -> Forced:
        """Forced decoding: what the models think of known targets.

        Row t of the alignment belongs to target piece t, the end mark's row being the last.

        Args:
            sources: for each member, the source ids of each sentence, without special marks.
            targets: the target ids of each sentence, without special marks.
        """
        shown = len(self._shown())
        log_probs, alignments = [], []
        for member, (model, source) in enumerate(zip(self.models, sources, strict=True)):
            batch = make_batch(list(zip(source, targets, strict=True))).to(self.device)
            readouts, alignment = model(batch.source, batch.source_mask, batch.target_in)
            log_probs.append(_gold_log_probs(model, readouts, batch.target_out))
            if member < shown:
                alignments.append(alignment.float() * batch.target_mask[:, :, None])
        return Forced(_log_mean_exp(log_probs), self._mean(alignments))

    def _shown(self) -> tuple[Seq2Seq, ...]:
        """The members whose attention is shown."""
        return self.models if self.same_source else self.models[:1]

    @staticmethod
    def _mean(weights: Sequence[Tensor]) -> Tensor:
        return weights[0].float() if len(weights) == 1 else torch.stack(list(weights)).float().mean(dim=0)


def _log_mean_exp(log_probs: Sequence[Float[Tensor, ...]]) -> Float[Tensor, ...]:
    """log of the mean of probabilities, over the members."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.logsumexp(torch.stack(list(log_probs)), dim=0) - math.log(len(log_probs))


def _gold_log_probs(model: Seq2Seq, readouts: Float[Tensor, "B T R"], gold: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """log p(gold), 0 on padding; logits are made for some positions at a time."""
    real = gold != PAD
    parts = [
        -cross_entropy(model.logits(part).float(), wanted, reduction="none")
        for part, wanted in zip(
            torch.split(readouts[real], _LOGITS_AT_ONCE), torch.split(gold[real], _LOGITS_AT_ONCE), strict=True
        )
    ]
    log_probs = torch.zeros(gold.shape, device=gold.device)
    log_probs[real] = torch.cat(parts)
    return log_probs
