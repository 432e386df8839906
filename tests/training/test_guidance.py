"""Guided alignment: the loss is its equation, has the rows of the right tokens, and teaches a model where to look."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from nmt.alignment.error_rate import error_rate
from nmt.alignment.links import GoldLinks, argmax_links
from nmt.bundle.folder import Bundle
from nmt.data.locators import load_corpus
from nmt.decoding.translator import Translator
from nmt.training.guidance import FLOOR, guided_cross_entropy
from nmt.training.trainer import train
from tests.reference import guidance as reference
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

CPU = torch.device("cpu")


def scores_and_links(batch: int = 3, target: int = 5, source: int = 4) -> tuple[Tensor, Tensor]:
    """Random attention scores and links; one row has no link, one is linked to every source token."""
    torch.manual_seed(2)
    scores = torch.randn(batch, target, source, dtype=torch.float64, requires_grad=True)
    links = torch.rand(batch, target, source) < 0.4
    links[0, 0], links[1, 2] = False, True
    return scores, links


# --- the equation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row_sum", [1.0, 0.6], ids=["global", "local-p"])
@pytest.mark.parametrize("window", [4, 2])
def test_the_loss_follows_the_equation(row_sum: float, window: int) -> None:
    scores, links = scores_and_links()
    alignment = torch.softmax(scores.detach(), dim=-1) * row_sum
    alignment[:, :, window:] = 0
    total, linked = guided_cross_entropy(alignment, links)
    expected = [
        reference.guided_cross_entropy(weights, row_links, FLOOR)
        for weights, row_links in zip(alignment.numpy(), links.numpy(), strict=True)
    ]
    np.testing.assert_allclose(total.item(), sum(loss for loss, _ in expected), rtol=0, atol=1e-10)
    assert linked == sum(count for _, count in expected)


def test_the_gradient_matches_finite_differences() -> None:
    scores, links = scores_and_links()
    assert gradcheck(lambda inputs: guided_cross_entropy(torch.softmax(inputs, dim=-1), links)[0], [scores])


def test_links_outside_the_window_give_a_finite_loss_without_gradient() -> None:
    alignment = torch.zeros(1, 2, 3, requires_grad=True)
    total, _ = guided_cross_entropy(alignment, torch.ones(1, 2, 3, dtype=torch.bool))
    total.backward()
    assert total.isfinite()
    assert alignment.grad is not None
    assert (alignment.grad == 0).all()


# --- what it does -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reversal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reversal")
    write_reversal(folder, pairs=600, held_out=40)
    return folder


def held_out_error(run: Path, corpus: Path) -> float:
    """AER of the model on the held-out text."""
    bundle = Bundle.load(run)
    pairs = list(load_corpus(f"{corpus}/valid", source="src", target="tgt").pairs())
    scored = Translator([bundle]).score(pairs)
    links = [argmax_links(translation.word_alignment().weights) for translation in scored]
    lengths = [len(source.split()) for source, _ in pairs]
    gold = [frozenset((i, n - 1 - i) for i in range(n)) for n in lengths]
    return error_rate(links, [GoldLinks(right, right) for right in gold]).aer


def records(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "train"]


def test_a_guided_model_aligns_better_after_the_same_updates(reversal: Path, tmp_path: Path) -> None:
    model: dict[str, Any] = {"embedding": 32, "encoder": {"hidden": 32}, "dropout": 0.0}
    model["decoder"] = {"hidden": 48, "readout": {"size": 32}}
    model["attention"] = {"score": "general"}
    few = {"epochs": 3, "validation": {"metrics": "perplexity"}}
    rates: dict[str, float] = {}
    for name, guided in (("alone", None), ("guided", {"links": f"{reversal}/train.align", "weight": 1.0})):
        recipe = toy_recipe(reversal, model=model, training={**few, "guided_alignment": guided})
        train(recipe, tmp_path / name, device=CPU, quiet=True)
        rates[name] = held_out_error(tmp_path / name, reversal)
    assert rates["guided"] < 0.15, rates
    assert rates["guided"] < rates["alone"] / 2, rates
    losses = [record["alignment_loss"] for record in records(tmp_path / "guided")]
    assert losses[-1] < losses[0] / 2
    assert not any("alignment_loss" in record for record in records(tmp_path / "alone"))
