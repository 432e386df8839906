"""Decoder: embedded target tokens -> readouts, with one attention per step, in the order of either paper.

    attend-then-update  (Bahdanau et al. 2015, 3.1 and A.1.1)   c_i = attend(s_{i-1});  s_i = f(s_{i-1}, E y_{i-1}, c_i)
    update-then-attend  (Luong et al. 2015, 3 and eq. 3)        h_t = f(h_{t-1}, E y_{t-1});  c_t = attend(h_t)

In both orders row t of the alignment belongs to the token that step t predicts. Search runs the same code with targets of one token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from nmt import recipe
from nmt.model.attention import AttentionMemory, AttentionOutput, build_attention
from nmt.model.cells import build_cell, gates_of
from nmt.model.dropout import Dropout
from nmt.model.readout import LexicalReadout, build_readout


@dataclass(frozen=True)
class RecurrentState:
    """What the decoder carries from one step to the next."""

    hidden: Float[Tensor, "B L H"]
    """s_i or h_t of each layer."""
    position: Int[Tensor, " B"]
    """Number of the next step, from 0."""
    cell: Float[Tensor, "B L H"] | None = None
    """The cells of an LSTM."""
    feed: Float[Tensor, "B R"] | None = None
    """The readout of the step before, with input feeding."""
    coverage: Float[Tensor, "B S"] | None = None
    """The sum of the attention weights so far, for scores that read it."""
    masks: Float[Tensor, "B L H"] | None = None
    """Dropout of the states that the recurrent matrices read, the same at every step; None outside of training."""

    def select(self, rows: Int[Tensor, " N"]) -> RecurrentState:
        """The state of the given rows, in their order."""
        parts = (self.hidden, self.position, self.cell, self.feed, self.coverage, self.masks)
        return RecurrentState(*(None if part is None else part.index_select(0, rows) for part in parts))  # type: ignore[arg-type] # hidden and position are never None


@dataclass(frozen=True)
class Decoded:
    """The result of T decoder steps."""

    readouts: Float[Tensor, "B T R"]
    alignment: Float[Tensor, "B T S"]
    state: RecurrentState
    centers: Float[Tensor, "B T K"] | None = None
    """Centers p_t of local windows, for each head."""


class Recurrence(nn.Module):
    """L stacked cells. The first layer reads the sum of its projected inputs, each further layer the output of the one below.

    The inputs are the embedded token ("word"), one other vector ("context" or "feed"), or both: W [E y; c] is computed as W_1 E y + W_2 c.
    With residual connections the output of a layer is its state plus its input, from the second layer on (Wu et al. 2016, 3.1).
    """

    def __init__(self, config: recipe.DecoderConfig, *, inputs: dict[str, int], dropout: recipe.DropoutConfig) -> None:
        super().__init__()
        self.cells = nn.ModuleList(
            build_cell(config.cell, config.hidden, layer_norm=config.layer_norm) for _ in range(config.layers)
        )
        self.layers, self.residual = config.layers, config.residual
        width = gates_of(config.cell) * config.hidden
        self.inputs = nn.ModuleDict(
            {name: nn.Linear(size, width, bias=name == "word") for name, size in inputs.items()}
        )
        self.other = next((name for name in inputs if name != "word"), None)
        self.below = nn.ModuleList(nn.Linear(config.hidden, width) for _ in range(config.layers - 1))
        self.dropout = Dropout(dropout.recurrent, variational=dropout.variational)
        self.between = nn.Dropout(dropout.layers)
        for linear in [*self.inputs.values(), *self.below]:
            nn.init.xavier_uniform_(linear.weight)

    def project_tokens(self, embedded: Num[Tensor, "... E"]) -> Num[Tensor, "... G"]:
        """W E y for the gates of the first layer."""
        projected: Tensor = self.inputs["word"](embedded)
        return projected

    def forward(
        self,
        token: Num[Tensor, "B G"] | None,
        state: RecurrentState,
        other: Float[Tensor, "B D"] | None = None,
    ) -> tuple[Float[Tensor, "B H"], RecurrentState]:
        """One step: the output of the top layer, and the new state.

        Args:
            token: W E y of the token, if the recurrence reads it.
            state: the state before the step.
            other: context or fed readout, if the recurrence reads it.
        """
        output, cell = self.layer(0, token, other, state)
        hidden, cells = [output], [cell]
        for depth in range(1, self.layers):
            new, cell = self.layer(depth, None, self.between(output), state)
            output = output + new if self.residual else new
            hidden.append(new)
            cells.append(cell)
        new_cells = None if state.cell is None else stacked([cell for cell in cells if cell is not None])
        return output, replace(state, hidden=stacked(hidden), cell=new_cells)

    def layer(
        self,
        depth: int,
        token: Num[Tensor, "B G"] | None,
        other: Float[Tensor, "B D"] | None,
        state: RecurrentState,
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"] | None]:
        """The new state and cell of one layer. Above the first layer, `other` is the output of the layer below."""
        projected = None if other is None else self.input_of(depth)(other)
        if token is not None:
            projected = token if projected is None else token + projected
        cell, mask = (None if part is None else part[:, depth] for part in (state.cell, state.masks))
        new: tuple[Tensor, Tensor | None] = self.cells[depth](projected, state.hidden[:, depth], cell, mask)
        return new

    def input_of(self, depth: int) -> nn.Module:
        """The matrix for what a layer reads beside the token."""
        return self.inputs[self.other] if self.other and not depth else self.below[depth - 1]

    def all_steps(
        self, tokens: Num[Tensor, "B T G"], state: RecurrentState
    ) -> tuple[Float[Tensor, "B T H"], RecurrentState]:
        """T steps of a recurrence that reads only the tokens."""
        outputs = []
        for token in tokens.unbind(1):
            output, state = self(token, state)
            outputs.append(output)
        return stacked(outputs), state

    def with_masks(self, state: RecurrentState) -> RecurrentState:
        """The state with new dropout masks in training."""
        if not self.training or self.dropout.rate == 0:
            return state
        return replace(state, masks=self.dropout.mask(state.hidden.flatten(1)).view_as(state.hidden))

    if TYPE_CHECKING:
        __call__ = forward


class AttentionalDecoder(nn.Module):
    """Base class of the two orders: has attention and readout, and updates step number and coverage."""

    def __init__(self, config: recipe.RecurrentModelConfig) -> None:
        super().__init__()
        hidden, embedding, readout = config.decoder.hidden, config.embedding, config.decoder.readout
        self.attention = build_attention(config.attention, query=hidden, annotation=config.annotation)
        self.readout = build_readout(readout, hidden=hidden, embedding=embedding, context=config.annotation)
        if config.lexical:
            self.readout = LexicalReadout(self.readout, embedding=embedding, size=readout.size)

    def forward(self, embedded: Num[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        """T steps with given input tokens (teacher forcing; T = 1 in search)."""
        raise NotImplementedError

    def position_readouts(
        self, embedded: Num[Tensor, "B E"], state: RecurrentState, memory: AttentionMemory
    ) -> Float[Tensor, "B S R"]:
        """The readouts of one step if it attended to each source position alone: c_t = h_j."""
        raise NotImplementedError

    def start(self, state: RecurrentState, memory: AttentionMemory) -> RecurrentState:
        """The state before the first step, with zero coverage if the score reads it."""
        if not self.attention.has_coverage:
            return state
        return replace(state, coverage=state.hidden.new_zeros(memory.mask.shape))

    def attend(
        self, queries: Float[Tensor, "B T H"], state: RecurrentState, memory: AttentionMemory
    ) -> tuple[AttentionOutput, RecurrentState]:
        """Contexts and weights of T queries, and the state with step number and coverage after them."""
        steps = queries.shape[1]
        positions = state.position.unsqueeze(1) + torch.arange(steps, device=queries.device)
        coverage = None if state.coverage is None else state.coverage.unsqueeze(1)
        attended = self.attention(queries, positions, memory, coverage)
        if state.coverage is not None:
            coverage = state.coverage + attended.weights.squeeze(1)
            return attended, replace(state, position=state.position + steps, coverage=coverage)
        return attended, replace(state, position=state.position + steps)

    if TYPE_CHECKING:
        __call__ = forward


class AttendThenUpdate(AttentionalDecoder):
    """c_i = attend(s_{i-1});  s_i = f(s_{i-1}, E y_{i-1}, c_i);  t_i = readout(s_i, E y_{i-1}, c_i)   (Bahdanau et al. 2015, 3.1, A.2.2).

    Conditional, the query has already read the token (conditional GRU, Sennrich et al. 2017); `query_recurrence` is f:
    s'_i = f(s_{i-1}, E y_{i-1});  c_i = attend(s'_i);  s_i = g(s'_i, c_i).
    """

    def __init__(self, config: recipe.RecurrentModelConfig, *, conditional: bool) -> None:
        super().__init__(config)
        context, token = {"context": config.annotation}, {"word": config.embedding}
        inputs = context if conditional else token | context
        self.recurrence = Recurrence(config.decoder, inputs=inputs, dropout=config.dropout)
        self.query_recurrence = (
            Recurrence(config.decoder, inputs=token, dropout=config.dropout) if conditional else None
        )

    def forward(self, embedded: Num[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        tokens = (self.query_recurrence or self.recurrence).project_tokens(embedded)
        state = self.recurrence.with_masks(state)
        hidden, steps = [], []
        for token in tokens.unbind(1):
            output, attended, state = self.step(token, state, memory)
            hidden.append(output)
            steps.append(attended)
        attended = concatenated(steps)
        readouts = self.readout(stacked(hidden), embedded, attended.contexts)
        return Decoded(readouts, attended.weights, state, attended.centers)

    def step(
        self,
        token: Num[Tensor, "B G"],
        state: RecurrentState,
        memory: AttentionMemory,
    ) -> tuple[Float[Tensor, "B H"], AttentionOutput, RecurrentState]:
        """One step from W E y: s_i, the context c_i with its weights, and the new state."""
        query, unread_token, state = self.query(token, state)
        attended, state = self.attend(query.unsqueeze(1), state, memory)
        output, state = self.recurrence(unread_token, state, attended.contexts.squeeze(1))
        return output, attended, state

    def query(
        self, token: Num[Tensor, "B G"], state: RecurrentState
    ) -> tuple[Float[Tensor, "B H"], Num[Tensor, "B G"] | None, RecurrentState]:
        """The query s_{i-1} or s'_i, W E y of the token unless the query has read it, and the state."""
        if self.query_recurrence is None:
            return state.hidden[:, -1], token, state
        query, state = self.query_recurrence(token, state)
        return query, None, state

    def position_readouts(
        self, embedded: Num[Tensor, "B E"], state: RecurrentState, memory: AttentionMemory
    ) -> Float[Tensor, "B S R"]:
        contexts = self.attention.position_contexts(memory)
        batch, length = contexts.shape[:2]
        token = (self.query_recurrence or self.recurrence).project_tokens(embedded)
        _, unread_token, state = self.query(token, state)
        rows = torch.arange(batch, device=token.device).repeat_interleave(length)
        unread_token = None if unread_token is None else unread_token[rows]
        hidden, _ = self.recurrence(unread_token, state.select(rows), contexts.flatten(0, 1))
        return self.readout(hidden.view(batch, length, -1), repeated(embedded, length), contexts)


class UpdateThenAttend(AttentionalDecoder):
    """h_t = f(h_{t-1}, E y_{t-1});  c_t = attend(h_t);  h~_t = readout(h_t, c_t)   (Luong et al. 2015, eq. 3, 5).

    With input feeding (3.3) f also reads h~_{t-1}, times `feed_scale`: by default g / sqrt(R), where g is `embedding_scale`. The R
    components of h~ tend to -1 and 1, so the scaled h~ is as long as an embedded token. Unscaled, it costs several BLEU with Adam
    (recipes/NOTES.md).
    """

    def __init__(self, config: recipe.RecurrentModelConfig, order: recipe.UpdateThenAttendConfig) -> None:
        super().__init__(config)
        self.feed_size = config.decoder.readout.size if order.input_feeding else 0
        self.feed_scale = order.feed_scale or config.embedding_scale * config.decoder.readout.size**-0.5
        inputs = {"word": config.embedding} | ({"feed": self.feed_size} if order.input_feeding else {})
        self.recurrence = Recurrence(config.decoder, inputs=inputs, dropout=config.dropout)

    def start(self, state: RecurrentState, memory: AttentionMemory) -> RecurrentState:
        """The state before the first step; with input feeding, h~_0 = 0."""
        state = super().start(state, memory)
        if not self.feed_size:
            return state
        return replace(state, feed=state.hidden.new_zeros(len(state.hidden), self.feed_size))

    def forward(self, embedded: Num[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        if self.feed_size or self.attention.has_coverage:
            return self.step_by_step(embedded, state, memory)
        tokens, state = self.recurrence.project_tokens(embedded), self.recurrence.with_masks(state)
        hidden, state = self.recurrence.all_steps(tokens, state)
        attended, state = self.attend(hidden, state, memory)
        return Decoded(self.readout(hidden, embedded, attended.contexts), attended.weights, state, attended.centers)

    def step_by_step(self, embedded: Num[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        """The same steps one by one, where a step depends on the attention of the step before."""
        tokens, state = self.recurrence.project_tokens(embedded), self.recurrence.with_masks(state)
        readouts, steps = [], []
        for token, row in zip(tokens.unbind(1), embedded.unbind(1), strict=True):
            readout, attended, state = self.step(token, row, state, memory)
            readouts.append(readout)
            steps.append(attended)
        attended = concatenated(steps)
        return Decoded(stacked(readouts), attended.weights, state, attended.centers)

    def step(
        self,
        token: Num[Tensor, "B G"],
        embedded: Num[Tensor, "B E"],
        state: RecurrentState,
        memory: AttentionMemory,
    ) -> tuple[Float[Tensor, "B R"], AttentionOutput, RecurrentState]:
        """One step from W E y and E y: h~_t, the context c_t with its weights, and the new state."""
        output, state = self.recurrence(token, state, self.scaled_feed(state))
        attended, state = self.attend(output.unsqueeze(1), state, memory)
        readout = self.readout(output, embedded, attended.contexts.squeeze(1))
        return readout, attended, replace(state, feed=readout if self.feed_size else None)

    def scaled_feed(self, state: RecurrentState) -> Float[Tensor, "B R"] | None:
        """The scaled h~_{t-1} with input feeding, else None."""
        return None if state.feed is None else state.feed * self.feed_scale

    def position_readouts(
        self, embedded: Num[Tensor, "B E"], state: RecurrentState, memory: AttentionMemory
    ) -> Float[Tensor, "B S R"]:
        contexts = self.attention.position_contexts(memory)
        length = contexts.shape[1]
        output, _ = self.recurrence(self.recurrence.project_tokens(embedded), state, self.scaled_feed(state))
        return self.readout(repeated(output, length), repeated(embedded, length), contexts)


def stacked(parts: Sequence[Float[Tensor, "B D"]]) -> Float[Tensor, "B N D"]:
    """Stack the vectors of all layers or steps along a new dimension."""
    return parts[0].unsqueeze(1) if len(parts) == 1 else torch.stack(list(parts), 1)


def concatenated(steps: Sequence[AttentionOutput]) -> AttentionOutput:
    """Concatenate the attention results of several steps."""
    if len(steps) == 1:
        return steps[0]
    centers = [step.centers for step in steps if step.centers is not None]
    contexts, weights = (torch.cat(parts, 1) for parts in ([s.contexts for s in steps], [s.weights for s in steps]))
    return AttentionOutput(contexts, weights, torch.cat(centers, 1) if centers else None)


def repeated(values: Num[Tensor, "B D"], length: int) -> Num[Tensor, "B S D"]:
    """Repeat the values at each of `length` positions."""
    return values.unsqueeze(1).expand(-1, length, -1)


def build_decoder(config: recipe.RecurrentModelConfig) -> AttendThenUpdate | UpdateThenAttend:
    """The decoder of a recipe."""
    match config.decoder.order:
        case recipe.AttendThenUpdateConfig() as order:
            return AttendThenUpdate(config, conditional=order.conditional)
        case recipe.UpdateThenAttendConfig() as order:
            return UpdateThenAttend(config, order)
        case _:
            assert_never(config.decoder.order)
