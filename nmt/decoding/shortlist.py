"""Lexical shortlists: the target tokens that a sentence may be translated with.

These are the likely translations of its source tokens, and the most frequent target tokens. The output layer then has a few
hundred rows instead of the whole vocabulary (Jean et al. 2015, 3.1, for parts of a text; Marian, for batches). Each sentence
has its own list, over which probabilities are normalized, so a line's translation does not depend on its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.bundle.folder import load_tensors, save_tensors
from nmt.errors import DataError
from nmt.runtime.equality import EqualByValue
from nmt.search.segments import Segments
from nmt.text.subwords import EOS, PAD, UNK, Subwords

_DTYPES = {"translations": torch.int32, "frequent": torch.int32, "source": torch.uint8, "target": torch.uint8}
"""The tensors of a file; `source` and `target` are the fingerprints of the vocabularies."""


@dataclass(frozen=True, eq=False)
class Shortlist(EqualByValue):
    """The target tokens that are allowed for each source token, and those that are always allowed."""

    translations: Int[Tensor, "X k"]
    """The target tokens allowed for each source token; shorter rows are padded with the end mark."""
    frequent: Int[Tensor, " F"]
    """Target tokens that are always allowed."""
    target_size: int
    """V, the size of the target vocabulary."""

    @cached_property
    def shared(self) -> Int[Tensor, " F"]:
        """The target tokens on every list, in rising order: the frequent ones, the end mark and the unknown token."""
        return self._is_shared.nonzero().squeeze(1)

    @cached_property
    def _is_shared(self) -> Bool[Tensor, " V"]:
        shared = torch.zeros(self.target_size, dtype=torch.bool)
        shared[torch.cat([self.frequent, torch.tensor([UNK, EOS])])] = True
        return shared

    def own_tokens(self, sources: Int[Tensor, "B S"]) -> tuple[Int[Tensor, " M"], Segments]:
        """The tokens on each sentence's list that are not shared, and the sentence of each; sorted by sentence, then by id."""
        allowed = self.translations.to(sources.device)[sources]  # [B S k], with repetitions
        is_own = ~self._is_shared.to(sources.device)[allowed] & (sources != PAD).unsqueeze(2)
        keys: Tensor = torch.unique(is_own.nonzero()[:, 0] * self.target_size + allowed[is_own])
        return keys % self.target_size, Segments(keys // self.target_size, len(sources))

    def save(self, path: str | Path, source: Subwords, target: Subwords) -> None:
        """Write a safetensors file, with the fingerprints of both vocabularies. Raises DataError."""
        tensors = {"translations": self.translations.int(), "frequent": self.frequent.int()}
        save_tensors(tensors | _fingerprints(source, target), Path(path))

    @classmethod
    def load(cls, path: str | Path, source: Subwords, target: Subwords) -> Shortlist:
        """Read a file written by `save`. Raises DataError if it is damaged, no shortlist, or made for other vocabularies."""
        path = Path(path)
        tensors = load_tensors(path)
        if {name: tensor.dtype for name, tensor in tensors.items()} != _DTYPES:
            raise DataError(f"{path} is not a shortlist: make one with `nmt shortlist`.")
        for name, fingerprint in _fingerprints(source, target).items():
            if not torch.equal(tensors[name], fingerprint):
                raise DataError(
                    f"{path} was made for another {name} vocabulary than the model's: make one for it with `nmt shortlist`."
                )
        translations, frequent = tensors["translations"].long(), tensors["frequent"].long()
        has_shape = translations.dim() == 2 and len(translations) == len(source) and frequent.dim() == 1
        if not has_shape or any(((ids < 0) | (ids >= len(target))).any() for ids in (translations, frequent)):
            raise DataError(
                f"{path} does not fit vocabularies of {len(source):,} and {len(target):,} tokens: "
                "make it again with `nmt shortlist`."
            )
        return cls(translations, frequent, len(target))


def _fingerprints(source: Subwords, target: Subwords) -> dict[str, Tensor]:
    """The fingerprint of each vocabulary as a tensor of bytes."""
    sides = {"source": source, "target": target}
    return {
        name: torch.tensor(list(bytes.fromhex(side.fingerprint)), dtype=torch.uint8) for name, side in sides.items()
    }
