"""Deferred gradients: the gradient of a tensor that all decoder steps share is formed once, by one large product.

Autograd forms the gradient of a weight W at every step t, g_t x_t^T, and adds it to the sum so far: T small products, and T passes
over a matrix of the size of W. Here the backward pass of a step only saves x_t and g_t, and one product forms the sum at the end:

    dW = sum_t g_t x_t^T = [g_1 ... g_T] [x_1 ... x_T]^T

The same holds for the annotations that every step sums, and for the keys of the scores. `deferring()` turns this on for the steps
inside it, in this thread. Outside of it the functions here are plain PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from nmt.fast.kernels import decoding as decoding_kernels
from nmt.fast.kernels import training as training_kernels
from nmt.model.precision import at_least_fp32


class Deferral:
    """The tensors that the steps of one forward pass share, each with its deferred gradient."""

    def __init__(self) -> None:
        self.shared: dict[
            tuple[type[DeferredGradient], tuple[int, ...]], tuple[Sequence[Tensor], tuple[Tensor, ...], Any]
        ] = {}

    def share(self, kind: type[DeferredGradient], *tensors: Tensor) -> tuple[tuple[Tensor, ...], Any]:
        """The tensors in the type that the steps compute with, and their deferred gradient."""
        key = kind, tuple(map(id, tensors))
        if key not in self.shared:
            gradient = kind()
            views = _Shared.apply(gradient, kind.compute_type or matmul_type(tensors[0]), *tensors)  # type: ignore[no-untyped-call]
            self.shared[key] = tensors, views, gradient  # a reference to the tensors keeps their ids from being reused
        return self.shared[key][1:]


_current: ContextVar[Deferral | None] = ContextVar("deferral", default=None)


@contextmanager
def deferring(on: bool = True) -> Iterator[None]:
    """Defer the gradients of the tensors that the steps inside share. They cannot be differentiated twice."""
    token = _current.set(Deferral() if on else None)
    try:
        yield
    finally:
        _current.reset(token)


def is_deferring() -> bool:
    """Whether the caller runs inside `deferring()`."""
    return _current.get() is not None


def matmul_type(values: Tensor) -> torch.dtype:
    """The type that matrix products of such values are computed in: the autocast type if it is on, else their own."""
    device = values.device.type
    if torch.is_autocast_enabled(device) and values.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return values.dtype


# --- functions of a step --------------------------------------------------------------------------------------------


class DeferredLinear(nn.Linear):
    """W x + b whose weight gradient is deferred."""

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        return step_linear(values, self.weight, self.bias)

    if TYPE_CHECKING:
        __call__ = forward


def step_linear(
    values: Float[Tensor, "... D"], weight: Float[Tensor, "G D"], bias: Float[Tensor, " G"] | None
) -> Float[Tensor, "... G"]:
    """W x + b."""
    current = _current.get()
    if current is None:
        return functional.linear(values, weight, bias)
    views, gradient = current.share(LinearGradient, *((weight,) if bias is None else (weight, bias)))
    return _Linear.apply(values.to(views[0].dtype), gradient, *views)  # type: ignore[no-any-return, no-untyped-call]


def step_sum(weights: Float[Tensor, "N S"], annotations: Float[Tensor, "N S A"]) -> Float[Tensor, "N A"]:
    """c_i = sum_j alpha_ij h_j."""
    current = _current.get()
    if current is None:
        return torch.bmm(weights.unsqueeze(1).to(annotations.dtype), annotations).squeeze(1)
    (shared,), gradient = current.share(SumGradient, annotations)
    return _WeightedSum.apply(weights.to(shared.dtype), shared, gradient)  # type: ignore[no-any-return, no-untyped-call]


def additive_scores(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"], v: nn.Linear) -> Float[Tensor, "N S"]:
    """v^T tanh(q + k_j) = sum v - 2 v^T sigma(-2 (q + k_j)): on a CPU sigma is four (bf16) to ten times (fp32) as fast as tanh."""
    current = _current.get()
    if current is None:
        return _scores_of(_complement(query, keys), v.weight)
    (shared, weight), gradient = current.share(AdditiveScoreGradient, keys, v.weight)
    return _AdditiveScores.apply(query.to(shared.dtype), shared, weight, gradient)  # type: ignore[no-any-return, no-untyped-call]


def _complement(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"]) -> Float[Tensor, "N S D"]:
    """sigma(-2 (q + k_j)) = (1 - tanh(q + k_j)) / 2."""
    return torch.sub((-2 * query).unsqueeze(1), keys, alpha=2).sigmoid_()


def _scores_of(complement: Float[Tensor, "N S D"], v: Float[Tensor, "1 D"]) -> Float[Tensor, "N S"]:
    """v^T tanh(q + k_j) from (1 - tanh(q + k_j)) / 2."""
    return v.sum() - 2 * functional.linear(complement, v).squeeze(-1)


def dot_scores(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"]) -> Float[Tensor, "N S"]:
    """q^T k_j."""
    current = _current.get()
    if current is None:
        return torch.bmm(keys.to(query.dtype), query.unsqueeze(-1)).squeeze(-1)
    (shared,), gradient = current.share(DotScoreGradient, keys)
    return _DotScores.apply(query.to(shared.dtype), shared, gradient)  # type: ignore[no-any-return, no-untyped-call]


def can_attend_additively(keys: Float[Tensor, "N S D"]) -> bool:
    """Whether `attend_additively` may be called: inside `deferring()`, with kernels for such keys."""
    return is_deferring() and training_kernels.can_use(keys)


def attend_additively(
    query: Float[Tensor, "N H"],
    project: nn.Module,
    keys: Float[Tensor, "N S D"],
    v: nn.Linear,
    annotations: Float[Tensor, "N S A"],
    mask: Bool[Tensor, "N S"],
) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N S"]] | None:
    """Context and weights of an additive step with q = project(query), by one kernel; None if a key is too large for it."""
    current = _current.get()
    assert current is not None
    shared, gradient = current.share(AttentionGradient, keys, v.weight, annotations)
    if not gradient.prepare(*shared[:2]):
        return None
    return _AdditiveAttention.apply(project(query), mask, gradient, *shared)  # type: ignore[no-any-return, no-untyped-call]


# --- deferred gradients ---------------------------------------------------------------------------------------------


class DeferredGradient:
    """Base class: holds what the backward pass of each step saves, and forms the gradients of the shared tensors from it."""

    compute_type: torch.dtype | None = None
    """The type that the steps compute with; None stands for that of matrix products."""

    def __init__(self) -> None:
        self.saved: list[tuple[Tensor, ...]] = []

    def save(self, *tensors: Tensor) -> None:
        self.saved.append(tensors)

    def take(self) -> list[Tensor]:
        """Everything saved, stacked along the steps. Clears it, so that another backward pass starts anew."""
        saved = [torch.stack(tensors) for tensors in zip(*self.saved, strict=True)]
        self.saved.clear()
        return saved

    def form(self) -> tuple[Tensor, ...]:
        """The gradients of the shared tensors, in their order."""
        raise NotImplementedError


class LinearGradient(DeferredGradient):
    """x_t and g_t -> dW = sum_t g_t x_t^T, db = sum_t g_t."""

    def form(self) -> tuple[Tensor, ...]:
        values, upstream = (saved.flatten(0, -2) for saved in self.take())
        return upstream.T @ values, upstream.sum(0)


class SumGradient(DeferredGradient):
    """alpha_t and g_t -> dh_j = sum_t alpha_tj g_t."""

    def form(self) -> tuple[Tensor, ...]:
        weights, upstream = self.take()  # [T N S], [T N A]
        return (torch.bmm(weights.permute(1, 2, 0), upstream.transpose(0, 1)),)


class DotScoreGradient(DeferredGradient):
    """q_t and g_t -> dk_j = sum_t g_tj q_t."""

    def form(self) -> tuple[Tensor, ...]:
        queries, upstream = self.take()  # [T N D], [T N S]
        return (torch.bmm(upstream.permute(1, 2, 0), queries.transpose(0, 1)),)


class AdditiveScoreGradient(DeferredGradient):
    """dk and dv, summed at every step: to save their [N S D] numbers per step would take more memory than time."""

    def save(self, *tensors: Tensor) -> None:
        if not self.saved:
            self.saved.append(tuple(at_least_fp32(tensor).clone() for tensor in tensors))
            return
        for total, tensor in zip(self.saved[0], tensors, strict=True):
            total.add_(tensor)

    def form(self) -> tuple[Tensor, ...]:
        keys, v = self.take()  # [1 N S D], [1 1 D]
        return keys[0], v[0]


class AttentionGradient(DeferredGradient):
    """e^(2 q_t), alpha_t and the gradients of scores and context -> dk, dv, and dh_j = sum_t alpha_tj g_t."""

    compute_type = torch.float32
    exp_keys: Float[Tensor, "N S D"]
    """e^(2 k_j)."""
    v: Float[Tensor, " D"]
    fits: bool | None = None
    """Whether all keys are small enough for `exp_of_keys`; None before the first step."""

    def prepare(self, keys: Float[Tensor, "N S D"], v: Float[Tensor, "1 D"]) -> bool:
        """Compute e^(2k) at the first step; return whether the kernel can be used."""
        if self.fits is None:
            exp_keys = decoding_kernels.exp_of_keys(keys.detach())
            self.fits = exp_keys is not None
            self.exp_keys, self.v = keys if exp_keys is None else exp_keys, v.detach().flatten()
        return self.fits

    def form(self) -> tuple[Tensor, ...]:
        exp_queries, weights, d_scores, d_contexts = self.take()  # [T N D], [T N S], [T N S], [T N A]
        d_keys, d_v = training_kernels.additive_keys_back(exp_queries, d_scores, self.exp_keys, self.v)
        return d_keys, d_v.unsqueeze(0), torch.bmm(weights.permute(1, 2, 0), d_contexts.transpose(0, 1))


# --- operations -----------------------------------------------------------------------------------------------------


class _Shared(torch.autograd.Function):
    """Passes tensors on in a type. Its backward runs after those of all steps, and forms the deferred gradients."""

    @staticmethod
    def forward(ctx: Any, gradient: DeferredGradient, dtype: torch.dtype, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.gradient, ctx.dtypes = gradient, [tensor.dtype for tensor in tensors]
        ctx.set_materialize_grads(False)  # the steps send no gradients along the graph
        return tuple(tensor.view_as(tensor) if tensor.dtype == dtype else tensor.to(dtype) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *_: None) -> tuple[Tensor | None, ...]:
        if not ctx.gradient.saved:
            return (None, None, *[None] * len(ctx.dtypes))
        gradients = zip(ctx.gradient.form(), ctx.dtypes, strict=False)  # a layer may have no bias
        return (None, None, *[gradient.to(dtype) for gradient, dtype in gradients])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, gradient: DeferredGradient, weight: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        ctx.save_for_backward(values, weight)
        ctx.gradient = gradient
        return functional.linear(values, weight, bias)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        values, weight = ctx.saved_tensors
        if ctx.needs_input_grad[2]:
            ctx.gradient.save(values, upstream[0])
        return (upstream[0] @ weight if ctx.needs_input_grad[0] else None, *[None] * (len(ctx.needs_input_grad) - 1))


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, annotations: Tensor, gradient: DeferredGradient) -> Tensor:
        ctx.save_for_backward(weights, annotations)
        ctx.gradient = gradient
        return torch.bmm(weights.unsqueeze(1), annotations).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        weights, annotations = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            ctx.gradient.save(weights, upstream[0])
        return torch.bmm(annotations, upstream[0].unsqueeze(-1)).squeeze(-1), None, None


class _DotScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, gradient: DeferredGradient) -> Tensor:
        ctx.save_for_backward(query, keys)
        ctx.gradient = gradient
        return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, keys = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            ctx.gradient.save(query, upstream[0])
        return torch.bmm(upstream[0].unsqueeze(1), keys).squeeze(1), None, None


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, gradient: DeferredGradient) -> Tensor:
        complement = _complement(query, keys)
        ctx.save_for_backward(complement, v)
        ctx.gradient = gradient
        return _scores_of(complement, v)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        complement, v = ctx.saved_tensors
        before_tanh = torch.ops.aten.sigmoid_backward(upstream[0].unsqueeze(-1) * (4 * v), complement)
        if ctx.needs_input_grad[1]:
            d_v = upstream[0].sum() - 2 * (upstream[0].reshape(1, -1) @ complement.flatten(0, 1))
            ctx.gradient.save(before_tanh, d_v)
        return before_tanh.sum(1), None, None, None


class _AdditiveAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, mask: Tensor, gradient: AttentionGradient, *shared: Tensor
    ) -> tuple[Tensor, Tensor]:
        _, _, annotations = shared
        rows = torch.arange(len(projected))
        contexts, weights, exp_queries = decoding_kernels.additive_attention(
            projected.float(), gradient.exp_keys, gradient.v, mask, annotations, rows
        )
        ctx.save_for_backward(exp_queries, weights, annotations)
        ctx.gradient, ctx.dtype = gradient, projected.dtype
        return contexts.to(projected.dtype), weights

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        exp_queries, weights, annotations = ctx.saved_tensors
        gradient, (d_contexts, d_weights) = ctx.gradient, (each.float() for each in upstream)
        d_scores, d_queries = training_kernels.additive_attention_back(
            d_contexts, d_weights, exp_queries, gradient.exp_keys, gradient.v, annotations, weights
        )
        gradient.save(exp_queries, weights, d_scores, d_contexts)
        return d_queries.to(ctx.dtype), *[None] * 5
