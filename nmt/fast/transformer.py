"""The Transformer in search: hypotheses share the memory of their sentence, and a kernel ranks their continuations."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from nmt.fast.output import SearchLogProbs
from nmt.model.interface import Step
from nmt.model.transformer import (
    LayerMemory,
    TransformerDecoderLayer,
    TransformerMemory,
    TransformerModel,
    TransformerState,
)
from nmt.search.segments import Segments


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
