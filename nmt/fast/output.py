"""The output layer in search, for the whole vocabulary or a shortlist per sentence.

The table of log-probabilities [N V] is never in memory: chunks of logits fit the cache while a kernel picks their largest. A
shortlist multiplies only the rows of W_o that it names, and those shared by all sentences in one product.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.fast.bucketing import largest_bucket_within
from nmt.fast.int8 import Int8Linear
from nmt.fast.kernels import decoding as kernels
from nmt.fast.linear import PackedLinear, packed_linear
from nmt.fast.loss import ChunkedOutputLayer
from nmt.model.output import OutputLayer
from nmt.model.precision import at_least_fp32
from nmt.search.beam import Beam, Candidates
from nmt.search.candidates import rows_and_tokens, without_forbidden
from nmt.search.hypothesis import NEG_INF
from nmt.search.options import SearchOptions
from nmt.search.segments import Segments

_IN_CACHE = 2**20
"""Logits per chunk: they are still in the cache when the largest are picked."""
_FEW = 64
"""The number of most probable tokens up to which the kernel is fast."""


class PackedOutputLayer(ChunkedOutputLayer):
    """The output layer with packed weights."""

    def __init__(self, output: OutputLayer, dtype: torch.dtype) -> None:
        super().__init__(output.in_features, output.out_features, bias=output.bias is not None, device="meta")
        self.weight, self.bias = output.weight, output.bias
        self.linear = packed_linear(output, dtype)

    def forward(self, readouts: Float[Tensor, "... R"]) -> Float[Tensor, "... V"]:
        logits: Tensor = self.linear(readouts)
        return logits


@dataclass(frozen=True)
class ListedWeights:
    """The rows of W_o and b of the listed tokens of each sentence, padded with b = -inf."""

    weight: Float[Tensor, "B W R"]
    bias: Float[Tensor, "B W"]

    def select(self, sentences: Int[Tensor, " M"]) -> ListedWeights:
        return ListedWeights(self.weight[sentences], self.bias[sentences])


@dataclass(frozen=True)
class Listed:
    """The output layer for shortlists: first the tokens that all sentences share, then the listed tokens of each sentence."""

    shared: nn.Linear
    listed: ListedWeights | kernels.SegmentPanels
    tokens: Int[Tensor, "B C"]
    """The token of each logit of each sentence."""

    def __call__(self, readouts: Float[Tensor, "N R"], rows: Segments) -> Float[Tensor, "N C"]:
        """Logits of N readouts; `rows` holds the sentence of each. Padding is -inf."""
        if isinstance(self.listed, ListedWeights):
            padded = rows.to_padded(readouts.to(self.listed.weight.dtype))
            logits = torch.baddbmm(self.listed.bias.unsqueeze(1), padded, self.listed.weight.transpose(1, 2))
            return torch.cat([self.shared(readouts), rows.to_flat(logits)], 1)
        assert isinstance(self.shared, Int8Linear)
        assert self.shared.panels is not None
        logits, shared = readouts.new_empty(len(readouts), self.tokens.shape[1]), self.shared.out_features
        kernels.int8_product(self.shared.panels, readouts, logits[:, :shared])
        kernels.int8_products_of_segments(self.listed, readouts, rows.segment_ids, logits[:, shared:])
        return logits

    def select(self, sentences: Int[Tensor, " M"]) -> Listed:
        """The same for these sentences, in their order."""
        return replace(self, listed=self.listed.select(sentences), tokens=self.tokens[sentences])


def listed_output(
    output: OutputLayer, shared: nn.Linear, shared_ids: Int[Tensor, " F"], ids: Int[Tensor, " M"], sentences: Segments
) -> Listed:
    """An output layer restricted to shortlists.

    Args:
        output: the whole layer.
        shared: its rows for the shared tokens, see `restricted`.
        shared_ids: the tokens on every shortlist.
        ids: the other tokens of each sentence, those of the first sentence first.
        sentences: the sentence of each of these.
    """
    linear = output.linear if isinstance(output, PackedOutputLayer) else output
    tokens = torch.cat([shared_ids.expand(sentences.count, -1), sentences.to_padded(ids)], 1)
    if isinstance(linear, Int8Linear) and linear.panels is not None:
        return Listed(shared, linear.matrix.panels_of_segments(ids, sentences), tokens)
    dtype = linear.dtype if isinstance(linear, PackedLinear) else output.weight.dtype
    weight, bias = output.weight[ids].to(dtype), output.bias[ids].to(dtype)
    return Listed(shared, ListedWeights(sentences.to_padded(weight), sentences.to_padded(bias, float("-inf"))), tokens)


@dataclass(frozen=True)
class SearchLogProbs:
    """log p(y_t | y_<t, x) of N hypotheses, computed for the rows that are indexed."""

    readouts: Float[Tensor, "N R"]
    output: OutputLayer
    rows: Segments
    """The sentence of each hypothesis."""
    listed: Listed | None = None
    """Shortlists; probabilities are normalized over them."""

    def __len__(self) -> int:
        return len(self.readouts)

    def __getitem__(self, rows: slice | Tensor) -> Float[Tensor, "n V"]:
        log_probs = torch.log_softmax(self._logits(rows), dim=-1)
        if self.listed is None:
            return log_probs
        table = log_probs.new_full((len(log_probs), self.output.out_features), float("-inf"))
        tokens = self.listed.tokens[self.rows.segment_ids[rows]]
        return table.scatter_reduce_(1, tokens, log_probs, "amax")  # padding is a token at -inf

    def can_rank(self, beam: Beam, options: SearchOptions) -> bool:
        """Whether a kernel ranks the continuations of such a beam, and is faster."""
        return options.beam_size <= _FEW and self.readouts.dtype != torch.float64 and kernels.can_use(beam.log_probs)

    def top_candidates(
        self, beam: Beam, options: SearchOptions, following: Sequence[Collection[int]] = ()
    ) -> Candidates:
        """What `nmt.search.loop.Search.candidates` computes, without a table of [N V] numbers.

        Args:
            beam: the hypotheses.
            options: of the search.
            following: the tokens that may follow each hypothesis, as in `FollowingLogProbs`; nothing where all may follow all.
        """
        sentences = beam.sentences
        width = self.output.out_features if self.listed is None else self.listed.tokens.shape[1]
        size = largest_bucket_within(max(_IN_CACHE // width, 1))
        chunks = []
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            logits = self._logits(rows)
            log_probs, tokens = kernels.most_probable(
                logits,
                min(options.beam_size, width),
                tokens=None if self.listed is None else self.listed.tokens,
                segment_ids=self.rows.segment_ids[rows],
                forbid=options.forbid,
            )
            if any(following[rows]):
                assert self.listed is None
                rank_following_(log_probs, tokens, logits, following[rows], options.forbid)
            chunks.append((log_probs, tokens))
        log_probs, tokens = (torch.cat(parts) for parts in zip(*chunks, strict=True))
        totals, parents, tokens, log_probs = kernels.best_continuations(
            *(beam.log_probs, log_probs, tokens, sentences.segment_ids, sentences.count),
            *(options.beam_size, options.prune),
        )
        return Candidates(parents, tokens, log_probs, totals)

    def _logits(self, rows: slice | Tensor) -> Float[Tensor, "n C"]:
        if self.listed is None:
            logits: Tensor = self.output(self.readouts[rows])
            return at_least_fp32(logits)
        return at_least_fp32(self.listed(self.readouts[rows], Segments(self.rows.segment_ids[rows], self.rows.count)))


def rank_following_(
    log_probs: Float[Tensor, "n k"],
    tokens: Int[Tensor, "n k"],
    logits: Float[Tensor, "n V"],
    following: Sequence[Collection[int]],
    forbid: tuple[int, ...],
) -> None:
    """Where not all tokens may follow, replace the most probable ones by the most probable of those that may."""
    row_ids, ids = rows_and_tokens(following)
    log_sums = logits.gather(1, tokens[:, :1]) - log_probs[:, :1]  # log sum_v exp x_v
    values = without_forbidden(logits[row_ids, ids] - log_sums[row_ids, 0], ids, forbid)
    order = values.argsort(descending=True, stable=True)
    order = order[row_ids[order].argsort(stable=True)]  # the best of each row first
    places = Segments(row_ids, len(following)).positions
    best = places < log_probs.shape[1]
    log_probs[row_ids] = NEG_INF
    log_probs[row_ids[best], places[best]] = values[order[best]]
    tokens[row_ids[best], places[best]] = ids[order[best]]
