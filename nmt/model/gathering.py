"""Faster gradients for a loop over time steps: the gradient of what all steps share is formed once.

Autograd forms the gradient of a weight W anew at every step t, g_t x_t^T, and adds it to the sum so far. Here the steps
only keep x_t and g_t on the way back, and one product makes the sum when all of them are there:

    dW = sum_t g_t x_t^T = [g_1 ... g_T] [x_1 ... x_T]^T

The same goes for the annotations that every step sums up, and for the keys of the additive score. `gathering()` turns this
on for what runs within it, and with it the compiled kernels, where there are some for it; outside of it the same modules are
plain PyTorch, the reference that the tests compare with.
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

from nmt.model.precision import at_least_fp32, matmul_type
from nmt.native import gradients, kernels


class Gathering:
    """One pass over the steps: the tensors that they have shared so far, as the steps see them."""

    def __init__(self) -> None:
        self.shared: dict[tuple[type[Uses], int], tuple[Sequence[Tensor], tuple[Tensor, ...], Uses]] = {}

    def share(self, uses: type[Uses], *tensors: Tensor) -> tuple[tuple[Tensor, ...], Uses]:
        """The tensors in the type that they are used in, and the uses that their gradients will be made of."""
        key = uses, id(tensors[0])
        if key not in self.shared:
            log = uses()
            views = _Shared.apply(log, uses.shared_type or matmul_type(tensors[0]), *tensors)  # type: ignore[no-untyped-call]
            self.shared[key] = tensors, views, log  # with the tensors themselves, lest another takes over the id
        return self.shared[key][1:]


_current: ContextVar[Gathering | None] = ContextVar("gathering", default=None)


@contextmanager
def gathering(on: bool = True) -> Iterator[None]:
    """Form gradients of what the steps within share once. They cannot be differentiated again."""
    token = _current.set(Gathering() if on else None)
    try:
        yield
    finally:
        _current.reset(token)


def is_gathering() -> bool:
    """Whether what runs now is within `gathering()`."""
    return _current.get() is not None


# --- what the steps call ------------------------------------------------------------------------------------------


class StepLinear(nn.Linear):
    """W x + b, which every step computes."""

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        return step_linear(values, self.weight, self.bias)

    def added_to(self, total: Float[Tensor, "... G"], values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        """W x + b on top of something."""
        return total + self(values)

    if TYPE_CHECKING:
        __call__ = forward


def step_linear(
    values: Float[Tensor, "... D"], weight: Float[Tensor, "G D"], bias: Float[Tensor, " G"] | None
) -> Float[Tensor, "... G"]:
    """W x + b."""
    current = _current.get()
    if current is None:
        return functional.linear(values, weight, bias)
    views, uses = current.share(LinearUses, *((weight,) if bias is None else (weight, bias)))
    return _Linear.apply(values.to(views[0].dtype), uses, *views)  # type: ignore[no-any-return, no-untyped-call]


def weighted_sum(weights: Float[Tensor, "N S"], annotations: Float[Tensor, "N S A"]) -> Float[Tensor, "N A"]:
    """c_i = sum_j alpha_ij h_j."""
    current = _current.get()
    if current is None:
        return torch.bmm(weights.unsqueeze(1).to(annotations.dtype), annotations).squeeze(1)
    (shared,), uses = current.share(SumUses, annotations)
    return _WeightedSum.apply(weights.to(shared.dtype), shared, uses)  # type: ignore[no-any-return, no-untyped-call]


def additive_scores(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"], v: nn.Linear) -> Float[Tensor, "N S"]:
    """v^T tanh(q + k_j) = sum v - 2 v^T sigma(-2 (q + k_j)); on a CPU sigma is four (bf16) to ten times (fp32) as fast as tanh."""
    current = _current.get()
    if current is None:
        return _scores_of(_complement(query, keys), v.weight)
    (shared, weight), uses = current.share(AdditiveUses, keys, v.weight)
    return _AdditiveScores.apply(query.to(shared.dtype), shared, weight, uses)  # type: ignore[no-any-return, no-untyped-call]


def _complement(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"]) -> Float[Tensor, "N S D"]:
    """sigma(-2 (q + k_j)) = (1 - tanh(q + k_j)) / 2."""
    return torch.sub((-2 * query).unsqueeze(1), keys, alpha=2).sigmoid_()


def _scores_of(complement: Float[Tensor, "N S D"], v: Float[Tensor, "1 D"]) -> Float[Tensor, "N S"]:
    """v^T tanh(q + k_j) of (1 - tanh(q + k_j)) / 2."""
    return v.sum() - 2 * functional.linear(complement, v).squeeze(-1)


def can_attend_additively(keys: Float[Tensor, "N S D"]) -> bool:
    """Whether a kernel may attend to such keys."""
    return is_gathering() and gradients.can_use(keys)


def attend_additively(
    query: Float[Tensor, "N H"],
    asks: nn.Module,
    keys: Float[Tensor, "N S D"],
    v: nn.Linear,
    annotations: Float[Tensor, "N S A"],
    mask: Bool[Tensor, "N S"],
) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N S"]] | None:
    """Context and weights of the additive score with q = asks(query), by a kernel; None if a key is too large for it."""
    current = _current.get()
    assert current is not None
    shared, uses = current.share(AttentionUses, keys, v.weight, annotations)
    assert isinstance(uses, AttentionUses)
    if not uses.look_at(*shared[:2]):
        return None
    return _AdditiveAttention.apply(asks(query), mask, uses, *shared)  # type: ignore[no-any-return, no-untyped-call]


def dot_scores(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"]) -> Float[Tensor, "N S"]:
    """q^T k_j."""
    current = _current.get()
    if current is None:
        return torch.bmm(keys.to(query.dtype), query.unsqueeze(-1)).squeeze(-1)
    (shared,), uses = current.share(DotUses, keys)
    return _DotScores.apply(query.to(shared.dtype), shared, uses)  # type: ignore[no-any-return, no-untyped-call]


# --- uses: what the steps keep on the way back, and the gradients that it makes -------------------------------------


class Uses:
    """What the steps that share some tensors keep on the way back."""

    def __init__(self) -> None:
        self.kept: list[tuple[Tensor, ...]] = []

    shared_type: torch.dtype | None = None
    """What the steps compute with; None is the autocast type, if one is on."""

    def keep(self, *tensors: Tensor) -> None:
        self.kept.append(tensors)

    def take(self) -> list[Tensor]:
        """All that was kept, steps first; nothing is left, so that another backward pass starts anew."""
        kept = [torch.stack(tensors) for tensors in zip(*self.kept, strict=True)]
        self.kept.clear()
        return kept

    def gradients(self) -> tuple[Tensor, ...]:
        """Of the shared tensors, in their order."""
        raise AssertionError(f"{type(self).__name__} does not say what it makes of what was kept")


class LinearUses(Uses):
    """x_t and g_t -> dW = sum_t g_t x_t^T, db = sum_t g_t."""

    def gradients(self) -> tuple[Tensor, ...]:
        values, upstream = (kept.flatten(0, -2) for kept in self.take())
        return upstream.T @ values, upstream.sum(0)


class SumUses(Uses):
    """alpha_t and g_t -> dh_j = sum_t alpha_tj g_t."""

    def gradients(self) -> tuple[Tensor, ...]:
        weights, upstream = self.take()  # [T N S], [T N A]
        return (torch.bmm(weights.permute(1, 2, 0), upstream.transpose(0, 1)),)


class DotUses(Uses):
    """q_t and g_t -> dk_j = sum_t g_tj q_t."""

    def gradients(self) -> tuple[Tensor, ...]:
        queries, upstream = self.take()  # [T N D], [T N S]
        return (torch.bmm(upstream.permute(1, 2, 0), queries.transpose(0, 1)),)


class AdditiveUses(Uses):
    """dk and dv, added up on the way: what they are made of has [N S D] numbers a step."""

    def keep(self, *tensors: Tensor) -> None:
        if not self.kept:
            self.kept.append(tuple(at_least_fp32(tensor).clone() for tensor in tensors))
            return
        for total, tensor in zip(self.kept[0], tensors, strict=True):
            total.add_(tensor)

    def gradients(self) -> tuple[Tensor, ...]:
        keys, v = self.take()  # [1 N S D], [1 1 D]
        return keys[0], v[0]


class AttentionUses(Uses):
    """e^(2 q_t), alpha_t, what arrives at the scores and at the context -> dk, dv, and dh_j = sum_t alpha_tj g_t."""

    shared_type = torch.float32
    odds: Float[Tensor, "N S D"]
    """e^(2 k_j)."""
    v: Float[Tensor, " D"]
    can_attend: bool | None = None
    """Whether no key is too large for its odds; None before any was looked at."""

    def look_at(self, keys: Float[Tensor, "N S D"], v: Float[Tensor, "1 D"]) -> bool:
        """Make ready what all steps read; whether they can."""
        if self.can_attend is None:
            odds = kernels.odds_of(keys.detach())
            self.can_attend = odds is not None
            self.odds, self.v = keys if odds is None else odds, v.detach().flatten()
        return self.can_attend

    def gradients(self) -> tuple[Tensor, ...]:
        asked, weights, d_scores, d_contexts = self.take()  # [T N D], [T N S], [T N S], [T N A]
        d_keys, d_v = gradients.additive_keys_back(asked, d_scores, self.odds, self.v)
        return d_keys, d_v.unsqueeze(0), torch.bmm(weights.permute(1, 2, 0), d_contexts.transpose(0, 1))


# --- the operations themselves --------------------------------------------------------------------------------------


class _Shared(torch.autograd.Function):
    """Tensors as they are, in the given type. Its backward runs after that of all steps."""

    @staticmethod
    def forward(ctx: Any, uses: Uses, dtype: torch.dtype, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.uses, ctx.dtypes = uses, [tensor.dtype for tensor in tensors]
        ctx.set_materialize_grads(False)  # the steps send nothing along the graph: it all comes from `uses`
        return tuple(tensor.view_as(tensor) if tensor.dtype == dtype else tensor.to(dtype) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *_: None) -> tuple[Tensor | None, ...]:
        if not ctx.uses.kept:
            return (None, None, *[None] * len(ctx.dtypes))
        gradients = zip(ctx.uses.gradients(), ctx.dtypes, strict=False)  # a layer may have no bias
        return (None, None, *[gradient.to(dtype) for gradient, dtype in gradients])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, uses: Uses, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        ctx.save_for_backward(values, weight)
        ctx.uses = uses
        return functional.linear(values, weight, bias)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        values, weight = ctx.saved_tensors
        if ctx.needs_input_grad[2]:
            ctx.uses.keep(values, upstream[0])
        return (upstream[0] @ weight if ctx.needs_input_grad[0] else None, *[None] * (len(ctx.needs_input_grad) - 1))


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, annotations: Tensor, uses: Uses) -> Tensor:
        ctx.save_for_backward(weights, annotations)
        ctx.uses = uses
        return torch.bmm(weights.unsqueeze(1), annotations).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        weights, annotations = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            ctx.uses.keep(weights, upstream[0])
        return torch.bmm(annotations, upstream[0].unsqueeze(-1)).squeeze(-1), None, None


class _DotScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, uses: Uses) -> Tensor:
        ctx.save_for_backward(query, keys)
        ctx.uses = uses
        return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, keys = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            ctx.uses.keep(query, upstream[0])
        return torch.bmm(upstream[0].unsqueeze(1), keys).squeeze(1), None, None


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, uses: Uses) -> Tensor:
        complement = _complement(query, keys)
        ctx.save_for_backward(complement, v)
        ctx.uses = uses
        return _scores_of(complement, v)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        complement, v = ctx.saved_tensors
        before_tanh = torch.ops.aten.sigmoid_backward(upstream[0].unsqueeze(-1) * (4 * v), complement)
        if ctx.needs_input_grad[1]:
            d_v = upstream[0].sum() - 2 * (upstream[0].reshape(1, -1) @ complement.flatten(0, 1))
            ctx.uses.keep(before_tanh, d_v)
        return before_tanh.sum(1), None, None, None


class _AdditiveAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, asked: Tensor, mask: Tensor, uses: AttentionUses, *shared: Tensor) -> tuple[Tensor, Tensor]:
        _, _, annotations = shared
        each = torch.arange(len(asked))
        contexts, weights, odds = kernels.additive_attention(asked.float(), uses.odds, uses.v, mask, annotations, each)
        ctx.save_for_backward(odds, weights, annotations)
        ctx.uses, ctx.dtype = uses, asked.dtype
        return contexts.to(asked.dtype), weights

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        odds, weights, annotations = ctx.saved_tensors
        uses, (d_contexts, d_weights) = ctx.uses, (each.float() for each in upstream)
        d_scores, d_asked = gradients.additive_attention_back(
            d_contexts, d_weights, odds, uses.odds, uses.v, annotations, weights
        )
        uses.keep(odds, weights, d_scores, d_contexts)
        return d_asked.to(ctx.dtype), *[None] * 5
