"""One or several models as one: a step function for search, and forced decoding of known targets.

    p(y_t | y_<t, x) = 1/M sum_m p_m(y_t | y_<t, x)

The members share the target vocabulary; each may cut the source into pieces of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from nmt.data.batching import make_batch
from nmt.data.subwords import PAD
from nmt.decoding.posterior import posterior_alignment
from nmt.decoding.search import COMPACT_AT, allowed, by_id, drawn
from nmt.decoding.shortlist import Shortlist
from nmt.device import DecodingPrecision, autocast
from nmt.evened import even_within
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.output import Output, listed_output
from nmt.model.packed import packed, restricted
from nmt.model.seq2seq import Seq2Seq
from nmt.native import kernels
from nmt.native.build import prepare_kernels
from nmt.ragged import Ragged

_LOGITS_AT_ONCE = 2048
"""Target positions whose logits are held at a time in forced decoding: [2048 V]."""
_IN_CACHE = 2**20
"""Log-probabilities that a CPU makes at a time in search, so that they are still at hand when the largest are picked."""
_ON_DEVICE = 2**28
"""The same for other devices, where more at a time is faster."""
_BLOCK = 100
"""Columns that a row is looked through by at a time for its largest numbers."""
_FEW = 64
"""Pieces up to which it is faster to look for the largest one after the other."""


@dataclass(frozen=True)
class EnsembleState:
    """Memory and decoder state of each member, and what can be written.

    A memory holds each sentence once, a decoder state as many rows for each as it has live hypotheses, one after the other.
    """

    memories: tuple[Memory, ...]
    states: tuple[DecoderState, ...]
    rows: Ragged
    """Which of the memories' sentences each row belongs to."""
    outputs: tuple[Output, ...]
    """Each member's output layer."""
    pieces: Int[Tensor, "B C"] | None
    """The pieces that each sentence's logits stand for, if there are lists; None if they are the whole vocabulary."""

    def select(self, rows: Int[Tensor, " N"]) -> EnsembleState:
        """The given rows, which keep their sentences in order.

        The memories, by far the largest part, are left as they are until many of their sentences are done.
        """
        states = tuple(state.select(rows) for state in self.states)
        selected = replace(self, states=states, rows=Ragged(self.rows.group[rows], self.rows.groups))
        return selected if self._passes_by else selected.compact()

    @property
    def _passes_by(self) -> bool:
        """Whether sentences that are done cost nothing: compiled kernels look up what they read."""
        return all(memory.odds is not None for memory in self.memories) and all(output.skips for output in self.outputs)

    def compact(self) -> EnsembleState:
        """Without the sentences that are done, if they are many."""
        going, group = torch.unique_consecutive(self.rows.group, return_inverse=True)
        if len(going) > (1 - COMPACT_AT) * self.rows.groups:
            return self
        return replace(
            self,
            memories=tuple(memory.select(going) for memory in self.memories),
            rows=Ragged(group, len(going)),
            outputs=tuple(output.select(going) for output in self.outputs),
            pieces=None if self.pieces is None else self.pieces[going],
        )


