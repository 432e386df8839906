"""One update: batches, forward, backward, clip, step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from nmt.alignment.corpus_links import TokenLinks
from nmt.bundle.folder import Bundle, weights_of
from nmt.data.batching import Batch, Rows, make_batch
from nmt.data.encoded import EncodedPairs
from nmt.fast import accelerate, arithmetic, is_compiled
from nmt.runtime.device import Precision, autocast
from nmt.runtime.wording import counted
from nmt.training.epoch import Group
from nmt.training.guidance import guidance_weight, guided_cross_entropy
from nmt.training.losses import OutOfMemory, PendingStats
from nmt.training.optim import (
    Clock,
    MovingAverage,
    build_optimizer,
    copy_weights,
    load_optimizer_tensors,
    optimizer_tensors,
    rate_factor,
    use_weights,
)
from nmt.training.parallel import ALONE, Ranks, accumulating, noticing_lost_ranks, parallel
from nmt.training.scheduled_sampling import choose_replaced, mix_target_in, teacher_forcing_ratio

FIRST_SCALE = 1024.0
"""Of the loss in fp16. From PyTorch's 65,536 it may take so many updates down to a scale without overflow that training would end."""


@dataclass(frozen=True)
class PreparedGroup:
    """The batches of an update.

    Attributes:
        batches: this rank's share of each batch, without shares that have no pair. At least one: a rank without a pair computes one of
            another rank, so that it takes part in the sum of the gradients.
        has_pairs: whether the batches count.
        tokens: the target tokens of all batches and ranks, end marks included.
        count: what the loss is averaged over: the target tokens or the pairs of all batches and ranks.
        largest: pairs of the largest batch.
    """

    batches: Sequence[Batch]
    has_pairs: bool
    tokens: int
    count: int
    largest: int


