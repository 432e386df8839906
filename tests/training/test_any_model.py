"""A model of a few lines that implements the interface trains, decodes and scores through the public functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import nmt
from nmt import recipe as recipes
from nmt.errors import UsageError
from nmt.model.interface import ModelOutput, SentencePairs, Step, TranslationModel
from tests.training import toy


@dataclass(frozen=True)
class Rows:
    """Both the memory and the state of the model below: tensors with one row per sentence or hypothesis."""

    values: Tensor
    mask: Tensor | None = None

    def select(self, rows: Tensor) -> Rows:
        return Rows(self.values[rows], None if self.mask is None else self.mask[rows])


class BagAndBigram(TranslationModel[Rows, Rows]):
    """log p(y_t | y_{t-1}, x): a table of token pairs plus the mean of what each source token makes likely."""

    def __init__(self, config: recipes.ModelConfig, *, source_size: int, target_size: int) -> None:
        super().__init__()
        self.bigram = nn.Embedding(target_size, target_size)
        self.lexicon = nn.Embedding(source_size, target_size)

    def encode(self, source: Tensor, source_mask: Tensor) -> Rows:
        weights = source_mask / source_mask.sum(1, keepdim=True)
        return Rows((self.lexicon(source) * weights.unsqueeze(-1)).sum(1), source_mask)

    def start(self, memory: Rows) -> Rows:
        return Rows(torch.zeros(len(memory.values), dtype=torch.long))

    def step(self, tokens: Tensor, state: Rows, memory: Rows, rows: Tensor) -> Step:
        log_probs = torch.log_softmax(self.bigram(tokens) + memory.values[rows], dim=-1)
        assert memory.mask is not None
        weights = memory.mask[rows] / memory.mask[rows].sum(1, keepdim=True)
        return Step(log_probs, weights, replace(state, values=state.values + 1))

    def forward(self, batch: SentencePairs, label_smoothing: float = 0.0) -> ModelOutput:
        memory, mask = self.encode(batch.source, batch.source_mask), batch.target_mask
        log_probs = torch.log_softmax(self.bigram(batch.target_in) + memory.values.unsqueeze(1), dim=-1)
        gold = log_probs.gather(2, batch.target_out.unsqueeze(-1)).squeeze(-1) * mask
        weights = batch.source_mask / batch.source_mask.sum(1, keepdim=True)
        alignment = weights.unsqueeze(1).expand(-1, mask.shape[1], -1)
        loss = -(1 - label_smoothing) * gold.sum() - label_smoothing * (log_probs.mean(-1) * mask).sum()
        return ModelOutput(loss, gold.detach(), alignment, tokens=mask.sum())


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> recipes.Recipe:
    folder = tmp_path_factory.mktemp("corpus")
    toy.write_reversal(folder, pairs=400)
    training = {"epochs": 3, "optimizer": {"kind": "adam", "rate": 0.03}, "label_smoothing": 0.1}
    return toy.recipe(folder, training=training)


@pytest.fixture(scope="module")
def run(recipe: recipes.Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    nmt.train(recipe, folder, quiet=True, device="cpu", build_model=BagAndBigram)
    return folder


def test_the_model_learns(recipe: recipes.Recipe, run: Path, tmp_path: Path) -> None:
    trained = nmt.load(run, "cpu", build_model=BagAndBigram).score(("a b c", "c b a"))
    one_update = recipe.model_copy(update={"training": recipe.training.model_copy(update={"updates": 1})})
    nmt.train(one_update, tmp_path / "untrained", quiet=True, device="cpu", build_model=BagAndBigram)
    untrained = nmt.load(tmp_path / "untrained", "cpu", build_model=BagAndBigram).score(("a b c", "c b a"))
    assert trained.hypotheses[0].log_probability > untrained.hypotheses[0].log_probability + 3


@pytest.mark.parametrize("beam_size", [1, 4])
def test_search_scores_what_forced_decoding_scores(run: Path, beam_size: int) -> None:
    translator = nmt.load(run, "cpu", build_model=BagAndBigram, decoding={"beam_size": beam_size}, n_best=beam_size)
    lines = ["a b c", "h", "d d e a f", ""]
    translations = list(translator.translate(lines))
    assert [translation.source for translation in translations] == lines
    for translation in translations[:3]:
        for hypothesis in translation.hypotheses:
            if hypothesis.finished:
                scored = translator.score((translation.source, hypothesis.ids)).hypotheses[0]
                assert scored.log_probability == pytest.approx(hypothesis.log_probability, abs=1e-4)
                assert torch.allclose(scored.alignment, hypothesis.alignment)


def test_unsupported_features_are_usage_errors(run: Path) -> None:
    with pytest.raises(UsageError, match="BagAndBigram has no posterior alignment"):
        nmt.load(run, "cpu", build_model=BagAndBigram, posterior=True).score(("a", "a"))
    with pytest.raises(UsageError, match="int8 needs a recurrent model"):
        nmt.load(run, "cpu", build_model=BagAndBigram, precision="int8")
