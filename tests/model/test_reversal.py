"""Every attention learns to write random strings backwards and looks at the word that it writes; what theory forbids is not learnt.

Twelve letters out of forty are more than a state of 64 numbers learns to hold in a thousand updates, so a decoder has to look
them up: without attention, or with a window that only moves forward, it stays far below what every other attention reaches with
no more updates. Strings are drawn afresh for each update and each check, so that nothing can be learnt by heart.

Row t of the alignment is compared with the word that step t predicts, whatever the order: on this task a content-based
update-then-attend decoder, too, looks at the word that it is about to write and not, as footnote 14 of Luong et al. (2015)
would have it, at the one just fed. `Result` holds both readings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt import recipe
from nmt.data.batching import Batch
from nmt.model.recurrent import RecurrentModel, build_model
from tests.reference.settings import ORDERS, SCORES

BOS, EOS, FIRST, LETTERS = 0, 1, 2, 40
SIZE = FIRST + LETTERS
BATCH, HELD_OUT, UPDATES, CHECK_EVERY = 64, 500, 1000, 50
RATE, WARMUP = 5e-3, 50
LEARNT, ALIGNED, FAR_BELOW = 0.98, 0.95, 0.5

QUICK = [("dot", "global", "luong"), ("location", "local-p", "bahdanau-conditional")]
"""What the default suite trains, on short strings; `tests/training/test_trainer.py` trains Bahdanau's model on a task like it."""

pytestmark = pytest.mark.timeout(900)


