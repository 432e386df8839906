"""Time of an attention step against source length, global and local, plain and fast, in search and in training."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from .measuring import work
from .session import Section, Session

SENTENCES, BEAM, STEPS, WIDTH = 16, 5, 10, 512
LENGTHS = (25, 50, 100, 250, 500, 1000)
WINDOWS = ("global", "local-m", "local-p")
SCORES = ("additive", "dot", "general")
_COLORS = {"global": "#000000", "local-m": "#0072b2", "local-p": "#d55e00"}
_LINES = {"search": "-", "search, plain": ":"}
_TIMES = (1, 2, 5, 10, 20, 50, 100, 200)
KINDS = ("search", "search, plain", "training", "training, plain")


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
        f"Milliseconds per step, {SENTENCES} sentences, in search a beam of {BEAM}, annotations of {WIDTH}, D = 10, fp32.",
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


def draw(figures: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the milliseconds of a step in search against source length, fast and plain."""
    from matplotlib.figure import Figure

    from nmt.plotting.fonts import BASE
    from nmt.plotting.style import draw_grid, house_style, save

    with house_style([BASE]):
        figure = Figure(figsize=(10, 3.6), facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(SCORES), sharey=True)
        for panel, score in zip(panels, SCORES, strict=True):
            for window, (kind, line) in product(WINDOWS, _LINES.items()):
                own = [figure for figure in figures if (figure["score"], figure["window"]) == (score, window)]
                lengths, times = [figure["length"] for figure in own], [figure[kind] for figure in own]
                name = f"{window}, plain" if "plain" in kind else window
                panel.plot(lengths, times, line, color=_COLORS[window], linewidth=1.4, label=name)
            panel.set(xscale="log", yscale="log", xlabel="tokens of the source")
            panel.set_title(score, fontsize=10)
            panel.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS], fontsize=8)
            panel.set_yticks(_TIMES, list(map(str, _TIMES)), fontsize=8)
            panel.minorticks_off()
            draw_grid(panel)
        panels[0].set_ylabel("milliseconds per step")
        panels[0].legend(fontsize=7.5, frameon=False)
        save(figure, path, dpi=110)


def step(score: str, window: str, windows: int) -> dict[str, Any]:
    """Median milliseconds of a step at each length, in search and in training (the backward pass included)."""
    import torch

    from nmt import recipe
    from nmt.fast.accelerate import TRAINING_TWINS
    from nmt.fast.beam_memory import SharedMemory
    from nmt.fast.deferred import deferring
    from nmt.fast.kernels.build import prepare_kernels
    from nmt.fast.pack import SEARCH_TWINS, fused
    from nmt.fast.twins import twin
    from nmt.model.attention import build_attention

    from .worker import timed

    torch.manual_seed(1)
    prepare_kernels()
    config = recipe.AttentionConfig.model_validate({"score": score, "window": window})
    plain = build_attention(config, query=WIDTH, annotation=WIDTH)
    in_search, in_training = fused(twin(plain, SEARCH_TWINS)), twin(plain, TRAINING_TWINS)
    hypotheses = torch.arange(SENTENCES).repeat_interleave(BEAM)

    def at_length(length: int) -> dict[str, Any]:
        annotations = torch.randn(SENTENCES, length, WIDTH, requires_grad=True)
        mask = torch.ones(SENTENCES, length, dtype=torch.bool)
        steps = torch.linspace(0, length - 1, STEPS).long()

        def search(attention: Any) -> Callable[[], None]:
            queries = torch.randn(STEPS, SENTENCES * BEAM, 1, WIDTH)
            with torch.inference_mode():
                memory = attention.build_memory(annotations, mask, annotations[:, 0])
                memory = (memory if attention is plain else SharedMemory.of(memory)).read_by(hypotheses)

            def run() -> None:
                with torch.inference_mode():
                    for query, position in zip(queries, steps, strict=True):
                        attention(query, position.expand(len(hypotheses), 1), memory)

            return run

        def train(attention: Any) -> Callable[[], None]:
            queries = torch.randn(STEPS, SENTENCES, 1, WIDTH, requires_grad=True)

            def run() -> None:
                with deferring(attention is not plain):
                    memory = attention.build_memory(annotations, mask, annotations[:, 0])
                    contexts = [
                        attention(query, position.expand(SENTENCES, 1), memory).contexts
                        for query, position in zip(queries, steps, strict=True)
                    ]
                torch.autograd.backward(torch.stack(contexts).sum())

            return run

        runs = search(in_search), search(plain), train(in_training), train(plain)
        times = {
            kind: 1000 * statistics.median(timed(run, windows)) / STEPS for kind, run in zip(KINDS, runs, strict=True)
        }
        return {"length": length, **times}

    return {"figures": [at_length(length) for length in LENGTHS]}
