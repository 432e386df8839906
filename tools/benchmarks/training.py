"""Target pieces a second in training: a piece or an end mark counts, a begin mark or padding does not."""

from __future__ import annotations

import hashlib
import json
import shutil

from . import rates
from .measuring import Spread, ours
from .peers import Peer, Trained
from .rates import Rate
from .session import Section, Session
from .shared_model import VARIANTS, Variant

WARM_UP = 2
"""Windows of five updates that do not count."""
_PIECES = "pieces an update"


def train(session: Session) -> Section:
    """Every variant of nmt in fp32 and in what `auto` is, and every peer."""
    found = [
        session.attempt(f"train: nmt, {variant.name}, {precision}", _ours, session, variant, precision)
        for variant in VARIANTS
        for precision in dict.fromkeys(("fp32", session.machine["auto"]))
    ]
    found += [
        session.attempt(f"train: {peer.name}, {peer.attentions[family]}", _theirs, session, peer, family)
        for peer in session.peers
        for family in peer.attentions
    ]
    counted = "".join(f" {peer.name}: {peer.batches}" for peer in session.peers)
    return rates.section(
        session,
        [rate for rate in found if rate is not None],
        name="train",
        title="Training",
        text=(
            f"Target pieces a second, end marks counted, begin marks and padding not; windows of five updates, the first "
            f"{WARM_UP} left out. A batch is {session.batch_tokens:,} tokens as each system counts them. nmt: target pieces "
            f"with end marks and padding, or half as many source pieces if that is more.{counted} Operations are those of "
            "the matrix products, six for each multiplication of the forward pass."
        ),
        unit="pieces/s",
    )


def train_ours(session: Session, variant: Variant, precision: str, *, updates: int, keep: bool = False) -> Trained:
    """Train a variant as a user would; with `keep`, only if that has not been done yet. Raises Failed."""
    text = session.text
    recipe = variant.recipe(text.folder, precision=precision, updates=updates, batch_tokens=session.batch_tokens)
    place = session.folder / "runs" / f"nmt-{hashlib.sha256((recipe + text.key).encode()).hexdigest()[:12]}"
    out, file = place / "run", place / "recipe.yaml"
    if keep and (out / "weights.safetensors").is_file():
        return Trained(out, [], None, 0.0)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    file.write_text(recipe, encoding="utf-8")
    arguments = ["train", file, "--out", out, "--device", session.device, "--quiet"]
    ended = ours("nmt.cli", *arguments, threads=session.threads, what=f"nmt, {variant.name}, {precision}")
    speeds, pieces = windows((out / "metrics.jsonl").read_text(encoding="utf-8"))
    return Trained(out, speeds, pieces, ended.peak)


def windows(log: str) -> tuple[list[float], float]:
    """Target pieces a second of each window in a `metrics.jsonl`, and the mean number of target pieces an update."""
    records = [record for record in map(json.loads, log.splitlines()) if record["kind"] == "train"]
    times = [0.0, *(record["seconds"] for record in records)]
    pieces = sum(
        record["tokens_per_second"] * (end - start)
        for record, start, end in zip(records, times[:-1], times[1:], strict=True)
    )
    speeds = [record["tokens_per_second"] for record in records]
    return speeds, pieces / records[-1]["update"] if records else 0.0


def _ours(session: Session, variant: Variant, precision: str) -> Rate:
    trained = train_ours(session, variant, precision, updates=session.effort.updates)
    return _rate(session, rates.OURS, variant.name, variant, precision, trained)


def _theirs(session: Session, peer: Peer, family: str) -> Rate:
    updates, batch_tokens = session.effort.updates, session.batch_tokens
    trained = peer.train(family, session.text, updates=updates, batch_tokens=batch_tokens)
    variant = next(variant for variant in VARIANTS if variant.family == family)
    return _rate(session, peer.name, peer.attentions[family], variant, "fp32", trained)


def _rate(session: Session, system: str, setting: str, variant: Variant, precision: str, trained: Trained) -> Rate:
    text = session.text
    return Rate(
        system,
        setting,
        variant.family,
        precision,
        Spread.of(trained.rates[WARM_UP:]),
        variant.training_flop(text.vocabulary, text.source_per_target),
        trained.peak,
        {} if trained.pieces_per_update is None else {_PIECES: trained.pieces_per_update},
    )
