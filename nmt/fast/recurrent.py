"""The recurrent model in search: hypotheses share the memory of their sentence, and a shortlist shrinks the output layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Bool, Int
from torch import Tensor, nn

from nmt.fast.beam_memory import SharedMemory
from nmt.fast.output import Listed, SearchLogProbs, listed_output
from nmt.model.decoder import RecurrentState
from nmt.model.interface import Step
from nmt.model.recurrent import RecurrentMemory, RecurrentModel
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

    def restrict(self, memory: SearchMemory, own: Int[Tensor, " M"], sentences: Segments) -> SearchMemory:
        """The memory of sentences restricted to listed tokens: the shared ones and those of each sentence.

        Args:
            memory: the memory of unrestricted sentences.
            own: the other tokens of each sentence, those of the first sentence first.
            sentences: the sentence of each of these.
        """
        return replace(
            memory, listed=listed_output(self.output, self.shared_output, self.shared_tokens, own, sentences)
        )

    def step(
        self, tokens: Int[Tensor, " N"], state: RecurrentState, memory: RecurrentMemory, rows: Int[Tensor, " N"]
    ) -> Step:
        assert isinstance(memory, SearchMemory)
        decoded = self.decoder(self.embed(tokens.unsqueeze(1)), state, memory.attention.read_by(rows))
        centers = None if decoded.centers is None else decoded.centers[:, 0]
        of = Segments(rows, len(memory.attention.mask))
        log_probs = SearchLogProbs(decoded.readouts[:, 0], self.output, of, memory.listed)
        return Step(log_probs, decoded.alignment[:, 0], decoded.state, centers)
