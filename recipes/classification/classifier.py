"""A classifier of texts whose attention shows which words it read. `colors_animals.py` and `csv_labels.py` use it.

    c = sum_j alpha_j h_j                                       as in `reading.py`
    p(label | text) = sigmoid(w_label^T tanh(W c))

This is the attention of translation with one difference: a decoder asks anew for each target word, a classifier always asks
the same, so its query is a parameter.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from reading import SIZE, HierarchicalReader, Reader
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits
from words import FIRST_WORD, PADDING

from nmt.model import TokenEmbedding

RATE, BATCH, DROPOUT = 0.02, 32, 0.1


class Classifier(nn.Module):
    """p(label | text) of each label. If `hierarchical`, a text is sentences; if not `masked`, padding is read as if it were a word."""

    def __init__(
        self,
        words: int,
        labels: int,
        *,
        attention: str,
        encoder: str = "gru",
        hierarchical: bool = False,
        masked: bool = True,
    ) -> None:
        super().__init__()
        self.masked, width, size = masked, 2 * SIZE, SIZE if encoder == "gru" else 2 * SIZE
        self.embedding, self.dropout = TokenEmbedding(FIRST_WORD + words, size, scale=size**0.5), nn.Dropout(DROPOUT)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        kind = HierarchicalReader if hierarchical else Reader
        self.reader = kind(size, attention=attention, encoder=encoder)
        self.output = nn.Sequential(nn.Linear(self.reader.width, width), nn.Tanh(), nn.Linear(width, labels))

    def forward(self, ids: Int[Tensor, "B *T S"]) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B K *T S"]]:
        """The logit of each label, and the weights of the words by each head."""
        mask = ids != PADDING if self.masked else torch.ones_like(ids, dtype=torch.bool)
        context, weights = self.reader(self.dropout(self.embedding(ids)), mask)
        return self.output(context), weights


@dataclass(frozen=True)
class Examples:
    """Texts with their labels."""

    ids: Int[Tensor, "N *T S"]
    labels: Bool[Tensor, "N C"]

    def __getitem__(self, rows: slice) -> Examples:
        return Examples(self.ids[rows], self.labels[rows])


def fit(
    model: Classifier, train: Examples, valid: Examples, *, epochs: int, report: Callable[[str], None] = lambda _: None
) -> None:
    """Minimize the binary cross-entropy with Adam; keep the weights of the epoch that is best on `valid`."""
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    best, weights = float("inf"), model.state_dict()
    for epoch in range(1, epochs + 1):
        optimizer.param_groups[0]["lr"] = RATE * (1 - (epoch - 1) / epochs)
        model.train()
        for rows in torch.randperm(len(train.ids)).split(BATCH):
            loss = binary_cross_entropy_with_logits(model(train.ids[rows])[0], train.labels[rows].float())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        loss = binary_cross_entropy(predict(model, valid.ids)[0], valid.labels.float())
        report(f"Epoch {epoch} of {epochs}: loss {loss:.4f} on the validation texts.")
        if loss < best:
            best, weights = float(loss), copy.deepcopy(model.state_dict())
    model.load_state_dict(weights)


@torch.inference_mode()
def predict(model: Classifier, ids: Int[Tensor, "N *T S"]) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N K *T S"]]:
    """The probability of each label, and the weights of each head."""
    model.eval()
    logits, weights = zip(*map(model, ids.split(256)), strict=True)
    return torch.cat(logits).sigmoid(), torch.cat(weights)
