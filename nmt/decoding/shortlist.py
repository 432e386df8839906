"""Lexical shortlists: a sentence is translated with the target pieces that its source pieces are likely to become, and frequent ones.

The output layer then has a few hundred rows instead of the whole vocabulary (Jean et al. 2015, 3.1, for parts of a text; Marian, for
batches). A list is that of one sentence, and probabilities are normalised over it, so that no line depends on its company.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.data.subwords import EOS, UNK, Subwords
from nmt.equality import EqualByValue
from nmt.errors import DataError
from nmt.model_folder import load_tensors, save_tensors
from nmt.segments import Segments


@dataclass(frozen=True, eq=False)
class Shortlist(EqualByValue):
    """Which pieces may be written for each source piece, and which always."""

    translations: Int[Tensor, "X k"]
    """For each source piece the target pieces that it may become; shorter rows are filled up with the end mark."""
    frequent: Int[Tensor, " F"]
    """Target pieces that are on every list."""
    target_size: int

    @cached_property
    def shared(self) -> Int[Tensor, " F"]:
        """The target pieces that are on every list, rising: the frequent ones, the end mark and the unknown piece."""
        return self._is_shared.nonzero().squeeze(1)

    @cached_property
    def _is_shared(self) -> Bool[Tensor, " V"]:
        shared = torch.zeros(self.target_size, dtype=torch.bool)
        shared[torch.cat([self.frequent, torch.tensor([UNK, EOS])])] = True
        return shared

    def own(self, sources: Int[Tensor, "B S"]) -> tuple[Int[Tensor, " M"], Segments]:
        """The other pieces that each sentence may be translated with, rising, and the sentence of each; those of the first come first."""
        may_be = self.translations.to(sources.device)[sources].flatten(1)
        sentence, place = (~self._is_shared.to(sources.device)[may_be]).nonzero().unbind(1)
        found: Tensor = torch.unique(sentence * self.target_size + may_be[sentence, place])
        return found % self.target_size, Segments(found // self.target_size, len(sources))

    def save(self, path: str | Path, source: Subwords, target: Subwords) -> None:
        """Write it as safetensors, with the fingerprints of the vocabularies that it speaks of. Raises DataError."""
        tensors = {"translations": self.translations.int(), "frequent": self.frequent.int()}
        save_tensors(tensors | _fingerprints(source, target), Path(path))

    @classmethod
    def load(cls, path: str | Path, source: Subwords, target: Subwords) -> Shortlist:
        """Read what `save` wrote. Raises DataError if the file is none, damaged, or made for other vocabularies."""
        path = Path(path)
        found = load_tensors(path)
        wanted = _fingerprints(source, target)
        if {name: tensor.dtype for name, tensor in found.items()} != _TYPES:
            raise DataError(f"{path} is not a shortlist: make one with `nmt shortlist`.")
        for name, fingerprint in wanted.items():
            if not torch.equal(found[name], fingerprint):
                raise DataError(
                    f"{path} was made for another {name} vocabulary than the model's: make one for it with `nmt shortlist`."
                )
        translations, frequent = found["translations"].long(), found["frequent"].long()
        _check(path, translations, frequent, source, target)
        return cls(translations, frequent, len(target))


_TYPES = {"translations": torch.int32, "frequent": torch.int32, "source": torch.uint8, "target": torch.uint8}
"""What a file holds."""


def _fingerprints(source: Subwords, target: Subwords) -> dict[str, Tensor]:
    sides = {"source": source, "target": target}
    return {
        name: torch.tensor(list(bytes.fromhex(side.fingerprint)), dtype=torch.uint8) for name, side in sides.items()
    }


def _check(path: Path, translations: Tensor, frequent: Tensor, source: Subwords, target: Subwords) -> None:
    """Raise DataError if there is a source piece too many or too few, or a target piece that does not exist."""
    shaped = translations.dim() == 2 and len(translations) == len(source) and frequent.dim() == 1
    for ids in (translations, frequent):
        shaped = shaped and (ids.numel() == 0 or (int(ids.min()) >= 0 and int(ids.max()) < len(target)))
    if not shaped:
        raise DataError(
            f"{path} does not fit vocabularies of {len(source):,} and {len(target):,} tokens: make it again with `nmt shortlist`."
        )
