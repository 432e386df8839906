"""Start from the weights of another model: fine-tuning, and transfer to another language pair (Zoph et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.bundle.folder import Bundle
from nmt.errors import DataError
from nmt.model.interface import ModelBuilder
from nmt.recipe import PretrainedConfig, Recipe
from nmt.runtime.cache import expand_home
from nmt.runtime.wording import counted
from nmt.text.subwords import Subwords

_SOURCE = frozenset({"source_embedding.weight"})
_TARGET = frozenset({"target_embedding.weight", "output.weight", "output.bias"})
"""Parameters with a row per token of the vocabulary."""


@dataclass(frozen=True)
class Pretrained:
    """The model that a training starts from."""

    config: PretrainedConfig
    bundle: Bundle

    def subwords(self, recipe: Recipe) -> tuple[Subwords, Subwords] | None:
        """The subword models of the new model; None if they are learned from its text.

        Raises DataError if the model has two, but the recipe needs one for both languages.
        """
        if self.config.subwords == "new":
            return None
        source, target = self.bundle.source, self.bundle.target
        if recipe.model.tie == "all" and source.fingerprint != target.fingerprint:
            raise DataError(
                f"model.tie: all needs one vocabulary, but {self.config.model} has one per language: "
                "set model.tie: target, or training.pretrained.subwords: new."
            )
        return source, target

    @torch.no_grad()
    def copy_to(self, bundle: Bundle) -> str:
        """Copy the weights to a new model, and say in one sentence what it has of them.

        Embeddings and output weights go from token to token, whatever their ids, so that languages may differ. A token that only
        the new vocabulary has keeps its first weights.

        Raises:
            DataError: the new model has a parameter of another name or shape.
        """
        weights = dict(self.bundle.model.named_parameters(remove_duplicate=False))  # a tied one has several names
        source_rows = _common_tokens(bundle.source, self.bundle.source)
        target_rows = _common_tokens(bundle.target, self.bundle.target)
        for name, parameter in bundle.model.named_parameters():
            rows = source_rows if name in _SOURCE else target_rows if name in _TARGET else None
            old, first = weights.get(name), 0 if rows is None else 1  # the number of tokens may differ
            if old is None or parameter.shape[first:] != old.shape[first:]:
                difference = "it has none" if old is None else f"it has {list(old.shape)}"
                raise DataError(
                    f"This recipe cannot start from {self.config.model}: {name} is {list(parameter.shape)} here, but "
                    f"{difference}. Take over its model settings, as `base: {self.config.model}/recipe.yaml` does."
                )
            if rows is None:
                parameter.copy_(old)
            else:
                parameter[rows[0]] = old[rows[1]]
        sides = (("source", source_rows, bundle.source), ("target", target_rows, bundle.target))
        counts = (f"{len(rows[0]):,} of {counted(len(side), f'{name} token')}" for name, rows, side in sides)
        return f"Starts from {self.config.model}, which has {' and '.join(counts)}."


def load_pretrained(recipe: Recipe, build_model: ModelBuilder) -> Pretrained | None:
    """Load the model that a recipe starts from; None if it starts from random weights.

    Raises DataError if the folder is missing, incomplete or damaged.
    """
    config = recipe.training.pretrained
    if config is None:
        return None
    return Pretrained(config, Bundle.load(expand_home(config.model), build_model=build_model))


def _common_tokens(new: Subwords, old: Subwords) -> tuple[Tensor, Tensor]:
    """The ids of the tokens that two vocabularies share, in each of them."""
    ids = {token: index for index, token in enumerate(old.tokens(range(len(old))))}
    pairs = [(index, ids[token]) for index, token in enumerate(new.tokens(range(len(new)))) if token in ids]
    return torch.tensor([index for index, _ in pairs]), torch.tensor([index for _, index in pairs])
