"""Models in search, whose hypotheses share the memory of their sentence, and the loop of search with kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.fast.kernels import decoding as kernels
from nmt.fast.output import Listed, SearchLogProbs, listed_output
from nmt.fast.shared_attention import SharedMemory
from nmt.model.decoder import RecurrentState
from nmt.model.interface import Step
from nmt.model.recurrent import RecurrentMemory, RecurrentModel
from nmt.model.transformer import (
    LayerMemory,
    TransformerDecoderLayer,
    TransformerMemory,
    TransformerModel,
    TransformerState,
)
from nmt.search.beam import Beam, Candidates
from nmt.search.candidates import FollowingLogProbs, IndexedLogProbs
from nmt.search.finished import FinishedHypotheses
from nmt.search.loop import Search
from nmt.search.segments import Segments


@dataclass(frozen=True)
class SearchMemory(RecurrentMemory):
    """The memory of the recurrent model, and the shortlists of its sentences."""

    attention: SharedMemory
    listed: Listed | None = None

    def select(self, rows: Int[Tensor, " M"]) -> SearchMemory:
        listed = None if self.listed is None else self.listed.select(rows)
        return SearchMemory(self.attention.select(rows), self.bridged.select(rows), listed)


class SearchModel(RecurrentModel):
    """A recurrent model whose steps do not copy the memory for each hypothesis."""

    in_bf16: bool
    """Whether steps multiply with the memory in bf16."""
    shared_tokens: Int[Tensor, " F"]
    """The tokens on every shortlist."""
    shared_output: nn.Linear
    """Their rows of the output layer."""

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> SearchMemory:
        memory = super().encode(source, source_mask)
        shared = SharedMemory.of(memory.attention)
        return SearchMemory(shared.in_bf16() if self.in_bf16 else shared, memory.bridged)

    def restrict(self, memory: SearchMemory, tokens: Int[Tensor, " M"], sentences: Segments) -> SearchMemory:
        """The memory of sentences restricted to the shared tokens and the listed tokens of each sentence.

        Args:
            memory: the memory of unrestricted sentences.
            tokens: the listed tokens of each sentence, those of the first sentence first.
            sentences: the sentence of each of these.
        """
        listed = listed_output(self.output, self.shared_output, self.shared_tokens, tokens, sentences)
        return replace(memory, listed=listed)

    def step(
        self, tokens: Int[Tensor, " N"], state: RecurrentState, memory: RecurrentMemory, rows: Int[Tensor, " N"]
    ) -> Step:
        assert isinstance(memory, SearchMemory)
        decoded = self.decoder(self.embed(tokens.unsqueeze(1)), state, memory.attention.read_by(rows))
        centers = None if decoded.centers is None else decoded.centers[:, 0]
        of = Segments(rows, len(memory.attention.mask))
        log_probs = SearchLogProbs(decoded.readouts[:, 0], self.output, of, memory.listed)
        return Step(log_probs, decoded.alignment[:, 0], decoded.state, centers)


@dataclass(frozen=True)
class SharedLayerMemory(LayerMemory):
    """What a decoder layer reads, one row per sentence, and the sentence that each hypothesis reads."""

    rows: Segments


class SharedDecoderLayer(TransformerDecoderLayer):
    """Attends for the hypotheses of a sentence as if they were time steps, so that its memory is read once for all of them."""

    def attend(
        self, queries: Float[Tensor, "N T E"], source: LayerMemory
    ) -> tuple[Float[Tensor, "N T E"], Float[Tensor, "N K T S"]]:
        if not isinstance(source, SharedLayerMemory):
            return super().attend(queries, source)
        contexts, weights = super().attend(source.rows.to_padded(queries.squeeze(1)), source)
        by_step = source.rows.to_flat(weights.transpose(1, 2))
        return source.rows.to_flat(contexts).unsqueeze(1), by_step.unsqueeze(2)


class SearchTransformer(TransformerModel):
    """A Transformer whose steps do not copy the memory for each hypothesis."""

    def step(
        self, tokens: Int[Tensor, " N"], state: TransformerState, memory: TransformerMemory, rows: Int[Tensor, " N"]
    ) -> Step:
        of = Segments(rows, len(memory.layers[0].mask))
        layers = (SharedLayerMemory(layer.keys, layer.values, layer.mask, of) for layer in memory.layers)
        readouts, alignment, state = self.decode(tokens.unsqueeze(1), state, TransformerMemory(tuple(layers)))
        return Step(SearchLogProbs(readouts[:, 0], self.output, of), alignment[:, 0], state)


class FastSearch(Search):
    """The same hypotheses. Samples and coverage penalties have no kernel."""

    def candidates(self, beam: Beam, log_probs: IndexedLogProbs, uniform: Float[Tensor, "B L"] | None) -> Candidates:
        following: Sequence[Collection[int]] = ()
        all_log_probs = log_probs
        if isinstance(log_probs, FollowingLogProbs):
            all_log_probs, following = log_probs.log_probs, log_probs.following
        if uniform is None and isinstance(all_log_probs, SearchLogProbs) and all_log_probs.can_rank(beam, self.options):
            return all_log_probs.top_candidates(beam, self.options, following)
        return super().candidates(beam, log_probs, uniform)

    def update_finished(
        self,
        finished: FinishedHypotheses,
        candidates: Candidates,
        coverage: Float[Tensor, "B W S"] | None,
        first_node: int,
        time: int,
    ) -> Float[Tensor, "B W"]:
        if coverage is not None or not kernels.can_use(candidates.log_probs):
            return super().update_finished(finished, candidates, coverage, first_node, time)
        return kernels.update_finished(
            candidates.log_probs,
            candidates.tokens,
            finished.scores,
            finished.nodes,
            finished.max_lengths,
            finished.length_penalties,
            first=first_node,
            length=time + 1,
            horizon=self.options.horizon,
            eos=self.options.eos,
        )
