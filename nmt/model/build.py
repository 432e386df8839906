"""The model of a recipe."""

from __future__ import annotations

from typing import assert_never

from nmt import recipe
from nmt.model.recurrent import RecurrentModel
from nmt.model.transformer import TransformerModel


def build_model(config: recipe.ModelConfig, *, source_size: int, target_size: int) -> RecurrentModel | TransformerModel:
    """A freshly initialized model for vocabularies of the given sizes. Seed torch first to get the same one again."""
    match config:
        case recipe.RecurrentModelConfig():
            return RecurrentModel(config, source_size=source_size, target_size=target_size)
        case recipe.TransformerModelConfig():
            return TransformerModel(config, source_size=source_size, target_size=target_size)
        case _:
            assert_never(config)
