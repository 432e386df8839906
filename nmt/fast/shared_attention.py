"""Attention in search: the hypotheses of a sentence read its memory together, and one kernel fuses the additive attention.

A beam of K reads annotations and keys from memory once, not K times. The fused kernel holds no [N S D] numbers.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn

from nmt.fast.beam_memory import SharedMemory
from nmt.fast.kernels import decoding as kernels
from nmt.fast.local_attention import windows_of
from nmt.model.attention import Attention, AttentionMemory, AttentionOutput, MultiHeadAttention
from nmt.model.readout import Readout
from nmt.model.scores import AdditiveScore


class SharingAttention(nn.Module):
    """Treats the hypotheses of a sentence as time steps of an attention, so that its memory is read once for all of them."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        if not isinstance(memory, SharedMemory) or memory.hypotheses is None:
            attended: AttentionOutput = super().forward(queries, positions, memory, coverage)
            return attended
        return _to_hypotheses(super().forward(*_to_steps(queries, positions, memory, coverage)), memory)


class SharedAttention(SharingAttention, Attention):
    """One head."""


class SharedMultiHeadAttention(SharingAttention, MultiHeadAttention):
    """Several heads."""


def _to_steps(
    queries: Float[Tensor, "N 1 H"],
    positions: Int[Tensor, "N 1"],
    memory: SharedMemory,
    coverage: Float[Tensor, "N 1 S"] | None,
) -> tuple[Tensor, Tensor, SharedMemory, Tensor | None]:
    """The arguments of attention with the hypotheses of a sentence as time steps, padded to the sentence with the most."""
    rows = memory.hypotheses
    assert rows is not None
    padded = None if coverage is None else rows.to_padded(coverage.squeeze(1))
    by_sentence = replace(memory, hypotheses=None)
    return rows.to_padded(queries.squeeze(1)), rows.to_padded(positions.squeeze(1)), by_sentence, padded


def _to_hypotheses(attended: AttentionOutput, memory: SharedMemory) -> AttentionOutput:
    """The results without padding, one time step per hypothesis."""
    rows = memory.hypotheses
    assert rows is not None
    centers = None if attended.centers is None else rows.to_flat(attended.centers).unsqueeze(1)
    return AttentionOutput(
        rows.to_flat(attended.contexts).unsqueeze(1), rows.to_flat(attended.weights).unsqueeze(1), centers
    )


class FusedAttention(SharedAttention):
    """Attention with an additive score in one kernel call per step.

    Reads e^(2 k_j) instead of the keys. Falls back to plain arithmetic if a key is too large for that in fp32.
    """

    def build_memory(
        self, annotations: Float[Tensor, "B S A"], mask: Bool[Tensor, "B S"], summary: Float[Tensor, "B C"]
    ) -> SharedMemory:
        memory = SharedMemory.of(super().build_memory(annotations.float(), mask, summary))
        keys = memory.keys.float()
        return replace(memory, exp_keys=kernels.exp_of_keys(keys) if kernels.can_use(keys) else None)

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        if not isinstance(memory, SharedMemory) or memory.exp_keys is None:
            return super().forward(queries, positions, memory, coverage)
        count, steps = queries.shape[:2]
        rows = torch.arange(count) if memory.hypotheses is None else memory.hypotheses.segment_ids
        score = self.score
        assert isinstance(score, AdditiveScore)
        centers, starts, factors = windows_of(self.window, queries, positions, memory)
        contexts, weights, _ = kernels.additive_attention(
            score.query(queries.flatten(0, 1)).float(),
            memory.exp_keys,
            score.v.weight.squeeze(0),
            memory.mask,
            memory.annotations,
            rows.repeat_interleave(steps) if steps > 1 else rows,
            None if starts is None else starts.flatten(),
            None if factors is None else factors.flatten(0, 1),
        )
        return AttentionOutput(contexts.view(count, steps, -1), weights.view(count, steps, -1), centers)


class ProjectedAttention(Attention):
    """An attention with contexts W c_i = sum_j alpha_ij (W h_j): W h_j once per sentence replaces W c_i at every step."""

    def __init__(self, attention: Attention, projection: nn.Linear) -> None:
        super().__init__(attention.score, attention.window)
        self.attention, self.projection = attention, projection

    def build_memory(
        self, annotations: Float[Tensor, "B S A"], mask: Bool[Tensor, "B S"], summary: Float[Tensor, "B C"]
    ) -> AttentionMemory:
        memory = self.attention.build_memory(annotations, mask, summary)
        return replace(memory, annotations=self.projection(memory.annotations).to(memory.annotations.dtype))

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        return self.attention(queries, positions, memory, coverage)


class ProjectedReadout(Readout):
    """h~_t = tanh(W_c [c_t; h_t]) from contexts already multiplied with their part of W_c, see `ProjectedAttention`."""

    def __init__(self, state: nn.Linear) -> None:
        super().__init__()
        self.state = state

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... R"]
    ) -> Float[Tensor, "... R"]:
        return torch.tanh(context + self.state(hidden))
