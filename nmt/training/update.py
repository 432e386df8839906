"""One update: the gradients of a group of batches, and a step of the optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from nmt.alignment.corpus_links import TokenLinks
from nmt.data.batching import Batch, Rows, make_batch
from nmt.data.encoded import EncodedPairs
from nmt.device import Precision, autocast
from nmt.fast import accelerate
from nmt.model_folder import Bundle
from nmt.training.epoch import Group
from nmt.training.guard import OutOfMemory, check_finite, within_memory
from nmt.training.guidance import guidance_weight, guided_cross_entropy
from nmt.training.optim import Clock, build_optimizer, rate_factor
from nmt.training.parallel import ALONE, Ranks
from nmt.training.sampling import mix_target_in, teacher_forcing_ratio
from nmt.wording import counted


@dataclass
class LossStats:
    """Losses of an update as sums, with the number of tokens that they are sums over."""

    tokens: int = 0
    """Target tokens, end marks included."""
    nll: float = 0.0
    """Negative log-likelihood of the target tokens, in nats, without label smoothing."""
    alignment_loss: float = 0.0
    """Alignment loss of the linked target tokens, in nats, without its weight."""
    linked_tokens: int = 0
    """Target tokens with a link."""


@dataclass(frozen=True)
class PreparedGroup:
    """The batches of an update.

    Attributes:
        batches: this rank's share of each batch, without shares that have no pair.
        count: what the loss is averaged over: the target tokens or the pairs of all batches and ranks.
        largest: pairs of the largest batch.
    """

    batches: Sequence[Batch]
    count: int
    largest: int


class TrainStep:
    """Computes updates: holds the accelerated model, its optimiser and the links of guided alignment.

    With several ranks, each computes the gradient of its share of every batch, and all make the same update.
    """

    def __init__(
        self,
        bundle: Bundle,
        links: TokenLinks | None,
        *,
        precision: Precision,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        self.model, self.settings, self.seed = accelerate(bundle.model), bundle.recipe.training, bundle.recipe.seed
        self.links, self.precision, self.device, self.ranks = links, precision, device, ranks
        self.optimizer = build_optimizer(self.settings.optimizer, self.model)

    @property
    def rate(self) -> float:
        """Learning rate of the last update."""
        return float(self.optimizer.param_groups[0]["lr"])

    def prepare(self, corpus: EncodedPairs, group: Group) -> PreparedGroup:
        """Build the batches of an update, with links for guided alignment. It does not depend on the weights.

        Args:
            corpus: the pairs of the epoch.
            group: the rows of each batch.
        """
        shares = [rows[self.ranks.own] for rows in group]
        batches = [self._batch(corpus, rows) for rows in shares if len(rows)]
        return PreparedGroup(batches, self._count(corpus, group), max(map(len, group)))

    def update(self, group: PreparedGroup, clock: Clock) -> LossStats:
        """Update the weights with the clipped gradient of the mean loss per target token or, if the recipe says so, per pair.

        Args:
            group: the batches of the update.
            clock: how far training has come.

        Raises:
            BadUpdate: loss or gradient is not finite, or a batch does not fit into memory, of this rank or another. The weights
                are unchanged.
        """
        self.model.train()
        self.ranks.seed(self.seed, clock.update)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = self.settings.optimizer.rate * rate_factor(self.settings.schedule, clock)
        try:
            stats = self._compute_gradients(group, clock)
            self.optimizer.step()
        finally:
            self.optimizer.zero_grad(set_to_none=True)
        return stats

    def _compute_gradients(self, group: PreparedGroup, clock: Clock) -> LossStats:
        """Sum the gradient over all batches and ranks, and clip it. The losses are those of all ranks."""
        stats = LossStats()
        out_of_memory = None
        try:
            with within_memory(f"a batch of {counted(group.largest, 'pair')}"):
                for batch in [self._input(batch, clock) for batch in group.batches]:
                    loss = self._loss(batch, clock, stats)
                    torch.autograd.backward(loss / group.count)
        except OutOfMemory as reason:
            out_of_memory = reason
        stats = self._total(stats, out_of_memory)
        self.ranks.sum_gradients(self.model)
        self._clip_gradients(stats)
        return stats

    def _total(self, stats: LossStats, out_of_memory: OutOfMemory | None) -> LossStats:
        """The losses of all ranks. Raises OutOfMemory if one of them ran out of memory."""
        own = (stats.tokens, stats.nll, stats.alignment_loss, stats.linked_tokens, out_of_memory is not None)
        tokens, nll, alignment_loss, linked_tokens, ranks_out_of_memory = self.ranks.sum(own)
        if ranks_out_of_memory:
            raise out_of_memory or OutOfMemory("a share of another process does not fit into its memory")
        return LossStats(int(tokens), nll, alignment_loss, int(linked_tokens))

    def _count(self, corpus: EncodedPairs, group: Group) -> int:
        """What the loss of an update is averaged over: the target tokens or the pairs of all its batches."""
        match self.settings.normalization:
            case "tokens":
                return sum(int(corpus.target_lengths[rows].sum()) + len(rows) for rows in group)
            case "sentences":
                return sum(map(len, group))
            case _:
                assert_never(self.settings.normalization)

    def _clip_gradients(self, stats: LossStats) -> None:
        """Scale the gradient down to `clip_norm`. Raises Diverged if the loss or the gradient is not finite."""
        norm = get_total_norm([weight.grad for weight in self.model.parameters() if weight.grad is not None])
        check_finite(stats.nll, "the loss")
        check_finite(float(norm), "the gradient")
        clip_norm = self.settings.clip_norm
        if clip_norm is not None and norm >= clip_norm:  # otherwise the factor is 1
            clip_grads_with_norm_(self.model.parameters(), clip_norm, norm)

    def _batch(self, corpus: EncodedPairs, rows: Rows) -> Batch:
        """A batch of these rows, with links for guided alignment."""
        pairs, own_rows = corpus[rows], rows.tolist()
        links = None if self.links is None else self.links.of_batch(pairs, own_rows)
        return make_batch(pairs, own_rows, links)

    def _input(self, batch: Batch, clock: Clock) -> Batch:
        """The batch on the device of the model, with a mixed target for scheduled sampling."""
        batch = batch.to(self.device)
        config = self.settings.scheduled_sampling
        if config is None:
            return batch
        ratio = teacher_forcing_ratio(config, clock.update)
        with autocast(self.precision, self.device):
            return replace(batch, target_in=mix_target_in(self.model, batch, ratio))

    def _loss(self, batch: Batch, clock: Clock, stats: LossStats) -> Tensor:
        """The loss of a batch, summed over its target tokens. Its parts are added to `stats`."""
        with autocast(self.precision, self.device):
            output = self.model(batch, self.settings.label_smoothing)
        loss = output.loss
        stats.tokens += batch.tokens
        stats.nll += float(output.nll)
        config = self.settings.guided_alignment
        if config is not None and batch.links is not None:
            alignment_loss, linked_tokens = guided_cross_entropy(output.alignment, batch.links)
            loss = loss + guidance_weight(config, int(clock.epochs)) * alignment_loss
            stats.alignment_loss += float(alignment_loss.detach())
            stats.linked_tokens += linked_tokens
        return loss
