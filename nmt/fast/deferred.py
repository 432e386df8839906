"""Deferred gradients: the gradient of a tensor that all decoder steps share is formed once, by one large product.

Autograd forms the gradient of a weight W at every step t, g_t x_t^T, and adds it to the sum so far: T small products, and T passes
over a matrix of the size of W. Here the backward pass of a step only saves x_t and g_t, and one product forms the sum at the end:

    dW = sum_t g_t x_t^T = [g_1 ... g_T] [x_1 ... x_T]^T

`attention.py` does the same for keys and annotations. `deferring()` turns this on for the steps inside it, in this thread. Outside of it
all is plain PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt.fast.linear import PackedWeight


class DeferredGradient:
    """Base class: holds what the backward pass of each step saves, and forms the gradients of the shared tensors from it."""

    compute_type: torch.dtype | None = None
    """The type that the steps compute with; None stands for that of matrix products."""

    def __init__(self, *_: Tensor) -> None:
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


GradientT = TypeVar("GradientT", bound=DeferredGradient)


class Deferral:
    """The tensors that the steps of one forward pass share, each with its deferred gradient."""

    def __init__(self) -> None:
        self.shared: dict[
            tuple[type[DeferredGradient], tuple[int, ...]], tuple[Sequence[Tensor], tuple[Tensor, ...], Any]
        ] = {}

    def share(self, kind: type[GradientT], *tensors: Tensor) -> tuple[tuple[Tensor, ...], GradientT]:
        """The tensors in the type that the steps compute with, and their deferred gradient, which is made of them."""
        key = kind, tuple(map(id, tensors))
        if key not in self.shared:
            gradient = kind(*tensors)
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


def current_deferral() -> Deferral | None:
    """That of `deferring()`, inside of it."""
    return _current.get()


def matmul_type(values: Tensor) -> torch.dtype:
    """The type that matrix products of such values are computed in: the autocast type if it is on, else their own."""
    device = values.device.type
    if torch.is_autocast_enabled(device) and values.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return values.dtype


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


# --- linear layers --------------------------------------------------------------------------------------------------


class DeferredLinear(nn.Linear):
    """W x + b whose weight gradient is deferred."""

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        current = current_deferral()
        if current is None:
            return super().forward(values)
        shared = (self.weight,) if self.bias is None else (self.weight, self.bias)
        views, gradient = current.share(LinearGradient, *shared)
        return _Linear.apply(values.to(views[0].dtype), gradient, *views)  # type: ignore[no-any-return, no-untyped-call]

    if TYPE_CHECKING:
        __call__ = forward


class LinearGradient(DeferredGradient):
    """x_t and g_t -> dW = sum_t g_t x_t^T, db = sum_t g_t. Holds W packed, since all steps multiply by it."""

    def __init__(self, weight: Float[Tensor, "G D"], *_: Tensor) -> None:
        super().__init__()
        self.weight = PackedWeight(weight, matmul_type(weight))

    def form(self) -> tuple[Tensor, ...]:
        values, upstream = (saved.flatten(0, -2) for saved in self.take())
        return upstream.T @ values, upstream.sum(0)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, gradient: LinearGradient, _: Tensor, bias: Tensor | None = None) -> Tensor:
        ctx.save_for_backward(values)
        ctx.gradient = gradient
        return gradient.weight.product(values, bias)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (values,) = ctx.saved_tensors
        if ctx.needs_input_grad[2]:
            ctx.gradient.save(values, upstream[0])
        d_values = ctx.gradient.weight.product_back(upstream[0]) if ctx.needs_input_grad[0] else None
        return d_values, *[None] * (len(ctx.needs_input_grad) - 1)
