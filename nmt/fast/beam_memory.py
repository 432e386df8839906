"""Memory that all hypotheses of a sentence share, so that a beam of K does not copy annotations and keys K times."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.model.attention import AttentionMemory
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
