"""The output layer: readout -> log p(y_t | y_<t, x) and the loss."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.model.interface import LazyLogProbs, ModelOutput, SentencePairs
from nmt.model.precision import at_least_fp32


class OutputLayer(nn.Linear):
    """p(y_t | y_<t, x) = softmax(W_o t_t + b)   (Bahdanau et al. 2015, eq. 4 and A.2.2; Luong et al. 2015, eq. 6, with W_s h~_t)."""

    def log_probs(self, readouts: Float[Tensor, "N R"]) -> Float[Tensor, "N V"] | LazyLogProbs:
        """log p of every token of the vocabulary."""
        return torch.log_softmax(at_least_fp32(self(readouts)), dim=-1)

    def gold_log_probs(self, readouts: Float[Tensor, "N R"], gold: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """log p of one token per readout."""
        return torch.log_softmax(at_least_fp32(self(readouts)), dim=-1).gather(1, gold.unsqueeze(1)).squeeze(1)

    def loss(
        self,
        readouts: Float[Tensor, "B T R"],
        gold: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        label_smoothing: float,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "B T"]]:
        """Cross-entropy with label smoothing eps over the whole vocabulary (Szegedy et al. 2016, 7), and log p of the gold tokens.

        loss = sum_i (1 - eps) * -log p(y_i) + eps / V * sum_v -log p(v); with eps = 0 this is J of Luong et al. 2015, eq. 4.
        Both are 0 where `mask` is False.
        """
        log_p = torch.log_softmax(at_least_fp32(self(readouts)), dim=-1)
        gold_log_p = log_p.gather(2, gold.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0.0)
        mean_log_p = log_p.mean(dim=-1).masked_fill(~mask, 0.0)
        loss = -(1 - label_smoothing) * gold_log_p.sum() - label_smoothing * mean_log_p.sum()
        return loss, gold_log_p.detach()

    def known_targets(
        self,
        readouts: Float[Tensor, "B T R"],
        alignment: Float[Tensor, "B T S"],
        batch: SentencePairs,
        label_smoothing: float,
    ) -> ModelOutput:
        """The output of a model whose readouts and alignment of a batch are known."""
        mask = batch.target_mask
        loss, token_log_probs = self.loss(readouts, batch.target_out, mask, label_smoothing)
        return ModelOutput(loss, token_log_probs, alignment, tokens=mask.sum())