# --- the task -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Write a string of random letters backwards, or as it is."""

    lengths: tuple[int, ...] = (12,)
    backwards: bool = True

    def draw(self, rows: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sources [B S] and what to write for them, end mark included [B S+1]."""
        source = torch.randint(FIRST, SIZE, (rows, length), generator=generator)
        target = source.flip(1) if self.backwards else source
        return source, torch.cat([target, source.new_full((rows, 1), EOS)], 1)

    def positions(self, length: int) -> Tensor:
        """Where in the source each word of the target stands."""
        return torch.arange(length).flip(0) if self.backwards else torch.arange(length)


REVERSE, COPY, REVERSE_SHORT = Task(), Task(backwards=False), Task(lengths=(3,))
REVERSE_QUICKLY = Task(lengths=(5,))
REVERSE_ANY = Task(lengths=(8, 9, 10, 11, 12))


@dataclass(frozen=True)
class Result:
    """How a model does on strings it has never seen."""

    exact: float
    """Share of the strings written without a mistake."""
    predicted: float
    """Share of the words at which the step that predicts the word looks most."""
    fed: float
    """Share of the words at which the step after that one looks most, the one that is fed the word."""


# --- the model and its training -----------------------------------------------------------------------------------


def build(score: str, window: str, order: str, changes: dict[str, Any] | None = None) -> RecurrentModel:
    """A small model; `changes` are laid over the sections of its recipe."""
    sizes: dict[str, Any] = {"additive": {"size": 32}, "concat": {"size": 32}, "location": {"max_source": 16}}
    width = {} if window == "global" else {"half_width": 3}
    readout = "attentional" if order.startswith("luong") else "maxout"
    tree: dict[str, Any] = {
        "embedding": 32,
        "tie": "none",
        "encoder": {"hidden": 32},
        "attention": {"score": {"kind": score, **sizes.get(score, {})}, "window": {"kind": window, **width}},
        "decoder": {"hidden": 64, "order": ORDERS[order], "readout": {"kind": readout, "size": 32}},
        "dropout": 0.0,
    }
    for section, values in (changes or {}).items():
        tree[section] |= values
    torch.manual_seed(1)
    return build_model(recipe.ModelConfig.model_validate(tree), source_size=SIZE, target_size=SIZE)


def train(model: RecurrentModel, task: Task = REVERSE, *, updates: int = UPDATES, aligned: float = ALIGNED) -> Result:
    """At most so many updates, each on fresh strings; fewer if fresh strings show before that the task is learnt."""
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min((done + 1) / WARMUP, 1 - done / updates))
    for update in range(1, updates + 1):
        length = task.lengths[int(torch.randint(len(task.lengths), (), generator=generator))]
        optimizer.zero_grad()
        loss(model, *task.draw(BATCH, length, generator)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if update % CHECK_EVERY == 0:
            result = measure(model, task, generator)
            if result.exact >= LEARNT and result.predicted >= aligned:
                break
    return result


def loss(model: RecurrentModel, source: Tensor, target: Tensor) -> Tensor:
    """-log p(y | x), a word."""
    target_in = torch.cat([target.new_full((len(target), 1), BOS), target[:, :-1]], 1)
    everywhere = torch.ones_like(target, dtype=torch.bool)
    output = model(Batch(source, torch.ones_like(source, dtype=torch.bool), target_in, target, everywhere))
    return output.loss / output.tokens


def measure(model: RecurrentModel, task: Task, generator: torch.Generator) -> Result:
    """Write fresh strings of every length and compare them, and where the model looked, with what is right."""
    exact, predicted, fed = [], [], []
    for length in task.lengths:
        source, target = task.draw(HELD_OUT // len(task.lengths), length, generator)
        written, looked = write(model, source, steps=length + 1)
        right = task.positions(length)
        exact.append((written == target).all(1).float().mean())
        predicted.append((looked[:, :-1] == right).float().mean())
        fed.append((looked[:, 1:] == right).float().mean())
    return Result(*(torch.stack(shares).mean().item() for shares in (exact, predicted, fed)))


@torch.no_grad()
def write(model: RecurrentModel, source: Tensor, *, steps: int) -> tuple[Tensor, Tensor]:
    """The most probable word at every step, and the source position with the largest weight there."""
    memory = model.eval().encode(source, torch.ones_like(source, dtype=torch.bool))
    state, rows = model.start(memory), torch.arange(len(source))
    words, looked = [torch.full((len(source),), BOS)], []
    for _ in range(steps):
        step = model.step(words[-1], state, memory, rows)
        assert isinstance(step.log_probs, Tensor)
        words.append(step.log_probs.argmax(-1))
        looked.append(step.weights.argmax(-1))
        state = step.state
    model.train()
    return torch.stack(words[1:], 1), torch.stack(looked, 1)


# --- what is learnt -----------------------------------------------------------------------------------------------


def assert_reverses(preset: tuple[str, str, str], task: Task) -> None:
    result = train(build(*preset), task)
    assert result.exact >= LEARNT, result
    assert result.predicted >= ALIGNED, result
    assert result.predicted > result.fed, result


@pytest.mark.parametrize("preset", QUICK, ids="-".join)
def test_short_strings_are_soon_reversed(preset: tuple[str, str, str]) -> None:
    assert_reverses(preset, REVERSE_QUICKLY)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("window", ["global", "local-p"])
@pytest.mark.parametrize("score", [score for score in SCORES if score != "none"])
def test_every_attention_learns_to_reverse(score: str, window: str, order: str) -> None:
    assert_reverses((score, window, order), REVERSE)


VARIANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "heads": ("general", "luong-feeding", {"attention": {"heads": 2}}),
    "coverage": ("additive", "bahdanau", {"attention": {"score": {"kind": "additive", "size": 32, "coverage": True}}}),
    "layer-norm": ("additive", "bahdanau", {"encoder": {"layer_norm": True}, "decoder": {"layer_norm": True}}),
    "residual": (
        "general",
        "luong-feeding",
        {"encoder": {"layers": 2, "residual": True}, "decoder": {"layers": 2, "residual": True}},
    ),
    "reversed": ("dot", "luong", {"encoder": {"direction": "reversed", "hidden": 64}}),
    "lstm-bahdanau": ("additive", "bahdanau", {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm"}}),
    "lstm-conditional": ("concat", "bahdanau-conditional", {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm"}}),
    "lstm-luong": ("dot", "luong", {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm", "bridge": "copy"}}),
    "lstm-feeding": ("general", "luong-feeding", {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm"}}),
}
"""Score, order and changed sections of what is shown once each, with the global window."""


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_learn_to_reverse(variant: str) -> None:
    score, order, changes = VARIANTS[variant]
    result = train(build(score, "global", order, changes))
    assert result.exact >= LEARNT, result
    assert result.predicted >= ALIGNED, result


@pytest.mark.slow
@pytest.mark.parametrize("score", ["dot", "general"])
@pytest.mark.parametrize("order", ORDERS)
def test_strings_of_any_length_are_reversed(order: str, score: str) -> None:
    assert_reverses((score, "global", order), REVERSE_ANY)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_positions_alone_reverse_strings_of_any_length(order: str) -> None:
    """No alignment is asked for: unsure of the length, the decoder looks between neighbours, whose annotations name each other."""
    result = train(build("location", "global", order), REVERSE_ANY, updates=2 * UPDATES, aligned=0)
    assert result.exact >= LEARNT, result


# --- what theory forbids ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_a_fixed_length_context_holds_a_short_string_and_no_long_one(order: str) -> None:
    assert train(build("none", "global", order), REVERSE_SHORT, aligned=0).exact >= LEARNT
    assert train(build("none", "global", order), REVERSE).exact < FAR_BELOW


FORWARD = [
    ("additive", "bahdanau"),
    ("dot", "luong"),
    ("general", "luong-feeding"),
    ("concat", "luong"),
    ("location", "bahdanau-conditional"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("score", "order"), FORWARD)
def test_a_window_that_moves_forward_copies_and_does_not_reverse(score: str, order: str) -> None:
    copied = train(build(score, "local-m", order), COPY)
    assert copied.exact >= LEARNT, copied
    assert copied.predicted >= ALIGNED, copied
    assert train(build(score, "local-m", order), REVERSE).exact < FAR_BELOW
