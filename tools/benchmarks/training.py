"""Target tokens per second in training. EOS counts, BOS and padding do not."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from . import rates
from .measuring import Spread, ours
from .peers import Peer, Trained
from .rates import Rate
from .session import Section, Session
from .shared_model import VARIANTS, Variant

WARM_UP = 2
"""Windows of five updates at the start of a run that do not count."""
_TOKENS_PER_UPDATE = "tokens per update"


@dataclass(frozen=True)
class Run:
    """A training run of one system."""

    system: str
    setting: str
    variant: Variant
    precision: str
    train: Callable[[], Trained]

    def __str__(self) -> str:
        return f"{self.system}, {self.setting}, {self.precision}"


def train(session: Session) -> Section:
    """Train every variant with nmt, in fp32 and in the precision that `auto` resolves to, and with every peer."""
    runs = [
        _ours(session, variant, precision)
        for variant in VARIANTS
        for precision in dict.fromkeys(("fp32", session.machine["auto"]))
    ]
    runs += [_theirs(session, peer, family) for peer in session.peers for family in peer.attentions]
    results = session.interleaved([(f"train: {run}, run", run.train) for run in runs])
    batches = "".join(f" {peer.name}: {peer.batches}" for peer in session.peers)
    return rates.section(
        session,
        [_rate(session, run, trained) for run, trained in zip(runs, results, strict=True) if trained],
        name="train",
        title="Training",
        text=(
            "Target tokens per second, EOS included, BOS and padding not. Windows of five updates without the first "
            f"{WARM_UP} of each run; the systems take turns. A batch is {session.batch_tokens:,} tokens as each system counts them. "
            f"nmt: target tokens with EOS and padding, or half the source tokens if that is more.{batches} "
            "Operations are those of the matrix products, six per multiplication of the forward pass."
        ),
        unit="tokens/s",
    )


def train_ours(session: Session, variant: Variant, precision: str, *, updates: int, keep: bool = False) -> Trained:
    """Train a variant with the `nmt` command; with `keep`, reuse an earlier run. Raises MeasurementError."""
    text = session.text
    recipe = variant.recipe(text.folder, precision=precision, updates=updates, batch_tokens=session.batch_tokens)
    folder = session.folder / "runs" / f"nmt-{hashlib.sha256((recipe + text.key).encode()).hexdigest()[:12]}"
    out, file = folder / "run", folder / "recipe.yaml"
    if keep and (out / "weights.safetensors").is_file():
        return Trained(out, [], None, 0.0)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file.write_text(recipe, encoding="utf-8")
    arguments = ["train", file, "--out", out, "--device", session.device, "--quiet"]
    process = ours("nmt", *arguments, threads=session.threads, what=f"nmt, {variant.name}, {precision}")
    speeds, tokens = windows((out / "metrics.jsonl").read_text(encoding="utf-8"))
    return Trained(out, speeds, tokens, process.peak)


def windows(log: str) -> tuple[list[float], float]:
    """Target tokens per second of each window in a `metrics.jsonl`, and the mean number of target tokens per update."""
    records = [record for record in map(json.loads, log.splitlines()) if record["kind"] == "train"]
    times = [0.0, *(record["seconds"] for record in records)]
    tokens = sum(
        record["tokens_per_second"] * (end - start)
        for record, start, end in zip(records, times[:-1], times[1:], strict=True)
    )
    speeds = [record["tokens_per_second"] for record in records]
    return speeds, tokens / records[-1]["update"] if records else 0.0


def _ours(session: Session, variant: Variant, precision: str) -> Run:
    train = partial(train_ours, session, variant, precision, updates=session.effort.updates)
    return Run(rates.OURS, variant.name, variant, precision, train)


def _theirs(session: Session, peer: Peer, family: str) -> Run:
    updates, batch_tokens = session.effort.updates, session.batch_tokens
    variant = next(variant for variant in VARIANTS if variant.family == family)
    train = partial(peer.train, family, session.text, updates=updates, batch_tokens=batch_tokens)
    return Run(peer.name, peer.attentions[family], variant, "fp32", train)


def _rate(session: Session, run: Run, trained: Sequence[Trained]) -> Rate:
    text = session.text
    tokens = trained[0].tokens_per_update
    return Rate(
        run.system,
        run.setting,
        run.variant.family,
        run.precision,
        Spread.of([rate for each in trained for rate in each.rates[WARM_UP:]]),
        run.variant.training_flop(text.vocabulary, text.source_per_target),
        max(each.peak for each in trained),
        {} if tokens is None else {_TOKENS_PER_UPDATE: tokens},
    )
