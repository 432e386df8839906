"""Cross-entropy of the output layer in chunks, whose gradients are formed in the forward pass.

The logits of a batch, the largest tensor of a training, are never in memory together. A chunk of them is read while still in the
cache, for the loss and for the gradients of W_o and the readouts, and nothing of it is saved for the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from nmt.fast.deferred import matmul_type
from nmt.fast.kernels.calls import call, can_use
from nmt.model.output import OutputLayer

CHUNK_BYTES = 4096
"""Bytes of a column of a chunk of logits in training: 1,024 tokens in fp32, 2,048 in bf16."""
TOKEN_MULTIPLE = 64
"""The tokens of a batch are padded to a multiple of this: oneDNN compiles a kernel for every new size of a product."""
_LOGITS_AT_ONCE = 2**24
"""Logits of a chunk where no gradient is needed."""


class ChunkedOutputLayer(OutputLayer):
    """The same loss and gradients, a chunk of tokens at a time."""

    def gold_log_probs(self, readouts: Float[Tensor, "N R"], gold: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        size = max(_LOGITS_AT_ONCE // self.out_features, 1)
        chunks = zip(torch.split(readouts, size), torch.split(gold, size), strict=True)
        return torch.cat([super(ChunkedOutputLayer, self).gold_log_probs(*chunk) for chunk in chunks])

    def loss(
        self,
        readouts: Float[Tensor, "B T R"],
        gold: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        label_smoothing: float,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "B T"]]:
        real, real_gold = readouts[mask], gold[mask]
        if label_smoothing == 0 and not torch.is_grad_enabled():
            log_probs = self.gold_log_probs(real, real_gold)
            loss = -log_probs.sum()
        else:
            loss, log_probs = chunked_cross_entropy(real, self.weight, self.bias, real_gold, label_smoothing)
        return loss, log_probs.new_zeros(mask.shape).masked_scatter(mask, log_probs)


def chunked_cross_entropy(
    readouts: Float[Tensor, "N R"],
    weight: Float[Tensor, "V R"],
    bias: Float[Tensor, " V"],
    gold: Int[Tensor, " N"],
    label_smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, " N"]]:
    """Cross-entropy as in `OutputLayer.loss`, and log p of the gold tokens. The gradients are formed in the forward pass."""
    return _ChunkedCrossEntropy.apply(readouts, weight, bias, gold, label_smoothing)  # type: ignore[no-any-return, no-untyped-call]


def _loss_of_chunk(
    logits: Float[Tensor, "N V"], bias: Float[Tensor, " V"], gold: Int[Tensor, " N"], gold_share: float, real: int
) -> tuple[Float[Tensor, "N V"], Float[Tensor, " N"], Float[Tensor, " N"], Float[Tensor, " V"]]:
    """p - gold_share onehot(gold), log sum_v exp x_v, x_gold, and the sum over rows of the first; all 0 from row `real` on.

    x are the logits plus the bias. The first may replace the logits.
    """
    if can_use(logits) and bias.dtype == torch.float32:
        threads = torch.get_num_threads()
        log_sums, gold_logits = bias.new_empty(2, len(gold))
        sums, scratch = bias.new_empty(2, threads, len(bias))  # the sum over the rows of each thread
        arrays = logits, bias.contiguous(), gold, log_sums, gold_logits, sums, scratch
        call("softmax_gradient", *arrays, threads=threads, real=real, gold_share=gold_share)
        return logits, log_sums, gold_logits, sums.sum(0)
    logits += bias
    rows = torch.arange(len(gold), device=gold.device)
    gradient = torch.softmax(logits, dim=1)
    gold_logits = logits[rows, gold].to(bias.dtype)
    log_sum = logits.amax(1).to(bias.dtype) - gradient.amax(1).to(bias.dtype).log()
    gradient[rows, gold] -= gold_share
    for values in (gradient, log_sum, gold_logits):
        values[real:] = 0
    return gradient, log_sum, gold_logits, gradient.sum(0).to(bias.dtype)


class _ChunkedCrossEntropy(torch.autograd.Function):
    """d loss / d logits = p - (1 - eps) * onehot(y) - eps / V, so one pass over the vocabulary gives loss and gradients.

    Tables with a column per token of the vocabulary are in the autocast type if it is on, sums in the type of the weights. The loss
    needs only two figures of a row of log p, and both come without a table of it: with m the largest logit of the row,

        log sum_v exp x_v = x_m - log p_m          sum_v x_v = (sum_v W_v) t_i + sum_v b_v

    The last term of the gradient is the same number everywhere. It needs no table either: it adds -eps / V sum_v W_v to the gradient
    of each t_i and -eps / V sum_i t_i to that of each W_v.
    """

    @staticmethod
    def forward(
        ctx: Any, readouts: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        tokens, short = len(gold), matmul_type(weight)
        spare = -tokens % TOKEN_MULTIPLE
        with torch.autocast(readouts.device.type, enabled=False):
            narrow = weight.to(short)
            padded, padded_gold = functional.pad(readouts.to(short), (0, 0, 0, spare)), functional.pad(gold, (0, spare))
            readout_sum, weight_sum = readouts.to(weight.dtype).sum(0), weight.sum(0)
            uniform = smoothing / len(weight)
            d_readouts, d_bias = torch.empty_like(padded), torch.full_like(bias, -uniform * tokens)
            d_weight = (-uniform * readout_sum).repeat(len(weight), 1)
            gold_log_probs, log_sums = weight.new_empty(len(padded)), weight.new_zeros(())
            chunk = CHUNK_BYTES // padded.element_size()
            logits = padded.new_empty(min(chunk, len(padded)), len(weight))
            for start in range(0, tokens, chunk):
                part, real = slice(start, start + chunk), tokens - start
                rows = padded[part]
                gradient, log_sum, gold_logits, gradient_sum = _loss_of_chunk(
                    torch.mm(rows, narrow.T, out=logits[: len(rows)]), bias, padded_gold[part], 1 - smoothing, real
                )
                gold_log_probs[part] = gold_logits - log_sum
                log_sums += log_sum.sum()
                d_bias += gradient_sum
                torch.mm(gradient, narrow, out=d_readouts[part])
                if short == d_weight.dtype:
                    d_weight.addmm_(gradient.T, rows)
                else:
                    d_weight += gradient.T @ rows
            d_readouts -= (uniform * weight_sum).to(short)
            logit_sum = readout_sum @ weight_sum + tokens * bias.sum()
            gold_log_probs = gold_log_probs[:tokens]
            loss = smoothing * log_sums - (1 - smoothing) * gold_log_probs.sum() - uniform * logit_sum
        ctx.save_for_backward(d_readouts[:tokens].to(readouts.dtype), d_weight, d_bias)
        ctx.mark_non_differentiable(gold_log_probs)
        return loss, gold_log_probs

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        d_readouts, d_weight, d_bias = (gradient * upstream[0] for gradient in ctx.saved_tensors)
        return d_readouts, d_weight, d_bias, None, None
