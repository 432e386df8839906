"""Every attention learns to reverse random strings and to align them; models that theory rules out do not.

A state of 64 numbers cannot learn to store twelve letters out of forty in a thousand updates, so the decoder has to look them up.
Without attention, or with a window that only moves forward, a model stays far below what all others reach with as many updates.
Every update and every check draws new strings, so nothing can be memorized.

Row t of the alignment is compared with the token that step t predicts, in every order. On this task a content-based
update-then-attend decoder also attends to the token that it predicts, not to the one just fed, as footnote 14 of Luong et al. (2015)
suggests. `Result` holds both measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt import recipe
from nmt.data.batching import Batch
from nmt.model.recurrent import RecurrentModel
from tests.pairwise import Case, pairwise_cases
from tests.reference.settings import ORDERS, SCORES

BOS, EOS, FIRST, LETTERS = 0, 1, 2, 40
SIZE = FIRST + LETTERS
BATCH, HELD_OUT, UPDATES, CHECK_EVERY = 64, 500, 1000, 25
RATE, WARMUP = 5e-3, 50
LEARNED, ALIGNED, FAR_BELOW = 0.98, 0.95, 0.5

QUICK = [("dot", "global", "luong"), ("location", "local-p", "bahdanau-conditional")]
"""Models of the default suite, on short strings. `tests/training/test_trainer.py` trains Bahdanau's model on a similar task."""

pytestmark = pytest.mark.timeout(900)


