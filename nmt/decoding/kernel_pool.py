"""The pool of finished hypotheses by a compiled kernel, where there is one for it."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from nmt.decoding.hypothesis import Picked, Pool
from nmt.fast import is_on
from nmt.fast.kernels import decoding as kernels


class KernelPool(Pool):
    """The same pool; without a coverage penalty, one kernel call settles a step."""

    def settle(
        self, picked: Picked, coverage: Float[Tensor, "B W S"] | None, first: int, time: int
    ) -> Float[Tensor, "B W"]:
        if coverage is not None or not is_on() or not kernels.can_use(picked.total):
            return super().settle(picked, coverage, first, time)
        limits = self.limits
        return kernels.settle(
            *(picked.total, picked.tokens, self.scores, self.nodes, limits.max_lengths, limits.length_penalties),
            first=first,
            length=time + 1,
            horizon=limits.horizon,
            eos=limits.eos,
        )