class TrainStep:
    """Computes updates: owns the weights, their moving average, the optimizer and the generators of random numbers.

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
        self.settings, self.seed = bundle.recipe.training, bundle.recipe.seed
        self.is_compiled = is_compiled(self.settings.compile, device)
        self.model = accelerate(bundle.model, compiles=self.is_compiled)
        self.links, self.precision, self.device, self.ranks = links, precision, device, ranks
        self.weights = weights_of(bundle.model)
        self.average = MovingAverage(self.weights, self.settings.ema) if self.settings.ema else None
        self.optimizer = build_optimizer(self.settings.optimizer, self.model)
        self.scaler = torch.amp.GradScaler(device.type, init_scale=FIRST_SCALE, enabled=precision == "fp16")
        """Scales the loss so that no gradient is rounded to 0 in fp16, and down again when one overflows."""
        self.skips_by_itself = device.type == "cuda" and bool(self.optimizer.defaults.get("fused"))
        """Whether a step of the optimizer can be told on the GPU that the gradient is not finite. Otherwise the CPU has to know."""
        self.sum_type = torch.float32 if device.type == "mps" else torch.float64
        """The type in which losses are summed: Metal has no fp64."""

    @cached_property
    def parallel_model(self) -> nn.Module:
        """The model, whose backward pass gives the mean of the gradients of all ranks."""
        return self.model if self.ranks.count == 1 else parallel(self.model, self.settings.all_reduce)

    @property
    def rate(self) -> float:
        """Learning rate of the last update."""
        return float(self.optimizer.param_groups[0]["lr"])

    def averaged(self) -> AbstractContextManager[None]:
        """A context in which the weights are their moving average, if the recipe asks for one."""
        return nullcontext() if self.average is None else use_weights(self.average.weights, self.weights)

    # --- one update ----------------------------------------------------------------------------------------------

    def prepare(self, corpus: EncodedPairs, group: Group) -> PreparedGroup:
        """Build the batches of an update, with links for guided alignment. It does not depend on the weights.

        Args:
            corpus: the pairs of the epoch.
            group: the rows of each batch.
        """
        shares = [rows for batch in group if len(rows := batch[self.ranks.rank_rows])]
        batches = [self._batch(corpus, rows) for rows in shares or [group[0][:1]]]
        tokens = sum(int(corpus.target_lengths[rows].sum()) + len(rows) for rows in group)
        count = tokens if self.settings.normalization == "tokens" else sum(map(len, group))
        return PreparedGroup(batches, bool(shares), tokens, count, max(map(len, group)))

    def update(self, group: PreparedGroup, clock: Clock) -> PendingStats:
        """Update the weights with the clipped gradient of the mean loss per target token or, if the recipe says so, per pair.

        On a GPU the update may not have ended yet when this returns; nothing here waits for it.

        Args:
            group: the batches of the update.
            clock: how far training has come.

        Raises:
            BadUpdate: loss or gradient is not finite, or a batch does not fit into memory. The weights are unchanged. On a GPU, the
                result raises it where it is not finite.
            LostRank: another rank has ended.
        """
        self.model.train()
        self.ranks.seed(self.seed, clock.update)
        rate, clip_norm = (
            self.settings.optimizer.rate * rate_factor(self.settings.schedule, clock),
            self.settings.clip_norm,
        )
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        try:
            losses = self._compute_gradients(group, clock)
            self.scaler.unscale_(self.optimizer)
            norm = get_total_norm([weight.grad for weight in self.model.parameters() if weight.grad is not None])
            figures = torch.cat([losses, norm.to(losses).unsqueeze(0)])
            stats = PendingStats(clock.update + 1, group.tokens, figures)
            try:
                if not self.skips_by_itself:
                    stats.read()
                elif not self.scaler.is_enabled():  # the scaler, which has to look for infinities anyway, does the same
                    self.optimizer.found_inf = (~figures.isfinite().all()).float()  # type: ignore[attr-defined]
                if clip_norm is not None and (self.skips_by_itself or norm >= clip_norm):  # below, the factor is 1
                    clip_grads_with_norm_(self.model.parameters(), clip_norm, norm)
                self.scaler.step(self.optimizer)
            finally:
                self.scaler.update()
        finally:
            self.optimizer.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.add(self.weights, clock.update + 1)
        return stats

    def _compute_gradients(self, group: PreparedGroup, clock: Clock) -> Float[Tensor, "3"]:
        """Sum the gradient over all batches and ranks.

        Returns:
            The negative log-likelihood, the alignment loss and the number of linked tokens, of all ranks.
        """
        losses = torch.zeros(3, dtype=self.sum_type, device=self.device)
        factor = self.ranks.count / group.count if group.has_pairs else 0.0
        try:
            batches = [self._input(batch, clock) for batch in group.batches]
            for number, batch in enumerate(batches, start=1):
                with accumulating(self.parallel_model) if number < len(batches) else nullcontext():
                    parts = self._compute_gradient(batch, clock, factor)
                if group.has_pairs:
                    losses += torch.stack([part.to(self.sum_type) for part in parts])
        except torch.OutOfMemoryError:
            raise OutOfMemory(f"a batch of {counted(group.largest, 'pair')} does not fit into memory") from None
        self.ranks.sum_losses(losses)
        return losses

    def _compute_gradient(self, batch: Batch, clock: Clock, factor: float) -> tuple[Tensor, Tensor, Tensor]:
        """Add the gradient of a batch's loss, times a factor; return its parts of the losses."""
        with autocast(self.precision, self.device):
            output = self.parallel_model(batch, self.settings.label_smoothing)
        loss, nll = output.loss, output.nll
        alignment_loss = linked_tokens = torch.zeros_like(nll)
        guided = self.settings.guided_alignment
        if guided is not None and batch.links is not None:
            alignment_loss, linked_tokens = guided_cross_entropy(output.alignment, batch.links)
            loss = loss + guidance_weight(guided, int(clock.epochs)) * alignment_loss
        with noticing_lost_ranks():
            torch.autograd.backward(self.scaler.scale(loss * factor))
        return nll, alignment_loss.detach(), linked_tokens

    def _batch(self, corpus: EncodedPairs, rows: Rows) -> Batch:
        """A batch of these rows, with links for guided alignment."""
        pairs, own_rows = corpus[rows], rows.tolist()
        links = None if self.links is None else self.links.of_batch(pairs, own_rows)
        batch = make_batch(pairs, own_rows, links)
        return batch.pinned() if self.device.type == "cuda" else batch

    def _input(self, batch: Batch, clock: Clock) -> Batch:
        """The batch on the device of the model, with a mixed target for scheduled sampling."""
        config = self.settings.scheduled_sampling
        if config is None:
            return batch.to(self.device)
        is_replaced = choose_replaced(batch, teacher_forcing_ratio(config, clock.update))
        batch = batch.to(self.device)
        with autocast(self.precision, self.device):
            return replace(batch, target_in=mix_target_in(self.model, batch, is_replaced))

    # --- state ---------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the coming updates depend on, and the machine, on which their rounding depends."""
        generators = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            generators["cuda"] = torch.cuda.get_rng_state(self.device)
        return {
            "kind": self.settings.optimizer.kind,
            "weights": self.weights,
            "average": {} if self.average is None else self.average.weights,
            "optimizer": optimizer_tensors(self.optimizer),
            "generators": generators,
            "scaler": self.scaler.state_dict(),
            "threads": torch.get_num_threads(),
            "arithmetic": arithmetic(),
            "processes": self.ranks.count,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, whose weights have the shapes of the model.

        The optimizer starts anew if the recipe now has another one, and the moving average starts from the weights if the run had
        none. A run that moves from the CPU to a GPU has no state for the generator of the GPU.
        """
        copy_weights(state["weights"], self.weights)
        if self.average is not None:
            copy_weights(state["average"] or state["weights"], self.average.weights)
        if state["kind"] == self.settings.optimizer.kind:
            load_optimizer_tensors(self.optimizer, state["optimizer"])
        if state["scaler"] and self.scaler.is_enabled():
            self.scaler.load_state_dict(dict(state["scaler"]))
        torch.set_rng_state(state["generators"]["cpu"])
        if self.device.type == "cuda" and "cuda" in state["generators"]:
            torch.cuda.set_rng_state(state["generators"]["cuda"], self.device)
