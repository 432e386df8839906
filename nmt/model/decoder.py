"""Decoder: embedded target words -> readouts, one attention a step, in either order of the two papers.

    attend-then-update  (Bahdanau et al. 2015, 3.1)     c_i = attend(s_{i-1});  s_i = f(s_{i-1}, E y_{i-1}, c_i)
    update-then-attend  (Luong et al. 2015, 3)          h_t = f(h_{t-1}, E y_{t-1});  c_t = attend(h_t)

In both orders row t of the alignment belongs to the word that step t predicts: that is what attention learns to look up, in
update-then-attend too, although h_t has just read the word before. With input feeding (Luong 3.3) the readout h~_{t-1}
enters f beside the embedded word, at the same scale. All steps of a known target and a
single step of search run the same code: a step is a target of one word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt import recipe
from nmt.model.attention import Memory, build_attention
from nmt.model.cells import GATES, Dropout, GruCell, build_cell
from nmt.model.encoder import Encoded
from nmt.model.gathering import StepLinear, gathering
from nmt.model.readout import build_readout


@dataclass(frozen=True)
class DecoderState:
    """What a decoder carries from one step to the next. Layers come second, so that every field has the batch first."""

    hidden: Float[Tensor, "B L H"]
    position: Int[Tensor, " B"]
    """Number of the step to come, from 0."""
    cell: Float[Tensor, "B L H"] | None = None
    """The LSTM's second state."""
    feed: Float[Tensor, "B R"] | None = None
    """The readout of the step before, with input feeding."""
    coverage: Float[Tensor, "B S"] | None = None
    """The weight that each source word has had so far, for scores that look at it."""

    def select(self, rows: Int[Tensor, " N"]) -> DecoderState:
        """The state of the given rows, in their order."""
        cell = None if self.cell is None else self.cell.index_select(0, rows)
        feed = None if self.feed is None else self.feed.index_select(0, rows)
        coverage = None if self.coverage is None else self.coverage.index_select(0, rows)
        return DecoderState(
            self.hidden.index_select(0, rows), self.position.index_select(0, rows), cell, feed, coverage
        )


@dataclass(frozen=True)
class Decoded:
    """What the decoder made of T target words."""

    readouts: Float[Tensor, "B T R"]
    alignment: Float[Tensor, "B T S"]
    state: DecoderState


