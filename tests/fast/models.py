"""Small random models, what they learn from a batch, and how near two results are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nmt import recipe
from nmt.data.batching import Batch, make_batch
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.output import OutputLayer
from nmt.model.recurrent import RecurrentModel
from nmt.model.transformer import TransformerModel

SIZE = 12
"""Tokens of the source and of the target vocabulary."""
PAIRS = [
    ([5, 4, 9, 7, 11, 4], [6, 10, 4, 8]),
    ([8, 6, 5, 10], [5]),
    ([7], [11, 4, 4, 9]),
    ([4, 4], []),
    ([10, 5, 6, 9, 8], [7, 9, 5]),
]
"""Sentences of different lengths: with their end marks one is longer than `small` lets the location score read."""


def random_model(tree: dict[str, Any], seed: int = 1) -> RecurrentModel:
    """A recurrent model in float64 whose every weight, biases included, is random and large enough to matter."""
    config = recipe.RecurrentModelConfig.model_validate(tree)
    model = randomized(config, seed)
    assert isinstance(model, RecurrentModel)
    return model


def random_transformer(**settings: Any) -> TransformerModel:
    """A Transformer in float64 whose every weight is random."""
    tree = {"embedding": 8, "heads": 2, "feed_forward": 12, "encoder": {"layers": 2}, "decoder": {"layers": 3}}
    model = randomized(recipe.TransformerModelConfig.model_validate(tree | settings), 1)
    assert isinstance(model, TransformerModel)
    return model


def randomized(config: recipe.RecurrentModelConfig | recipe.TransformerModelConfig, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = build_model(config, source_size=SIZE, target_size=SIZE).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.6)
    return model


def batch() -> Batch:
    return make_batch(PAIRS)


def learned(model: TranslationModel[Any, Any], *, seed: int = 5) -> dict[str, Tensor]:
    """Loss, log-probabilities and alignment of the batch, and the gradients of the loss plus a random sum of the alignment."""
    model.zero_grad()
    torch.manual_seed(seed)
    output = model(batch(), 0.1)
    by = torch.randn(output.alignment.shape, dtype=torch.float64).to(output.alignment.dtype)
    torch.autograd.backward(output.loss + (output.alignment * by).sum())
    results = {"loss": output.loss, "log_probs": output.token_log_probs, "alignment": output.alignment}
    gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    return {name: value.detach().clone() for name, value in (results | gradients).items()}


ROWS = torch.tensor([0, 0, 1, 3, 3, 3])
"""The sentences that hypotheses read; one sentence has none."""


def search_results(model: TranslationModel[Any, Any]) -> dict[str, Tensor]:
    """What a model says of known targets all at once, and of hypotheses in three steps."""
    sample, results = batch(), {}
    generator = torch.Generator().manual_seed(2)
    with torch.inference_mode():
        output = model(sample)
        results = {"forced": output.token_log_probs, "alignment": output.alignment}
        memory = model.encode(sample.source, sample.source_mask)
        state = model.start(memory).select(ROWS)
        for time in range(3):
            tokens = torch.randint(4, SIZE, ROWS.shape, generator=generator)
            step = model.step(tokens, state, memory, ROWS)
            results |= {f"log_probs {time}": step.log_probs[:], f"weights {time}": step.weights}
            results |= {} if step.centers is None else {f"centers {time}": step.centers}
            state = step.state
    return {name: value.clone() for name, value in results.items()}


def assert_near(ours: Tensor, exact: Tensor, share: float, name: str = "") -> None:
    """Equal but for a share of the largest number there is, or of a tenth."""
    ours, exact = ours.detach().double(), exact.detach().double()
    torch.testing.assert_close(
        ours,
        exact,
        rtol=0,
        atol=share * max(float(exact.abs().amax()) if exact.numel() else 0.0, 0.1),
        msg=lambda text: f"{name}: {text}",
    )


def assert_same(ours: dict[str, Tensor], exact: dict[str, Tensor], share: float) -> None:
    """The same names, and near values."""
    assert ours.keys() == exact.keys()
    for name, value in exact.items():
        assert_near(ours[name], value, share, name)


def plain_loss(
    readouts: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """The loss of the plain output layer with these weights, and log p of the gold tokens."""
    output = OutputLayer(1, 1)
    del output.weight, output.bias
    for name, value in (("weight", weight), ("bias", bias)):
        setattr(output, name, value)
    loss, log_probs = output.loss(
        readouts[None], gold[None], torch.ones_like(gold[None], dtype=torch.bool), label_smoothing
    )
    return loss, log_probs[0]
