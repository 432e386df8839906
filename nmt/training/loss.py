"""Cross-entropy of the output layer, with label smoothing: a readable reference and a fast path with the same gradients.

    loss = sum_i (1 - eps) * -log p(y_i) + eps / V * sum_v -log p(v)          p = softmax(W t_i + b)

(Szegedy et al. 2016, 7, over the whole vocabulary.) Both return the sum over words of the smoothed loss, which is trained
on, and of the plain one, which perplexity is made of.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from nmt.data.batching import Batch
from nmt.model.precision import matmul_type
from nmt.native import gradients

CHUNK = 4096
"""Bytes of a column of logits in memory at a time on the fast path: those of 1,024 words in fp32, of 2,048 in bf16."""
WORDS = 64
"""The words of a batch are filled up to a multiple of this: for every new size of a product its kernel is compiled anew."""


def reference_cross_entropy(
    readouts: Float[Tensor, "N R"],
    weight: Float[Tensor, "V R"],
    bias: Float[Tensor, " V"],
    target: Int[Tensor, " N"],
    smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The equation above as it stands; holds all logits [N V]."""
    log_p = torch.log_softmax(functional.linear(readouts, weight, bias), dim=-1)
    plain = -log_p.gather(1, target.unsqueeze(1)).sum()
    uniform = -log_p.mean(dim=-1).sum()
    return (1 - smoothing) * plain + smoothing * uniform, plain.detach()


def cross_entropy(
    readouts: Float[Tensor, "N R"],
    weight: Float[Tensor, "V R"],
    bias: Float[Tensor, " V"],
    target: Int[Tensor, " N"],
    smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The same, a chunk of words at a time: logits are never held together and their gradient is formed in the forward pass."""
    return _ChunkedCrossEntropy.apply(readouts, weight, bias, target, smoothing)  # type: ignore[no-any-return, no-untyped-call]


def loss_of_batch(
    readouts: Float[Tensor, "B T R"], output: nn.Linear, batch: Batch, *, smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Smoothed and plain loss of a batch, each the sum over its target pieces; padding counts for nothing."""
    real = batch.target_mask
    return cross_entropy(readouts[real], output.weight, output.bias, batch.target_out[real], smoothing)


def _loss_of_chunk(
    logits: Float[Tensor, "N V"], bias: Float[Tensor, " V"], gold: Int[Tensor, " N"], gold_share: float, real: int
) -> tuple[Float[Tensor, "N V"], Float[Tensor, " N"], Float[Tensor, " N"], Float[Tensor, " V"]]:
    """p - gold_share onehot(gold), log sum_v exp x_v, x_gold, and the sum of the first over rows; 0 from row `real` on.

    x are the logits, here still without the bias, whose memory the first may take.
    """
    if gradients.can_use(logits) and bias.dtype == torch.float32:
        return logits, *gradients.softmax_gradient_(logits, bias, gold, gold_share, real)
    logits += bias
    each = torch.arange(len(gold), device=gold.device)
    gradient = torch.softmax(logits, dim=1)
    chosen = logits[each, gold].to(bias.dtype)
    log_sum = logits.amax(1).to(bias.dtype) - gradient.amax(1).to(bias.dtype).log()
    gradient[each, gold] -= gold_share
    for values in (gradient, log_sum, chosen):
        values[real:] = 0
    return gradient, log_sum, chosen, gradient.sum(0).to(bias.dtype)


class _ChunkedCrossEntropy(torch.autograd.Function):
    """d loss / d logits = p - (1 - eps) * onehot(y) - eps / V, so one pass over the vocabulary gives loss and gradients.

    What has a number for each word of the vocabulary is held in the autocast type if one is on, sums in the type of the
    weights. Of log p only two figures are needed, and both come without a table of it: with m the largest logit of a row,

        log sum_v exp x_v = x_m - log p_m          sum_v x_v = (sum_v W_v) t_i + sum_v b_v

    The last term of the gradient, the same number everywhere, never enters a table either: it sends -eps / V sum_v W_v to
    each t_i and -eps / V sum_i t_i to each W_v.
    """

    @staticmethod
    def forward(
        ctx: Any, readouts: Tensor, weight: Tensor, bias: Tensor, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        words, short = len(target), matmul_type(weight)
        spare = -words % WORDS
        with torch.autocast(readouts.device.type, enabled=False):
            narrow = weight.to(short)
            padded, wanted = functional.pad(readouts.to(short), (0, 0, 0, spare)), functional.pad(target, (0, spare))
            all_readouts, all_weights = readouts.to(weight.dtype).sum(0), weight.sum(0)
            uniform = smoothing / len(weight)
            d_readouts, d_bias = torch.empty_like(padded), torch.full_like(bias, -uniform * words)
            d_weight = (-uniform * all_readouts).repeat(len(weight), 1)
            plain, log_sums = weight.new_zeros(()), weight.new_zeros(())
            chunk = CHUNK // padded.element_size()
            logits = padded.new_empty(min(chunk, len(padded)), len(weight))
            for start in range(0, words, chunk):
                part, real = slice(start, start + chunk), words - start
                rows, gold = padded[part], wanted[part]
                gradient, log_sum, chosen, d_bias_of = _loss_of_chunk(
                    torch.mm(rows, narrow.T, out=logits[: len(rows)]), bias, gold, 1 - smoothing, real
                )
                plain += (log_sum - chosen).sum()
                log_sums += log_sum.sum()
                d_bias += d_bias_of
                torch.mm(gradient, narrow, out=d_readouts[part])
                if short == d_weight.dtype:
                    d_weight.addmm_(gradient.T, rows)
                else:
                    d_weight += gradient.T @ rows
            d_readouts -= (uniform * all_weights).to(short)
            all_logits = all_readouts @ all_weights + words * bias.sum()
            smoothed = (1 - smoothing) * plain + smoothing * log_sums - uniform * all_logits
        ctx.save_for_backward(d_readouts[:words].to(readouts.dtype), d_weight, d_bias)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        d_readouts, d_weight, d_bias = (gradient * upstream[0] for gradient in ctx.saved_tensors)
        return d_readouts, d_weight, d_bias, None, None
