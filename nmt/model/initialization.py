"""How the papers initialize their weights."""

from __future__ import annotations

from typing import assert_never

from torch import nn

from nmt import recipe
from nmt.model.cells import GruCell, LstmCell, ResetBeforeGruCell, orthogonal_per_gate_
from nmt.model.scores import AdditiveScore, Score


def initialize_(model: nn.Module, config: recipe.InitializationConfig) -> None:
    """Initialize all weights of a recurrent model as its recipe says. By default each module has done so itself."""
    match config:
        case recipe.DefaultInitializationConfig():
            pass
        case recipe.GaussianInitializationConfig():
            _gaussian_(model, std=config.std, score_std=config.score_std)
        case recipe.UniformInitializationConfig():
            for module in _without_norms(model):
                for parameter in module.parameters(recurse=False):
                    nn.init.uniform_(parameter, -config.bound, config.bound)
        case _:
            assert_never(config)


def _gaussian_(model: nn.Module, *, std: float, score_std: float) -> None:
    """U orthogonal, matrices of the score N(0, score_std^2), others N(0, std^2), v_a and biases 0 (Bahdanau et al. 2015, B.1)."""
    for module in _without_norms(model):
        _normal_(module, std, recurse=False)
    for module in model.modules():
        match module:
            case Score():
                _normal_(module, score_std, recurse=True)
                if isinstance(module, AdditiveScore):
                    nn.init.zeros_(module.v.weight)
            case nn.GRU() | nn.LSTM():
                orthogonal_per_gate_(module.all_weights[0][1])
            case GruCell() | LstmCell():
                orthogonal_per_gate_(module.recurrent.weight)
            case ResetBeforeGruCell():
                orthogonal_per_gate_(module.recurrent.weight)
                orthogonal_per_gate_(module.recurrent_new.weight)
            case _:
                pass


def _normal_(module: nn.Module, std: float, *, recurse: bool) -> None:
    """Matrices N(0, std^2), biases 0."""
    for parameter in module.parameters(recurse=recurse):
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=std)
        else:
            nn.init.zeros_(parameter)


def _without_norms(model: nn.Module) -> list[nn.Module]:
    """All modules but layer normalizations, which start as 1 and 0."""
    return [module for module in model.modules() if not isinstance(module, nn.LayerNorm)]