class Recurrence(nn.Module):
    """L stacked cells; the first reads the sum of its projected inputs, each other one what the layer below puts out.

    The inputs are the word, or one other vector, or both. A layer puts out its state, with residual connections plus what it
    read, from the second layer on (Wu et al. 2016, 3.1).
    """

    def __init__(self, chosen: recipe.DecoderConfig, *, inputs: dict[str, int], dropout: recipe.DropoutConfig) -> None:
        super().__init__()
        self.cells = nn.ModuleList(
            build_cell(chosen.cell, chosen.hidden, layer_norm=chosen.layer_norm) for _ in range(chosen.layers)
        )
        self.layers, self.residual = chosen.layers, chosen.residual
        width = GATES[chosen.cell] * chosen.hidden
        self.inputs = nn.ModuleDict(
            {name: StepLinear(size, width, bias=name == "word") for name, size in inputs.items()}
        )
        self.other = next((name for name in inputs if name != "word"), None)
        self.below = nn.ModuleList(StepLinear(chosen.hidden, width) for _ in range(chosen.layers - 1))
        self.dropout = Dropout(dropout.recurrent, variational=dropout.variational)
        self.between = nn.Dropout(dropout.layers)
        for linear in [*self.inputs.values(), *self.below]:
            nn.init.xavier_uniform_(linear.weight)

    def read(self, embedded: Float[Tensor, "... E"]) -> Float[Tensor, "... G"]:
        """W E y of words, for the gates of the first layer."""
        projected: Tensor = self.inputs["word"](embedded)
        return projected

    def forward(
        self,
        word: Float[Tensor, "B G"] | None,
        state: DecoderState,
        masks: Tensor | None,
        other: Float[Tensor, "B D"] | None = None,
    ) -> tuple[Float[Tensor, "B H"], DecoderState]:
        """What the top layer puts out, and the state after one step, of the inputs that there are: the word as `read`, the other one.

        `masks` [B L H] is each sentence's dropout on the recurrent matrices, if any.
        """
        output, cell = self.layer(0, word, other, state, masks)
        hidden, cells = [output], [cell]
        for depth in range(1, self.layers):
            new, cell = self.layer(depth, None, self.between(output), state, masks)
            output = output + new if self.residual else new
            hidden.append(new)
            cells.append(cell)
        new_cells = None if state.cell is None else _stacked([cell for cell in cells if cell is not None])
        return output, replace(state, hidden=_stacked(hidden), cell=new_cells)

    def layer(
        self,
        depth: int,
        word: Float[Tensor, "B G"] | None,
        other: Float[Tensor, "B D"] | None,
        state: DecoderState,
        masks: Tensor | None,
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"] | None]:
        """The state of one layer after a step, and an LSTM's second one; above the first `other` is what the layer below puts out."""
        before = None if state.cell is None else state.cell[:, depth]
        mask = None if masks is None else masks[:, depth]
        new: tuple[Tensor, Tensor | None] = self.cells[depth](
            self._projected(depth, word, other), state.hidden[:, depth], before, mask
        )
        return new

    def _projected(
        self, depth: int, word: Float[Tensor, "B G"] | None, other: Float[Tensor, "B D"] | None
    ) -> Float[Tensor, "B G"]:
        """What the gates of a layer read."""
        if other is None:
            assert word is not None
            return word
        linear = self.reads_other(depth)
        return linear(other) if word is None else linear.added_to(word, other)

    def reads_other(self, depth: int) -> StepLinear:
        """What multiplies what a layer reads beside the word."""
        assert depth or self.other is not None
        linear = self.inputs[self.other] if self.other and not depth else self.below[depth - 1]
        assert isinstance(linear, StepLinear)
        return linear

    @property
    def reading_other(self) -> range:
        """The layers that read something beside the word."""
        return range(1 if self.other is None else 0, self.layers)

    def all_steps(
        self, words: Float[Tensor, "B T G"], state: DecoderState, masks: Tensor | None
    ) -> tuple[Float[Tensor, "B T H"], DecoderState]:
        """The same for words that are all known: what the top layer puts out at each step, and the state after the last."""
        first = self.cells[0]
        if len(self.cells) == 1 and isinstance(first, GruCell) and first.is_plain and masks is None:
            states = first.states(words, state.hidden[:, 0])
            return states, replace(state, hidden=states[:, -1:])
        return self.each_step(words, state, masks)

    def each_step(
        self, words: Float[Tensor, "B T G"], state: DecoderState, masks: Tensor | None
    ) -> tuple[Float[Tensor, "B T H"], DecoderState]:
        """The same, one after the other."""
        outputs = []
        for word in words.unbind(1):
            output, state = self(word, state, masks)
            outputs.append(output)
        return _stacked(outputs), state

    def masks(self, state: DecoderState) -> Tensor | None:
        """The dropout of the states that the recurrent matrices see, one mask a sentence; None outside of training."""
        if not self.training or self.dropout.rate == 0:
            return None
        return self.dropout.mask(state.hidden.flatten(1)).view_as(state.hidden)

    if TYPE_CHECKING:
        __call__ = forward


class AttentionalDecoder(nn.Module):
    """What both orders share: an attention that a state asks, and a count of the steps and of what was attended to."""

    def __init__(self, model: recipe.ModelConfig) -> None:
        super().__init__()
        annotation, hidden = model.encoder.annotation, model.decoder.hidden
        self.attention = build_attention(model.attention, query=hidden, annotation=annotation)
        self.readout = build_readout(
            model.decoder.readout, hidden=hidden, embedding=model.embedding, context=annotation
        )

    def forward(self, embedded: Float[Tensor, "B T E"], state: DecoderState, memory: Memory) -> Decoded:
        """All steps of known target words."""
        with gathering(torch.is_grad_enabled() and embedded.shape[1] > 1):
            return self.unroll(embedded, state, memory)

    def unroll(self, embedded: Float[Tensor, "B T E"], state: DecoderState, memory: Memory) -> Decoded:
        """The steps, one after the other."""
        raise AssertionError(f"{type(self).__name__} does not say what a step is")

    def read_each(self, embedded: Float[Tensor, "B E"], state: DecoderState, memory: Memory) -> Float[Tensor, "B S R"]:
        """The readouts of one step, had each source position in turn been all that it attended to: c_t = h_j."""
        raise AssertionError(f"{type(self).__name__} does not say what a step is")

    if TYPE_CHECKING:
        __call__ = forward

    def start(self, state: DecoderState, memory: Memory) -> DecoderState:
        """The state before the first step; nothing has been attended to."""
        if not self.attention.covers:
            return state
        return replace(state, coverage=state.hidden.new_zeros(len(state.hidden), memory.mask.shape[1]))

    def attend(
        self, query: Float[Tensor, "B H"], state: DecoderState, memory: Memory
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B S"], DecoderState]:
        """Context and weights for the state that asks, and the state with this step counted.

        With `memory.asking` they are hypotheses of which several may ask about the same sentence, or none.
        """
        coverage, asking = state.coverage, memory.asking
        if coverage is not None:
            had = coverage if asking is None else asking.spread(coverage)
            memory = replace(memory, coverage=had.repeat_interleave(memory.heads, 0))
        if asking is None:
            context, weights = self.attention(query, state.position, memory)
        else:
            context, weights = self.attention.of_hypotheses(query, state.position, asking, memory)
        coverage = None if coverage is None else coverage + weights
        return context, weights, replace(state, position=state.position + 1, coverage=coverage)

    def attend_all(
        self, queries: Float[Tensor, "B T H"], state: DecoderState, memory: Memory
    ) -> tuple[Float[Tensor, "B T A"], Float[Tensor, "B T S"], DecoderState]:
        """The same for the states of all steps; what has been attended to must then not matter."""
        positions = state.position.unsqueeze(1) + torch.arange(queries.shape[1], device=queries.device)
        contexts, weights = self.attention.of_steps(queries, positions, memory)
        return contexts, weights, replace(state, position=positions[:, -1] + 1)


class AttendThenUpdate(AttentionalDecoder):
    """s_{i-1} asks, and the context enters the recurrence; the readout t_i reads s_i, E y_{i-1} and c_i (Bahdanau et al. 2015).

    Conditional, the word enters first and the state that has read it asks (Sennrich et al. 2017, A):
    s'_i = f(s_{i-1}, E y_{i-1});  c_i = attend(s'_i);  s_i = g(s'_i, c_i).
    """

    def __init__(self, model: recipe.ModelConfig, *, conditional: bool) -> None:
        super().__init__(model)
        annotation = model.encoder.annotation
        reads = {"context": annotation} if conditional else {"word": model.embedding, "context": annotation}
        self.recurrence = Recurrence(model.decoder, inputs=reads, dropout=model.dropout)
        self.asking = None
        if conditional:
            self.asking = Recurrence(model.decoder, inputs={"word": model.embedding}, dropout=model.dropout)

    def unroll(self, embedded: Float[Tensor, "B T E"], state: DecoderState, memory: Memory) -> Decoded:
        words = (self.asking or self.recurrence).read(embedded)
        masks = self.recurrence.masks(state)
        hidden, contexts, alignment = [], [], []
        for word in words.unbind(1):
            query, state = self.ask(word, state, masks)
            context, weights, state = self.attend(query, state, memory)
            output, state = self.recurrence(self.after_asking(word), state, masks, context)
            hidden.append(output)
            contexts.append(context)
            alignment.append(weights)
        readouts = self.readout(_stacked(hidden), embedded, _stacked(contexts))
        return Decoded(readouts, _stacked(alignment), state)

    def ask(
        self, word: Float[Tensor, "B G"], state: DecoderState, masks: Tensor | None
    ) -> tuple[Float[Tensor, "B H"], DecoderState]:
        """What asks, and the state that has asked: s_{i-1}, or s'_i."""
        return (state.hidden[:, -1], state) if self.asking is None else self.asking(word, state, masks)

    def after_asking(self, word: Float[Tensor, "B G"]) -> Float[Tensor, "B G"] | None:
        """The word for the recurrence that follows attention, if it has not been read by what asked."""
        return word if self.asking is None else None

    def read_each(self, embedded: Float[Tensor, "B E"], state: DecoderState, memory: Memory) -> Float[Tensor, "B S R"]:
        contexts = memory.contexts()
        batch, length = contexts.shape[:2]
        word = (self.asking or self.recurrence).read(embedded)
        _, state = self.ask(word, state, None)
        each = torch.arange(batch, device=word.device).repeat_interleave(length)
        hidden, _ = self.recurrence(self.after_asking(word[each]), state.select(each), None, contexts.flatten(0, 1))
        return self.readout(hidden.view(batch, length, -1), _everywhere(embedded, length), contexts)


class UpdateThenAttend(AttentionalDecoder):
    """h_t asks once it is computed, and the readout h~_t reads h_t and c_t (Luong et al. 2015).

    With input feeding the recurrence also reads g h~_{t-1} / sqrt(R), with the factor g of embedded words. The R components of h~
    tend to -1 and 1, so that makes it as long as a word. Adam moves all weights by the same step, so what is fed at a greater
    length moves the state too fast: it then costs several BLEU where it should help (measured in recipes/README.md).
    """

    def __init__(self, model: recipe.ModelConfig, *, input_feeding: bool) -> None:
        super().__init__(model)
        self.feeds = model.decoder.readout.size if input_feeding else 0
        self.feed_scale = model.embedding_scale * model.decoder.readout.size**-0.5
        inputs = {"word": model.embedding} | ({"feed": self.feeds} if self.feeds else {})
        self.recurrence = Recurrence(model.decoder, inputs=inputs, dropout=model.dropout)

    def start(self, state: DecoderState, memory: Memory) -> DecoderState:
        """The state before the first step, which is fed zeros."""
        state = super().start(state, memory)
        if not self.feeds:
            return state
        return replace(state, feed=state.hidden.new_zeros(len(state.hidden), self.feeds))

    def unroll(self, embedded: Float[Tensor, "B T E"], state: DecoderState, memory: Memory) -> Decoded:
        if self.feeds or self.attention.covers or embedded.shape[1] == 1:  # one step may be that of a beam
            return self.unroll_with_attention(embedded, state, memory)
        words, masks = self.recurrence.read(embedded), self.recurrence.masks(state)
        queries, state = self.recurrence.all_steps(words, state, masks)
        contexts, alignment, state = self.attend_all(queries, state, memory)
        return Decoded(self.readout(queries, embedded, contexts), alignment, state)

    def unroll_with_attention(self, embedded: Float[Tensor, "B T E"], state: DecoderState, memory: Memory) -> Decoded:
        """Step by step, as the equations stand: needed where a step depends on what was attended to before it."""
        words, masks = self.recurrence.read(embedded), self.recurrence.masks(state)
        readouts, alignment = [], []
        for word, embedding in zip(words.unbind(1), embedded.unbind(1), strict=True):
            output, state = self.recurrence(word, state, masks, self.fed(state))
            context, weights, state = self.attend(output, state, memory)
            readout = self.readout(output, embedding, context)
            state = replace(state, feed=readout if self.feeds else None)
            readouts.append(readout)
            alignment.append(weights)
        return Decoded(_stacked(readouts), _stacked(alignment), state)

    def fed(self, state: DecoderState) -> Float[Tensor, "B R"] | None:
        """What the recurrence reads beside the word, with input feeding."""
        return state.feed if state.feed is None or self.feed_scale == 1 else state.feed * self.feed_scale

    def read_each(self, embedded: Float[Tensor, "B E"], state: DecoderState, memory: Memory) -> Float[Tensor, "B S R"]:
        contexts = memory.contexts()
        length = contexts.shape[1]
        output, _ = self.recurrence(self.recurrence.read(embedded), state, None, self.fed(state))
        return self.readout(_everywhere(output, length), _everywhere(embedded, length), contexts)


def _stacked(parts: list[Float[Tensor, "B D"]]) -> Float[Tensor, "B N D"]:
    """Those of all layers or steps side by side, without a copy if there is one."""
    return parts[0].unsqueeze(1) if len(parts) == 1 else torch.stack(parts, 1)


def _everywhere(values: Float[Tensor, "B D"], length: int) -> Float[Tensor, "B S D"]:
    """The same values at each of so many positions."""
    return values.unsqueeze(1).expand(-1, length, -1)


class Bridge(nn.Module):
    """s_0, one row a layer: tanh(W_s x), where x is h_1<- (Bahdanau et al. 2015, A.2.2), the top layer's final states, or the
    mean annotation; or each layer's final state as it is (Luong et al. 2015, as Sutskever et al. 2014).
    """

    def __init__(self, model: recipe.ModelConfig) -> None:
        super().__init__()
        chosen, encoder = model.decoder, model.encoder
        self.reads, self.shape, self.lstm = chosen.bridge, (chosen.layers, chosen.hidden), chosen.cell == "lstm"
        self.backward = encoder.hidden
        if chosen.bridge in ("backward", "final", "mean"):
            width = encoder.hidden if chosen.bridge == "backward" else encoder.annotation
            self.linear = nn.Linear(width, chosen.layers * chosen.hidden)

    def forward(self, encoded: Encoded) -> DecoderState:
        hidden, batch = self.hidden(encoded), len(encoded.mask)
        position = torch.zeros(batch, dtype=torch.long, device=hidden.device)
        cell = (torch.zeros_like(hidden) if encoded.cell is None else encoded.cell) if self.lstm else None
        return DecoderState(hidden, position, cell)

    def hidden(self, encoded: Encoded) -> Float[Tensor, "B L H"]:
        match self.reads:
            case "backward":
                read = encoded.final[:, -1, -self.backward :]
            case "final":
                read = encoded.final[:, -1]
            case "mean":
                read = encoded.annotations.sum(1) / encoded.mask.sum(1, keepdim=True)
            case "copy":
                return encoded.final
            case "zero":
                return encoded.final.new_zeros(len(encoded.mask), *self.shape)
            case _:
                assert_never(self.reads)
        return torch.tanh(self.linear(read)).view(len(read), *self.shape)

    if TYPE_CHECKING:
        __call__ = forward


def build_decoder(model: recipe.ModelConfig) -> AttendThenUpdate | UpdateThenAttend:
    match model.decoder.order:
        case recipe.AttendThenUpdateConfig() as order:
            return AttendThenUpdate(model, conditional=order.conditional)
        case recipe.UpdateThenAttendConfig() as order:
            return UpdateThenAttend(model, input_feeding=order.input_feeding)
        case _:
            assert_never(model.decoder.order)