# --- the task -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Reverse a string of random letters, or copy it."""

    lengths: tuple[int, ...] = (12,)
    reverse: bool = True

    def draw(self, rows: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sources [B S] and targets with EOS [B S+1]."""
        source = torch.randint(FIRST, SIZE, (rows, length), generator=generator)
        target = source.flip(1) if self.reverse else source
        return source, torch.cat([target, source.new_full((rows, 1), EOS)], 1)

    def positions(self, length: int) -> Tensor:
        """The source position of each target token."""
        return torch.arange(length).flip(0) if self.reverse else torch.arange(length)


REVERSE, COPY, REVERSE_SHORT = Task(), Task(reverse=False), Task(lengths=(3,))
REVERSE_QUICKLY = Task(lengths=(5,))
REVERSE_ANY = Task(lengths=(8, 9, 10, 11, 12))


@dataclass(frozen=True)
class Result:
    """Accuracy on new strings."""

    exact: float
    """Share of the strings without an error."""
    predicted: float
    """Share of the target tokens whose source position gets the largest weight in the step that predicts the token."""
    fed: float
    """The same for the next step, which is fed the token."""


# --- the model and its training -----------------------------------------------------------------------------------


def build(score: str, window: str, order: str, changes: dict[str, Any] | None = None) -> RecurrentModel:
    """A small model; `changes` update the sections of its recipe."""
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
    return RecurrentModel(recipe.RecurrentModelConfig.model_validate(tree), source_size=SIZE, target_size=SIZE)


def train(model: RecurrentModel, task: Task = REVERSE, *, updates: int = UPDATES, aligned: float = ALIGNED) -> Result:
    """Train for at most `updates` updates, and stop once a check on new strings shows that the task is learned."""
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda update: min((update + 1) / WARMUP, 1 - update / updates)
    )
    for update in range(1, updates + 1):
        length = task.lengths[int(torch.randint(len(task.lengths), (), generator=generator))]
        optimizer.zero_grad()
        loss(model, *task.draw(BATCH, length, generator)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if update % CHECK_EVERY == 0:
            result = measure(model, task, generator)
            if result.exact >= LEARNED and result.predicted >= aligned:
                break
    return result


def loss(model: RecurrentModel, source: Tensor, target: Tensor) -> Tensor:
    """-log p(y | x) per token."""
    target_in = torch.cat([target.new_full((len(target), 1), BOS), target[:, :-1]], 1)
    everywhere = torch.ones_like(target, dtype=torch.bool)
    output = model(Batch(source, torch.ones_like(source, dtype=torch.bool), target_in, target, everywhere))
    return output.loss / output.tokens


def measure(model: RecurrentModel, task: Task, generator: torch.Generator) -> Result:
    """Decode new strings of every length, and compare output and alignment with the correct ones."""
    exact, predicted, fed = [], [], []
    for length in task.lengths:
        source, target = task.draw(HELD_OUT // len(task.lengths), length, generator)
        output, attended = decode_greedily(model, source, steps=length + 1)
        expected = task.positions(length)
        exact.append((output == target).all(1).float().mean())
        predicted.append((attended[:, :-1] == expected).float().mean())
        fed.append((attended[:, 1:] == expected).float().mean())
    return Result(*(torch.stack(shares).mean().item() for shares in (exact, predicted, fed)))


@torch.no_grad()
def decode_greedily(model: RecurrentModel, source: Tensor, *, steps: int) -> tuple[Tensor, Tensor]:
    """The most probable token of each step, and the source position with the largest weight."""
    memory = model.eval().encode(source, torch.ones_like(source, dtype=torch.bool))
    state, rows = model.start(memory), torch.arange(len(source))
    tokens, attended = [torch.full((len(source),), BOS)], []
    for _ in range(steps):
        step = model.step(tokens[-1], state, memory, rows)
        assert isinstance(step.log_probs, Tensor)
        tokens.append(step.log_probs.argmax(-1))
        attended.append(step.weights.argmax(-1))
        state = step.state
    model.train()
    return torch.stack(tokens[1:], 1), torch.stack(attended, 1)


# --- what models learn -----------------------------------------------------------------------------------------------


def assert_reverses(preset: tuple[str, str, str], task: Task) -> None:
    result = train(build(*preset), task)
    assert result.exact >= LEARNED, result
    assert result.predicted >= ALIGNED, result
    assert result.predicted > result.fed, result


@pytest.mark.parametrize("preset", QUICK, ids="-".join)
def test_models_learn_to_reverse_short_strings(preset: tuple[str, str, str]) -> None:
    assert_reverses(preset, REVERSE_QUICKLY)


ATTENTIONS = pairwise_cases(
    {"score": [score for score in SCORES if score != "none"], "window": ["global", "local-p"], "order": list(ORDERS)}
)


@pytest.mark.slow
@pytest.mark.parametrize("case", ATTENTIONS, ids=lambda case: "-".join(case.values()))
def test_every_attention_learns_to_reverse(case: Case) -> None:
    assert_reverses((case["score"], case["window"], case["order"]), REVERSE)


VARIANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "heads": ("general", "luong-feeding", {"attention": {"heads": 2}}),
    "coverage": ("additive", "bahdanau", {"attention": {"coverage": True}}),
    "layer-norm": ("additive", "bahdanau", {"encoder": {"layer_norm": True}, "decoder": {"layer_norm": True}}),
    "residual": (
        "general",
        "luong-feeding",
        {"encoder": {"layers": 2, "residual": True}, "decoder": {"layers": 2, "residual": True}},
    ),
    "reversed": ("dot", "luong", {"encoder": {"direction": "reversed", "hidden": 64}}),
    "lstm": ("concat", "bahdanau-conditional", {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm"}}),
    "lstm-copy": ("dot", "luong", {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm", "bridge": "copy"}}),
}
"""Score, order and changed sections of variants that are trained once each, with the global window."""


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_learn_to_reverse(variant: str) -> None:
    score, order, changes = VARIANTS[variant]
    result = train(build(score, "global", order, changes))
    assert result.exact >= LEARNED, result
    assert result.predicted >= ALIGNED, result


@pytest.mark.slow
@pytest.mark.parametrize(("score", "order"), list(zip(["dot", "general"] * 2, ORDERS, strict=True)))
def test_models_learn_to_reverse_strings_of_any_length(score: str, order: str) -> None:
    assert_reverses((score, "global", order), REVERSE_ANY)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_the_location_score_learns_to_reverse_strings_of_any_length(order: str) -> None:
    """The alignment is not checked: lengths are unknown, so the decoder also attends to neighbors, which encode the letter too."""
    result = train(build("location", "global", order), REVERSE_ANY, updates=2 * UPDATES, aligned=0)
    assert result.exact >= LEARNED, result


# --- what theory rules out ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("order", ["bahdanau-conditional", "luong-feeding"])
def test_a_fixed_length_context_stores_a_short_string_but_no_long_one(order: str) -> None:
    assert train(build("none", "global", order), REVERSE_SHORT, aligned=0).exact >= LEARNED
    assert train(build("none", "global", order), REVERSE).exact < FAR_BELOW


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "order"), [("additive", "bahdanau"), ("general", "luong-feeding"), ("location", "bahdanau-conditional")]
)
def test_a_window_that_moves_forward_learns_to_copy_but_not_to_reverse(score: str, order: str) -> None:
    result = train(build(score, "local-m", order), COPY)
    assert result.exact >= LEARNED, result
    assert result.predicted >= ALIGNED, result
    assert train(build(score, "local-m", order), REVERSE).exact < FAR_BELOW
