"""Models with random weights in float64, and batches for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nmt import recipe
from nmt.data.batching import Batch
from nmt.model.recurrent import RecurrentModel
from nmt.text.subwords import BOS

SOURCE_SIZE, TARGET_SIZE = 9, 8


def random_model(tree: dict[str, Any], seed: int = 1) -> RecurrentModel:
    """A model in which all weights, biases included, are random and large enough to matter."""
    torch.manual_seed(seed)
    source_size = TARGET_SIZE if tree["tie"] == "all" else SOURCE_SIZE
    config = recipe.RecurrentModelConfig.model_validate(tree)
    model = RecurrentModel(config, source_size=source_size, target_size=TARGET_SIZE).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.6)
    return model


def weights_of(module: nn.Module) -> dict[str, np.ndarray]:
    """The weights as NumPy arrays, for the reference."""
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def mask_of(lengths: Sequence[int], width: int | None = None) -> Tensor:
    return torch.arange(width or max(lengths)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


def padded(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Padded ids, and their mask."""
    mask = mask_of([len(ids) for ids in sequences])
    return torch.tensor([[*ids, *[0] * (mask.shape[1] - len(ids))] for ids in sequences]), mask


def batch_of(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """A batch of these sources and gold outputs; EOS is not added."""
    source, source_mask = padded(sources)
    target_in, _ = padded([fed(target) for target in targets])
    target_out, target_mask = padded(targets)
    return Batch(source, source_mask, target_in, target_out, target_mask)


def fed(target: Sequence[int]) -> list[int]:
    """The decoder input for a target."""
    return [BOS, *target[:-1]]


def random_batch(source_lengths: Sequence[int], target_lengths: Sequence[int]) -> Batch:
    """A batch of random ids, in the padding too."""
    generator = torch.Generator().manual_seed(3)
    source_mask, target_mask = mask_of(source_lengths), mask_of(target_lengths)
    source, target_in, target_out = (
        torch.randint(0, TARGET_SIZE, mask.shape, generator=generator)
        for mask in (source_mask, target_mask, target_mask)
    )
    return Batch(source, source_mask, target_in, target_out, target_mask)
