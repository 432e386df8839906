"""Measure what the toolkit costs on this machine: `python tools/benchmark.py --help`."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import torch

from nmt import recipe
from nmt.model.attention import build_attention

BATCH, STEPS, WIDTH = 16, 10, 512
LENGTHS = (25, 50, 100, 250, 500, 1000)
WINDOWS = {
    "global": recipe.GlobalWindow(),
    "local-m": recipe.LocalMonotonicWindow(),
    "local-p": recipe.LocalPredictiveWindow(),
}
SCORES = {"additive": recipe.AdditiveScore(), "dot": recipe.DotScore(), "general": recipe.GeneralScore()}


def main() -> None:
    """Run what was asked for: Markdown on standard output, all figures as JSON with --json."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    attention = commands.add_parser(
        "attention", help="time of an attention step against source length, global and local"
    )
    attention.add_argument("--windows", type=int, default=7, help="timings of each, of which the median counts")
    attention.add_argument("--threads", type=int, help="CPU threads; by default one a core")
    attention.add_argument("--json", metavar="FILE", help="also write the figures")
    attention.set_defaults(run=benchmark_attention)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    arguments.run(arguments)


def benchmark_attention(arguments: argparse.Namespace) -> None:
    """Milliseconds a step, decoding and training, for every score and window at growing source lengths."""
    figures = []
    for score in SCORES:
        for window in WINDOWS:
            for length in LENGTHS:
                decode, train = attention_milliseconds(score, window, length, arguments.windows)
                figures.append({"score": score, "window": window, "length": length, "decode": decode, "train": train})
                print(f"\r{score} {window} S = {length}    ", end="", file=sys.stderr)
    print(file=sys.stderr)
    for kind in ("decode", "train"):
        print(f"\n{kind}: milliseconds a step, {BATCH} sentences, annotations of {WIDTH}, D = 10\n")
        print(attention_table(figures, kind))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as stream:
            json.dump({"threads": torch.get_num_threads(), "figures": figures}, stream, indent=2)


def attention_milliseconds(score: str, window: str, length: int, windows: int) -> tuple[float, float]:
    """Median time of a decoding step, and of a step of training with its share of the backward pass."""
    torch.manual_seed(1)
    attention = build_attention(
        recipe.Attention(score=SCORES[score], window=WINDOWS[window]), query=WIDTH, annotation=WIDTH
    )
    annotations = torch.randn(BATCH, length, WIDTH, requires_grad=True)
    queries = torch.randn(STEPS, BATCH, WIDTH, requires_grad=True)
    mask = torch.ones(BATCH, length, dtype=torch.bool)

    def steps() -> torch.Tensor:
        memory = attention.remember(annotations, mask, annotations[:, 0])
        positions = torch.arange(STEPS).unsqueeze(1).expand(-1, BATCH)
        return sum(attention(query, at, memory)[0].sum() for query, at in zip(queries, positions, strict=True))  # type: ignore[return-value]

    def decode() -> float:
        with torch.inference_mode():
            memory = attention.remember(annotations, mask, annotations[:, 0])
            start = time.perf_counter()
            for step in range(STEPS):
                attention(queries[step], torch.full((BATCH,), step), memory)
            return time.perf_counter() - start

    def train() -> float:
        start = time.perf_counter()
        torch.autograd.backward(steps())
        return time.perf_counter() - start

    return median_milliseconds(decode, windows), median_milliseconds(train, windows)


def median_milliseconds(run: Callable[[], float], times: int) -> float:
    """Median of what `run` says it took, in milliseconds a step; the first two runs only warm up."""
    return 1000 * statistics.median([run() for _ in range(times + 2)][2:]) / STEPS


def attention_table(figures: list[dict], kind: str) -> str:
    """Rows of score and window, columns of source length."""
    rows = [
        f"| score | window | {' | '.join(f'S = {length:,}' for length in LENGTHS)} |",
        "|---|---|" + "---|" * len(LENGTHS),
    ]
    for score in SCORES:
        for window in WINDOWS:
            times = [row[kind] for row in figures if row["score"] == score and row["window"] == window]
            rows.append(f"| {score} | {window} | " + " | ".join(f"{value:.2f}" for value in times) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
