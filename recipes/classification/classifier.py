"""A classifier of texts whose attention shows which words it read. `colors_animals.py` and `csv_labels.py` use it.

    h_1 ... h_S = Encoder(words)                                       a bidirectional GRU, or the embeddings alone
    alpha_j = softmax_j(score(q, h_j)),  c = sum_j alpha_j h_j         the query q is learned
    p(label | text) = sigmoid(w_label^T tanh(W c))

This is the attention of translation with one difference: a decoder asks anew for each target word, a classifier always asks
the same, so its query is a parameter.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits
from torch.nn.utils.rnn import pad_sequence

from nmt.model import AdditiveScore, DotScore, Encoder, EncoderOutput, Score, TokenEmbedding, masked_softmax
from nmt.recipe import DropoutConfig, EncoderConfig

RATE, BATCH, DROPOUT, SIZE = 0.02, 32, 0.1, 32
PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2  # ids: the first two are no words
ATTENTIONS = ("additive", "scaled-dot", "4-heads", "mean", "last")
"""Ways to make one vector of the annotations. The last two are without attention: their mean, and the encoder's last state."""


class ScaledDotScore(DotScore):
    """q^T h_j / sqrt(d)   (Vaswani et al. 2017, eq. 1)."""

    def forward(self, queries: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Float[Tensor, "B K S"]:
        return super().forward(queries, keys) / math.sqrt(keys.shape[-1])


class LearnedQueries(nn.Module):
    """Attention with any score of nmt and K learned queries, one per head; the contexts of the heads stand side by side.

    With `AdditiveScore` it is the word attention of Yang et al. (2016, eq. 5 to 7): W q, which is learned, is their bias, and
    v their context vector u_w. Heads need no projections of their own, since q^T (U h) = (U^T q)^T h, and U^T q is learned too.
    Queries start at random with standard deviation `spread`: small for `AdditiveScore`, where W q is a bias.
    """

    def __init__(self, score: Score, width: int, *, heads: int = 1, spread: float = 1.0) -> None:
        super().__init__()
        self.score, self.queries = score, nn.Parameter(spread * torch.randn(heads, width))

    def forward(self, encoded: EncoderOutput) -> tuple[Float[Tensor, "B KA"], Float[Tensor, "B K S"]]:
        scores = self.score(self.queries.expand(len(encoded.mask), -1, -1), self.score.keys(encoded.annotations))
        weights = masked_softmax(scores, encoded.mask.unsqueeze(1))
        return (weights @ encoded.annotations).flatten(1), weights


def read_mean(encoded: EncoderOutput) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B 1 S"]]:
    """c is the mean of all annotations: the weight of every word is 1 / S."""
    weights = (encoded.mask / encoded.mask.sum(1, keepdim=True)).unsqueeze(1)
    return (weights @ encoded.annotations).squeeze(1), weights


def read_last(encoded: EncoderOutput) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B 1 S"]]:
    """c is the state of each direction after it has read all words: no word has a weight."""
    return encoded.final[:, -1], torch.zeros_like(encoded.mask.unsqueeze(1), dtype=torch.float)


def build_reading(attention: str, width: int) -> tuple[Callable[[EncoderOutput], tuple[Tensor, Tensor]], int]:
    """What makes a context of annotations, and how many times as wide as they are the context is."""
    match attention:
        case "additive":
            return LearnedQueries(AdditiveScore(width, width, width), width, spread=width**-0.5), 1
        case "scaled-dot":
            return LearnedQueries(ScaledDotScore(), width), 1
        case "4-heads":
            return LearnedQueries(ScaledDotScore(), width, heads=4), 4
        case "mean":
            return read_mean, 1
        case _:
            return read_last, 1


class Classifier(nn.Module):
    """p(label | text) of each label. If not `masked`, padding is read as if it were a word. Without an encoder there is no last state."""

    def __init__(self, words: int, labels: int, *, attention: str, encoder: str = "gru", masked: bool = True) -> None:
        super().__init__()
        self.masked, width, size = masked, 2 * SIZE, SIZE if encoder == "gru" else 2 * SIZE
        self.embedding, self.dropout = TokenEmbedding(FIRST_WORD + words, size, scale=size**0.5), nn.Dropout(DROPOUT)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        gru = Encoder(EncoderConfig(hidden=size), embedding=size, dropout=DropoutConfig(annotations=0))
        self.encoder = gru if encoder == "gru" else None  # then the embeddings are the annotations: a set of words
        self.read, heads = build_reading(attention, width)
        self.output = nn.Sequential(nn.Linear(heads * width, width), nn.Tanh(), nn.Linear(width, labels))

    def forward(self, ids: Int[Tensor, "B S"]) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B K S"]]:
        """The logit of each label, and the weights alpha_j of each head."""
        mask = ids != PADDING if self.masked else torch.ones_like(ids, dtype=torch.bool)
        embedded = self.dropout(self.embedding(ids))
        alone = EncoderOutput(embedded, mask, final=embedded[:, :0], cell=None)
        context, weights = self.read(alone if self.encoder is None else self.encoder(embedded, mask))
        return self.output(context), weights


@dataclass(frozen=True)
class Examples:
    """Texts with their labels."""

    ids: Int[Tensor, "N S"]
    labels: Bool[Tensor, "N C"]

    def __getitem__(self, rows: slice) -> Examples:
        return Examples(self.ids[rows], self.labels[rows])


def encode(texts: Iterable[Iterable[str]], vocabulary: Mapping[str, int]) -> Int[Tensor, "N S"]:
    """The ids of the words of each text, padded to the longest. A text without words is one unknown word."""
    rows = [torch.tensor([vocabulary.get(word, UNKNOWN) for word in text] or [UNKNOWN]) for text in texts]
    return pad_sequence(rows, batch_first=True, padding_value=PADDING)


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
def predict(model: Classifier, ids: Int[Tensor, "N S"]) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N K S"]]:
    """The probability of each label, and the weights of each head."""
    model.eval()
    logits, weights = zip(*map(model, ids.split(256)), strict=True)
    return torch.cat(logits).sigmoid(), torch.cat(weights)
