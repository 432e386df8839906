"""Lexical shortlists: a batch is translated with the target pieces that its source pieces are likely to become, no others.

The output layer then has a few hundred or thousand rows instead of the whole vocabulary (Jean et al. 2015, 3.1; Marian). Probabilities
are normalised over the list, so a translation may depend a little on what is in the same batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from nmt.bundle import load_tensors, save_tensors
from nmt.data.subwords import EOS, UNK, Subwords
from nmt.errors import DataError
from nmt.evened import evened


@dataclass(frozen=True)
class Shortlist:
    """Which pieces may be written for each source piece, and which always."""

    translations: Int[Tensor, "X k"]
    """For each source piece the target pieces that it may become; shorter rows are filled up with the end mark."""
    frequent: Int[Tensor, " F"]
    """Target pieces that are on every list."""
    target_size: int

    def pieces(self, sources: Int[Tensor, "B S"]) -> Int[Tensor, " C"]:
        """The target pieces that sentences may be translated with, in rising order; the end mark and the unknown piece are among them.

        The first pieces that are not listed make their number even.
        """
        listed = torch.zeros(self.target_size, dtype=torch.bool, device=sources.device)
        listed[[UNK, EOS]] = True
        listed[self.frequent.to(sources.device)] = True
        listed[self.translations.to(sources.device)[torch.unique(sources)].flatten()] = True
        count = int(listed.sum())
        listed[(~listed).nonzero()[: evened(count) - count]] = True
        return listed.nonzero().squeeze(1)

    def save(self, path: Path, source: Subwords, target: Subwords) -> None:
        """Write it as safetensors, with the fingerprints of the vocabularies that it speaks of. Raises DataError."""
        tensors = {"translations": self.translations.int(), "frequent": self.frequent.int()}
        save_tensors(tensors | _fingerprints(source, target), path)

    @classmethod
    def load(cls, path: Path, source: Subwords, target: Subwords) -> Shortlist:
        """Read what `save` wrote. Raises DataError if the file is none, damaged, or made for other vocabularies."""
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
            f"{path} does not fit vocabularies of {len(source):,} and {len(target):,} pieces: make it anew with `nmt shortlist`."
        )
