"""Hard attention: a word reads one cell, and the draw is learned by what follows it."""

from dataclasses import replace

import hard
import numpy as np
import pytest
import shapes
import torch
from hard import HardAttention, HardCaptioner, advantage
from shapes import Captioner
from torch import Tensor

from nmt.model import Attention, AttentionMemory, AttentionOutput


def scenes(count: int) -> list[shapes.Scene]:
    rng = np.random.default_rng(1)
    return [shapes.draw_scene(shapes.PAIRS, rng) for _ in range(count)]


@pytest.fixture
def batch() -> shapes.Batch:
    return shapes.make_batch(scenes(4))


@pytest.fixture
def model() -> HardCaptioner:
    torch.manual_seed(1)
    return HardCaptioner()


def attention_of(model: HardCaptioner) -> HardAttention:
    attention = model.decoder.attention
    assert isinstance(attention, HardAttention)
    return attention


def cells_of(output: AttentionOutput) -> Tensor:
    """The cell that each word reads [B T]."""
    assert output.centers is not None
    return output.centers.squeeze(2).long()


def test_the_context_is_the_annotation_of_the_likeliest_cell(model: HardCaptioner, batch: shapes.Batch) -> None:
    """Of two queries per picture; the weights are those of soft attention."""
    model.eval()
    attention, memory = attention_of(model), model.encode(batch.source, batch.source_mask).attention
    queries, positions = torch.randn(len(batch.source), 2, 128), torch.arange(2).expand(len(batch.source), -1)
    output, soft = (read(queries, positions, memory) for read in (attention, Attention(attention.score, window=None)))
    assert torch.equal(output.weights, soft.weights)
    for row, step in np.ndindex(4, 2):
        cell = int(output.weights[row, step].argmax())
        assert cells_of(output)[row, step] == cell
        assert torch.equal(output.contexts[row, step], memory.annotations[row, cell])


def test_cells_are_drawn_by_their_weights(model: HardCaptioner) -> None:
    """In training, of 20,000 queries with the same weights, each cell is read as often as it weighs."""
    torch.manual_seed(1)
    annotations = torch.randn(1, 5, 64)
    attention = attention_of(model)
    memory = attention.build_memory(annotations, torch.ones(1, 5, dtype=torch.bool), annotations.mean(1))
    output = attention(torch.randn(1, 1, 128).expand(1, 20_000, 128), torch.arange(20_000).unsqueeze(0), memory)
    shares = cells_of(output).flatten().bincount(minlength=5) / 20_000
    assert torch.allclose(shares, output.weights[0, 0], atol=0.015)
    assert torch.equal(output.contexts[0], annotations[0, cells_of(output).flatten()])


def test_the_advantage_is_what_follows_less_the_mean_of_the_batch() -> None:
    log_probs = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert advantage(log_probs, mask).tolist() == [[1.5, 0, 0], [-1.5, 0, 0]]


def test_the_loss_has_the_gradient_of_reinforce(model: HardCaptioner, batch: shapes.Batch) -> None:
    """Given the cells that were drawn, only lambda sum (R_t - b_t) d log alpha_{t, s_t} reaches the score."""
    draws = torch.randint(shapes.GRID**2, (4, batch.target_out.shape[1], 1), generator=torch.Generator().manual_seed(1))

    class Fixed(HardAttention):
        """The given cells at the steps that the decoder is at."""

        def forward(
            self, queries: Tensor, positions: Tensor, memory: AttentionMemory, coverage: Tensor | None = None
        ) -> AttentionOutput:
            output = super().forward(queries, positions, memory, coverage)
            cells = draws[:, positions[0]]
            contexts = memory.by_row().annotations.gather(1, cells.expand(-1, -1, 64))
            return replace(output, contexts=contexts, centers=cells.float())

    score = attention_of(model).score
    assert score is not None
    model.decoder.attention = Fixed(score, window=None)
    model.eval()
    output = model(batch)
    parameter = next(score.parameters())
    [gradient] = torch.autograd.grad(output.loss, parameter, retain_graph=True)
    taken = output.alignment.gather(2, draws).squeeze(2)
    reward = output.token_log_probs.detach()
    expected = torch.zeros(())
    for row, step in np.ndindex(*batch.target_out.shape):
        if batch.target_mask[row, step]:
            readers = batch.target_mask[:, step]
            baseline = reward[:, step:].sum(1)[readers].mean()
            expected = expected - 0.2 * (reward[row, step:].sum() - baseline) * taken[row, step].log()
    [reinforced] = torch.autograd.grad(expected, parameter)
    assert torch.allclose(gradient, reinforced, rtol=1e-3, atol=1e-5)
    assert gradient.abs().max() > 0


def test_training_goes_from_soft_to_hard(monkeypatch: pytest.MonkeyPatch) -> None:
    hardness = list[bool]()

    def train(model: Captioner, updates: int, rng: np.random.Generator) -> Captioner:
        hardness.extend([isinstance(model, HardCaptioner)] * updates)
        return shapes.train(model, updates, rng)

    monkeypatch.setattr(hard, "train", train)
    monkeypatch.setattr(hard, "examine", lambda model, _rng, _picture: shapes.report(model, "some", scenes(5)))
    hard.main(updates=3)
    assert hardness == [False, True, True]