@dataclass(frozen=True)
class NextPiece:
    """The outlook of N rows: log p(y_t | y_<t, x), made for some rows at a time so that no [N V] tensor is ever held."""

    readouts: tuple[Float[Tensor, "N _R"], ...]
    outputs: tuple[Output, ...]
    rows: Ragged
    """Which sentence each row belongs to."""
    pieces: Int[Tensor, "B C"] | None = None

    def top(self, size: int | None, forbid: tuple[int, ...] = ()) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
        return _joined([self.top_of(rows, size, forbid) for rows in self._parts()])

    def draw(
        self, uniform: Float[Tensor, " N"], temperature: float, forbid: tuple[int, ...] = ()
    ) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
        return _joined([drawn(*self._all_of(rows), uniform[rows], temperature, forbid) for rows in self._parts()])

    def _parts(self) -> list[slice]:
        """The rows, so many at a time as may be held with all their logits."""
        width = self.outputs[0].width
        at_once = even_within(max((_IN_CACHE if self.readouts[0].device.type == "cpu" else _ON_DEVICE) // width, 1))
        return [slice(start, start + at_once) for start in range(0, len(self.readouts[0]), at_once)]

    def top_of(
        self, rows: slice, size: int | None, forbid: tuple[int, ...]
    ) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
        """The same for some rows."""
        logits, group = self._logits(rows), self.rows.group[rows]
        width = logits[0].shape[1]
        if len(logits) == 1 and size is not None and size <= min(_FEW, width) and kernels.can_use(*logits):
            return kernels.most_probable(logits[0], size, pieces=self.pieces, group=group, forbid=forbid)
        log_probs = _log_mean_exp([torch.log_softmax(each, dim=-1) for each in logits])
        values, ids = largest(log_probs, width if size is None else min(size + len(forbid), width))
        return allowed(values, ids if self.pieces is None else self.pieces[group].gather(1, ids), size, forbid)

    def _all_of(self, rows: slice) -> tuple[Float[Tensor, "n C"], Int[Tensor, "n C"]]:
        """Log-probabilities and ids of all that some rows may go on with; ids rise."""
        log_probs = _log_mean_exp([torch.log_softmax(each, dim=-1) for each in self._logits(rows)])
        if self.pieces is not None:
            return by_id(log_probs, self.pieces[self.rows.group[rows]])
        return log_probs, torch.arange(log_probs.shape[1], device=log_probs.device).expand_as(log_probs)

    def _logits(self, rows: slice) -> list[Float[Tensor, "n C"]]:
        """Those of each member, for some rows."""
        of = Ragged(self.rows.group[rows], self.rows.groups)
        return [output(readout[rows], of).float() for output, readout in zip(self.outputs, self.readouts, strict=True)]


@dataclass(frozen=True)
class Forced:
    """What models think of known targets, 0 on padding: log p(y_t | y_<t, x) and the alignment."""

    token_log_probs: Float[Tensor, "B T"]
    alignment: Float[Tensor, "B T S"]


class Ensemble:
    """Models behind one step function, copied as they are now and made ready for decoding.

    Alignments are averaged if all read the same source pieces, else they are the first's. A shortlist is one of the first's
    source pieces.
    """

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        *,
        same_source: bool,
        precision: DecodingPrecision,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.device = next(models[0].parameters()).device
        if self.device.type == "cpu":
            prepare_kernels()  # before matrices are laid out for them, and before there are processes
        self.models = tuple(packed(model, precision) for model in models)
        self.same_source = same_source
        self.precision = precision
        self.shortlist = shortlist

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """No gradients, and products in the chosen precision."""
        with torch.inference_mode(), autocast(self.precision, self.device):
            yield

    def encode(self, sources: Sequence[Int[Tensor, "B _S"]]) -> EnsembleState:
        """The state before the first step, for padded sources as each member cuts them."""
        encoded = [model.encode(source, source != PAD) for model, source in zip(self.models, sources, strict=True)]
        memories, states = zip(*encoded, strict=True)
        outputs, pieces = self._outputs(sources[0])
        rows = Ragged.one_each(len(sources[0]), self.device)
        return EnsembleState(tuple(map(self._shortened, memories)), states, rows, outputs, pieces)

    def _outputs(self, sources: Int[Tensor, "B S"]) -> tuple[tuple[Output, ...], Int[Tensor, "B C"] | None]:
        """The members' output layers, and the pieces that each sentence's logits stand for if they are listed."""
        if self.shortlist is None:
            return tuple(Output(model.output) for model in self.models), None
        own, sentences = self.shortlist.own(sources)
        outputs = tuple(
            listed_output(model.output, shared, own, sentences)
            for model, shared in zip(self.models, self._shared, strict=True)
        )
        shared = self.shortlist.shared.to(self.device).expand(len(sources), -1)
        return outputs, torch.cat([shared, sentences.spread(own)], 1)

    @cached_property
    def _shared(self) -> tuple[nn.Linear, ...]:
        """What of the members' output layers is on every list."""
        assert self.shortlist is not None
        shared = self.shortlist.shared.to(self.device)
        return tuple(restricted(model.output, shared) for model in self.models)

    def step(
        self, tokens: Int[Tensor, " N"], state: EnsembleState
    ) -> tuple[NextPiece, Float[Tensor, "N S"], EnsembleState]:
        """One time step: the outlook, weights and the state that follows."""
        readouts, weights, states = [], [], []
        asking = None if state.rows.is_plain else state.rows
        for model, memory, before in zip(self.models, state.memories, state.states, strict=True):
            readout, looked, after = model.step(tokens, before, replace(memory, asking=asking))
            readouts.append(readout)
            weights.append(looked)
            states.append(after)
        shown = self._mean(weights[: len(self._shown())])
        outlook = NextPiece(tuple(readouts), state.outputs, state.rows, state.pieces)
        return outlook, shown, replace(state, states=tuple(states))

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

    def posterior(
        self, sources: Sequence[Sequence[Sequence[int]]], targets: Sequence[Sequence[int]]
    ) -> Float[Tensor, "B T S"]:
        """The posterior alignment of known targets, see `posterior_alignment`; arguments as in `force`."""
        found = []
        for model, source in zip(self._shown(), sources, strict=False):
            batch = make_batch(list(zip(source, targets, strict=True))).to(self.device)
            found.append(posterior_alignment(model, batch))
        return self._mean(found)

    def _shortened(self, memory: Memory) -> Memory:
        """The memory in the type in which every step multiplies with it."""
        if self.precision != "bf16" or memory.odds is not None:
            return memory
        annotations = memory.annotations.to(torch.bfloat16)
        keys = annotations if memory.keys is memory.annotations else memory.keys.to(torch.bfloat16)
        return replace(memory, annotations=annotations, keys=keys)

    def _shown(self) -> tuple[Seq2Seq, ...]:
        """The members whose attention is shown."""
        return self.models if self.same_source else self.models[:1]

    @staticmethod
    def _mean(weights: Sequence[Tensor]) -> Tensor:
        return weights[0].float() if len(weights) == 1 else torch.stack(list(weights)).float().mean(dim=0)


def _joined(parts: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Log-probabilities and ids of some rows, then some more, as one."""
    if len(parts) == 1:
        return parts[0]
    values, ids = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return values, ids


def largest(values: Float[Tensor, "N C"], size: int) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """The `size` largest numbers of each row, and their columns: `topk` in two stages, which takes half the time.

    They lie in the `size` blocks of columns with the largest maxima, or in what is left beside whole blocks.
    """
    blocks = values.shape[1] // _BLOCK
    if blocks < 4 * size:
        found, places = values.topk(size, dim=1)
        return found, places
    columns = torch.arange(values.shape[1], device=values.device)
    whole, rest = columns[: blocks * _BLOCK].view(blocks, _BLOCK), columns[blocks * _BLOCK :]
    maxima = values[:, : blocks * _BLOCK].reshape(-1, blocks, _BLOCK).amax(dim=2)
    looked = whole[maxima.topk(size, dim=1, sorted=False).indices].flatten(1)
    looked = torch.cat([looked, rest.expand(len(values), -1)], dim=1)
    found, places = values.gather(1, looked).topk(size, dim=1)
    return found, looked.gather(1, places)


def _log_mean_exp(log_probs: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "..."]:
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
