"""Hard attention beside the soft one of `shapes.py`: each word reads a single cell, which is drawn (Xu et al. 2015, 4.1).

    s_t ~ alpha_t,  c_t = h_{s_t}                          in training; afterwards s_t is the likeliest cell
    d log p(y | s) + lambda sum_t (R_t - b_t) d log alpha_{t, s_t}                          the gradient

A draw has no derivative. So its probability rises with what follows it, R_t = sum_{i >= t} log p(y_i | s), if that is above the
mean b_t of the batch (REINFORCE). From random weights this learns next to nothing, so the first half of the training is soft.
"""

from dataclasses import replace

import numpy as np
import torch
import typer
from shapes import Captioner, Count, examine, train
from torch import Tensor

from nmt.model import Attention, AttentionMemory, AttentionOutput, ModelOutput, SentencePairs

REWARD = 0.2  # lambda


class HardAttention(Attention):
    """Attention that reads one position. It is the center of a window without neighbors; the weights are its probabilities."""

    def forward(
        self, queries: Tensor, positions: Tensor, memory: AttentionMemory, coverage: Tensor | None = None
    ) -> AttentionOutput:
        soft = super().forward(queries, positions, memory, coverage)
        likeliest = soft.weights.argmax(-1, keepdim=True)
        cells = soft.weights.flatten(0, 1).multinomial(1).view_as(likeliest) if self.training else likeliest  # s_t
        annotations = memory.by_row().annotations
        contexts = annotations.gather(1, cells.expand(-1, -1, annotations.shape[2]))
        return replace(soft, contexts=contexts, centers=cells.float())


class HardCaptioner(Captioner):
    """The same model with hard attention."""

    def __init__(self) -> None:
        super().__init__()
        assert isinstance(self.decoder.attention, Attention)
        self.decoder.attention = HardAttention(self.decoder.attention.score, window=None)

    def forward(self, batch: SentencePairs, label_smoothing: float = 0.0) -> ModelOutput:
        memory = self.encode(batch.source, batch.source_mask)
        decoded = self.decoder(self.embed(batch.target_in), self.start(memory), memory.attention)
        readouts = self.readout_dropout(decoded.readouts)
        output = self.output.known_targets(readouts, decoded.alignment, batch, label_smoothing)
        assert decoded.centers is not None
        log_probs = decoded.alignment.gather(2, decoded.centers.long()).squeeze(2).log()
        loss = output.loss - REWARD * (advantage(output.token_log_probs, batch.target_mask) * log_probs).sum()
        return replace(output, loss=loss)


def advantage(token_log_probs: Tensor, mask: Tensor) -> Tensor:
    """R_t - b_t of each word [B T], 0 on padding."""
    reward = token_log_probs.flip(1).cumsum(1).flip(1)
    return (reward - reward.sum(0) / mask.sum(0)).masked_fill(~mask, 0)


def main(updates: Count = 800, seed: Count = 1, plot: bool = False) -> None:
    """Train a model softly, then hard, and see how it captions pictures that it does not know."""
    torch.manual_seed(seed)
    rng, model = np.random.default_rng(seed), HardCaptioner()
    model.load_state_dict(train(Captioner(), updates // 2, rng).state_dict())
    examine(train(model, updates - updates // 2, rng), rng, "hard.png" if plot else None)


if __name__ == "__main__":
    typer.run(main)
