"""Time of an attention step against source length, global and local, in decoding and in training."""

from __future__ import annotations

import statistics
from typing import Any

from .measuring import work
from .session import Section, Session

BATCH, STEPS, WIDTH = 16, 10, 512
LENGTHS = (25, 50, 100, 250, 500, 1000)
WINDOWS = ("global", "local-m", "local-p")
SCORES = ("additive", "dot", "general")
KINDS = ("decode", "train")


def attend(session: Session) -> Section:
    """Milliseconds per step for every score and window at increasing source lengths."""
    pairs = [(score, window) for score in SCORES for window in WINDOWS]
    figures_of = {pair: session.attempt(f"attention: {pair[0]}, {pair[1]}", _lengths, session, *pair) for pair in pairs}
    measured = {pair: figures for pair, figures in figures_of.items() if figures is not None}
    rows = [
        [kind, *pair, *(f"{figure[kind]:.2f}" for figure in figures)]
        for kind in KINDS
        for pair, figures in measured.items()
    ]
    return Section(
        "attention",
        "Attention",
        f"Milliseconds per step, {BATCH} sentences, annotations of {WIDTH}, D = 10, fp32.",
        ["", "score", "window", *(f"S = {length:,}" for length in LENGTHS)],
        rows,
        [figure for figures in measured.values() for figure in figures],
    )


def _lengths(session: Session, score: str, window: str) -> list[dict[str, Any]]:
    windows = session.effort.windows
    answer, _ = work(
        "attention", threads=session.threads, what=f"{score}, {window}", score=score, window=window, windows=windows
    )
    return [{"score": score, "window": window, **figure} for figure in answer["figures"]]


def step(score: str, window: str, windows: int) -> dict[str, Any]:
    """Median milliseconds of a step at each length, in decoding and in training (the backward pass included)."""
    import torch

    from nmt import recipe
    from nmt.model.attention import build_attention

    from .worker import timed

    torch.manual_seed(1)
    config = recipe.AttentionConfig.model_validate({"score": score, "window": window})
    attention = build_attention(config, query=WIDTH, annotation=WIDTH)
    queries = torch.randn(STEPS, BATCH, 1, WIDTH, requires_grad=True)
    positions = torch.arange(STEPS).view(-1, 1, 1).expand(-1, BATCH, 1)

    def at_length(length: int) -> dict[str, Any]:
        annotations = torch.randn(BATCH, length, WIDTH, requires_grad=True)
        mask = torch.ones(BATCH, length, dtype=torch.bool)
        fixed_memory = attention.build_memory(annotations, mask, annotations[:, 0])

        def decode() -> None:
            with torch.inference_mode():
                for query, position in zip(queries, positions, strict=True):
                    attention(query, position, fixed_memory)

        def train() -> None:
            memory = attention.build_memory(annotations, mask, annotations[:, 0])
            contexts = [
                attention(query, position, memory).contexts for query, position in zip(queries, positions, strict=True)
            ]
            torch.autograd.backward(torch.stack(contexts).sum())

        runs = {"decode": decode, "train": train}
        times = {kind: 1000 * statistics.median(timed(run, windows)) / STEPS for kind, run in runs.items()}
        return {"length": length, **times}

    return {"figures": [at_length(length) for length in LENGTHS]}
