"""The model that every system trains, and its number of operations.

Embeddings of 256 per side, untied; a bidirectional GRU of 256 per direction; a GRU decoder of 512; an output layer over a joint
vocabulary of at most 8,000 tokens; dropout 0.3 on embeddings and readouts, as in OpenNMT-py; Adam at 1e-3; gradients clipped at
norm 1; no label smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EMBEDDING, ENCODER, HIDDEN, VOCABULARY = 256, 256, 512, 8000
ANNOTATION = 2 * ENCODER
SCALES = {"additive": 16, "general": 1}
"""`embedding_scale` of each family: sqrt(EMBEDDING), so that components are as large as those of states, or 1 as in OpenNMT-py."""


@dataclass(frozen=True)
class Variant:
    """An attention and a decoder order, and the family of peer models that it is compared with."""

    name: str
    family: str
    score: str
    order: str
    readout: str
    feeding: bool

    @property
    def source_products(self) -> int:
        """Multiplications per source token in matrix products: encoder and attention keys."""
        return 2 * 3 * ENCODER * (EMBEDDING + ENCODER) + ANNOTATION * HIDDEN

    def target_products(self, vocabulary: int) -> int:
        """Multiplications per target token in matrix products: cell, attention query, readout and output layer."""
        fed = HIDDEN if self.feeding else 0
        cell = 3 * HIDDEN * (EMBEDDING + fed + HIDDEN)
        query = HIDDEN * HIDDEN if self.family == "additive" else 0
        read = HIDDEN + ANNOTATION + (EMBEDDING if self.readout == "tanh" else 0)
        return cell + query + read * HIDDEN + HIDDEN * vocabulary

    def training_flop(self, vocabulary: int, source_per_target: float) -> float:
        """Floating-point operations per target token: two per multiplication; the backward pass costs twice the forward pass."""
        return 6 * (self.target_products(vocabulary) + source_per_target * self.source_products)

    def decoding_flop(self, vocabulary: int, source: float, target: float, beam: int) -> float:
        """Floating-point operations per sentence of `source` and `target` tokens, EOS included."""
        return 2 * (beam * target * self.target_products(vocabulary) + source * self.source_products)

    def recipe(self, text: Path, *, precision: str, updates: int, batch_tokens: int) -> str:
        """The recipe of nmt, which validates once, at the end, on a few sentences."""
        return f"""\
name: {self.name.replace(" ", "-").replace(",", "")}
data:
  source: en
  target: de
  train: {text}/train.{{en,de}}
  valid: {text}/few.{{en,de}}
  filters: {{max_length: 100, max_ratio: null}}
subwords: {{kind: unigram, size: {VOCABULARY}, source_model: {text}/joint.model, target_model: {text}/joint.model}}
model:
  embedding: {EMBEDDING}
  embedding_scale: {SCALES[self.family]}
  tie: none
  encoder: {{cell: gru, hidden: {ENCODER}}}
  attention: {{score: {self.score}}}
  decoder:
    cell: gru
    hidden: {HIDDEN}
    order: {self.order}
    readout: {{kind: {self.readout}, size: {HIDDEN}}}
    bridge: final
  dropout: {{embedding: 0.3, annotations: 0, readout: 0.3}}
training:
  epochs: 1000
  updates: {updates}
  batch_tokens: {batch_tokens}
  optimizer: {{kind: adam, rate: 1e-3}}
  clip_norm: 1.0
  label_smoothing: 0
  precision: {precision}
  validation: {{every: 1000000, metrics: perplexity, patience: null}}
  log_every: 5
"""


_ADDITIVE = f"{{kind: additive, size: {HIDDEN}}}"
_LUONG = "{kind: update-then-attend, input_feeding: %s}"
VARIANTS = (
    Variant("additive, feeding", "additive", _ADDITIVE, _LUONG % "true", "attentional", feeding=True),
    Variant("additive, attend-then-update", "additive", _ADDITIVE, "attend-then-update", "tanh", feeding=True),
    Variant("general, feeding", "general", "general", _LUONG % "true", "attentional", feeding=True),
    Variant("general, no feeding", "general", "general", _LUONG % "false", "attentional", feeding=False),
)
"""Peers compute the first and the third. In the second the context enters the cell instead."""
