"""Attention in search: the hypotheses of a sentence read its memory together, and one kernel fuses the additive attention.

A beam of K reads annotations and keys from memory once, not K times. The fused kernel holds no [N S D] numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.fast.attention import windows_of
from nmt.fast.kernels import decoding as kernels
from nmt.model.attention import Attention, AttentionMemory, AttentionOutput, MultiHeadAttention
from nmt.model.scores import AdditiveScore
from nmt.search.segments import Segments


@dataclass(frozen=True)
class SharedMemory(AttentionMemory):
    """Annotations and keys, one row per sentence, and the sentence that each hypothesis reads."""

    hypotheses: Segments | None = None
    """The hypotheses of each sentence; None where hypothesis i reads sentence i."""
    exp_keys: Float[Tensor, "B S D"] | None = None
    """e^(2 k_j), if a kernel computes the additive score from it."""

    @property
    def row_mask(self) -> Bool[Tensor, "N S"]:
        return self.mask if self.hypotheses is None else self.mask[self.hypotheses.segment_ids]

    @classmethod
    def of(cls, memory: AttentionMemory) -> SharedMemory:
        """A plain memory as a shared one."""
        if isinstance(memory, SharedMemory):
            return memory
        return cls(memory.annotations, memory.keys, memory.mask, memory.summary)

    def read_by(self, rows: Int[Tensor, " N"]) -> SharedMemory:
        """The same memory, read by N hypotheses."""
        sentences = len(self.mask)
        if len(rows) == sentences and torch.equal(rows, torch.arange(sentences, device=rows.device)):
            return self
        return replace(self, hypotheses=Segments(rows, sentences))

    def in_bf16(self) -> SharedMemory:
        """The memory in bf16 for steps that multiply in bf16; the kernel for `exp_keys` needs fp32."""
        if self.exp_keys is not None:
            return self
        annotations = self.annotations.to(torch.bfloat16)
        keys = annotations if self.keys is self.annotations else self.keys
        keys = keys.to(torch.bfloat16) if keys.is_floating_point() else keys  # positions stay numbers
        return replace(self, annotations=annotations, keys=keys)

    def select(self, rows: Int[Tensor, " M"]) -> SharedMemory:
        """The memory of these sentences, in their order."""
        plain = AttentionMemory(self.annotations, self.keys, self.mask, self.summary).select(rows)
        exp_keys = None if self.exp_keys is None else self.exp_keys[rows]
        return replace(SharedMemory.of(plain), exp_keys=exp_keys)


class SharingAttention(nn.Module):
    """Treats the hypotheses of a sentence as time steps of an attention, so that its memory is read once for all of them."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        attended: AttentionOutput
        if not isinstance(memory, SharedMemory) or memory.hypotheses is None:
            attended = super().forward(queries, positions, memory, coverage)
            return attended
        rows = memory.hypotheses
        attended = super().forward(
            rows.to_padded(queries.squeeze(1)),
            rows.to_padded(positions.squeeze(1)),
            replace(memory, hypotheses=None),
            None if coverage is None else rows.to_padded(coverage.squeeze(1)),
        )
        centers = None if attended.centers is None else rows.to_flat(attended.centers).unsqueeze(1)
        contexts, weights = rows.to_flat(attended.contexts), rows.to_flat(attended.weights)
        return AttentionOutput(contexts.unsqueeze(1), weights.unsqueeze(1), centers)


class SharedAttention(SharingAttention, Attention):
    """One head."""


class SharedMultiHeadAttention(SharingAttention, MultiHeadAttention):
    """Several heads."""


class FusedAttention(SharedAttention):
    """Attention with an additive score and a softmax in one kernel call per step.

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
        addends = None if coverage is None else self.weigh_coverage(queries, coverage)
        contexts, weights, _ = kernels.additive_attention(
            score.query(queries.flatten(0, 1)).float(),
            memory.exp_keys,
            score.v.weight.squeeze(0),
            memory.mask,
            memory.annotations,
            rows.repeat_interleave(steps) if steps > 1 else rows,
            None if addends is None else addends.flatten(0, 1),
            None if starts is None else starts.flatten(),
            None if factors is None else factors.flatten(0, 1),
        )
        return AttentionOutput(contexts.view(count, steps, -1), weights.view(count, steps, -1), centers)
