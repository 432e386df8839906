"""One update: the gradients of a group of batches, and a step of the optimiser against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from nmt.alignment.corpus_links import TokenLinks
from nmt.data.batching import Batch, make_batch
from nmt.device import Precision, autocast
from nmt.fast import accelerate
from nmt.model_folder import Bundle
from nmt.training.guard import check_finite, within_memory
from nmt.training.guidance import guidance_weight, guided_cross_entropy
from nmt.training.optim import Clock, build_optimizer, rate_factor
from nmt.training.sampling import gold_probability, mix
from nmt.training.text import Encoded
from nmt.wording import counted


@dataclass
class Measured:
    """What an update was computed from, all sums over its target pieces."""

    words: int = 0
    nll: float = 0.0
    """Negative log-likelihood, in nats."""
    guidance: float = 0.0
    """Cross-entropy of the attention of linked pieces, in nats."""
    guided: int = 0
    """Linked pieces."""


class Learner:
    """The model and what moves its weights."""

    def __init__(self, bundle: Bundle, links: TokenLinks | None, *, precision: Precision, device: torch.device) -> None:
        self.model, self.settings = accelerate(bundle.model), bundle.recipe.training
        self.links, self.precision, self.device = links, precision, device
        self.optimizer = build_optimizer(self.settings.optimizer, self.model)

    @property
    def rate(self) -> float:
        """The learning rate of the last update."""
        return float(self.optimizer.param_groups[0]["lr"])

    def update(self, corpus: Encoded, group: Sequence[Sequence[int]], clock: Clock) -> Measured:
        """A step against the clipped gradients of the mean loss a target piece, over the batches of a group.

        Raises:
            BadUpdate: the gradients are of no use, or not to be had; the weights are as they were.
        """
        self.model.train()
        for own in self.optimizer.param_groups:
            own["lr"] = self.settings.optimizer.rate * rate_factor(self.settings.schedule, clock)
        try:
            measured = self._gradients(corpus, group, clock)
            self.optimizer.step()
        finally:
            self.optimizer.zero_grad(set_to_none=True)
        return measured

    def _gradients(self, corpus: Encoded, group: Sequence[Sequence[int]], clock: Clock) -> Measured:
        measured = Measured()
        with within_memory(f"a batch of {counted(max(map(len, group)), 'pair')}"):
            batches = [self._batch(corpus, rows, clock) for rows in group]
            measured.words = sum(batch.tokens for batch in batches)
            for batch in batches:
                loss = self._loss(batch, clock, measured)
                torch.autograd.backward(loss / measured.words)
            norm = get_total_norm([each.grad for each in self.model.parameters() if each.grad is not None])
            check_finite(measured.nll, "the loss")
            check_finite(float(norm), "the gradient")
            most = self.settings.clip_norm
            if most is not None and norm >= most:  # else it would be multiplied by 1
                clip_grads_with_norm_(self.model.parameters(), most, norm)
        return measured

    def _batch(self, corpus: Encoded, rows: Sequence[int], clock: Clock) -> Batch:
        """Rows of a corpus, with links if training is guided and words of the model's own if that is scheduled."""
        pairs = corpus[rows]
        links = None if self.links is None else self.links.of_batch(pairs, rows)
        batch = make_batch(pairs, rows, links).to(self.device)
        decay = self.settings.scheduled_sampling
        if decay is None:
            return batch
        with autocast(self.precision, self.device):
            return replace(batch, target_in=mix(self.model, batch, gold_probability(decay, clock.update)))

    def _loss(self, batch: Batch, clock: Clock, measured: Measured) -> Tensor:
        """What a batch is trained on, the sum over its target pieces; its plain parts are added to what was measured."""
        with autocast(self.precision, self.device):
            output = self.model(batch, self.settings.label_smoothing)
        loss = output.loss
        measured.nll += float(output.nll)
        if self.settings.guided_alignment is not None and batch.links is not None:
            guidance, guided = guided_cross_entropy(output.alignment, batch.links)
            loss = loss + guidance_weight(self.settings.guided_alignment, int(clock.epochs)) * guidance
            measured.guidance += float(guidance.detach())
            measured.guided += guided
        return loss
