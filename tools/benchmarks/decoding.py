"""Sentences per second in decoding. Each window is a fresh process, timed after the model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import rates
from .measuring import MeasurementError, Spread, ours, work
from .peers import Decoded, Peer
from .rates import Rate
from .session import Section, Session
from .shared_model import VARIANTS
from .training import train_ours

BEAMS = (1, 5, 12)
PRUNE = 2.0
"""`decoding.prune` of the pruned modes, in nats."""
HORIZON = 2
"""`decoding.horizon` of the pruned modes, in tokens."""
FAMILY = VARIANTS[0].family
"""Family of the models used for decoding."""


@dataclass(frozen=True)
class SearchMode:
    """Beam size, with or without a shortlist, and with or without pruning, which also shortens the horizon."""

    beam: int
    shortlist: bool = False
    pruned: bool = False

    @property
    def kind(self) -> str:
        """The search without shortlist and pruning, which all systems share."""
        return "greedy" if self.beam == 1 else f"beam {self.beam}"

    @property
    def settings(self) -> dict[str, float]:
        """Changes of the recipe's `decoding` section."""
        return {"beam_size": self.beam} | ({"prune": PRUNE, "horizon": HORIZON} if self.pruned else {})

    def __str__(self) -> str:
        return self.kind + ", shortlist" * self.shortlist + f", prune {PRUNE:g}, horizon {HORIZON}" * self.pruned


SEARCH_MODES = [
    *(SearchMode(beam, shortlist) for shortlist in (False, True) for beam in BEAMS),
    *(SearchMode(beam, shortlist=True, pruned=True) for beam in BEAMS if beam > 1),
]
"""The modes of nmt. Peers have the first ones only."""


@dataclass(frozen=True)
class Search:
    """One system in one mode. `window` runs a fresh process; for nmt it also returns the seconds of a second pass."""

    system: str
    precision: str
    mode: SearchMode
    window: Callable[[], tuple[Decoded, float | None]]

    def __str__(self) -> str:
        return f"{self.system}, {self.precision}, {self.mode}"


def decode(session: Session) -> Section:
    """Decode with nmt and every peer, greedily and with a beam, each with a model it has trained for the same number of updates."""
    source = lines_of_test(session, session.effort.lines)
    searches: list[Search] = []
    model = session.attempt("decode: train nmt's model if needed", our_model, session)
    if model is not None:
        searches += [
            _ours(session, model, source, precision, mode) for precision in precisions(session) for mode in SEARCH_MODES
        ]
    for peer in session.peers:
        label = f"decode: train the model of {peer.name} if needed"
        theirs = session.attempt(label, their_model, session, peer)
        if theirs is not None:
            searches += [_theirs(session, peer, theirs, source, SearchMode(beam)) for beam in BEAMS]
    results = session.interleaved([(f"decode: {search}, window", search.window) for search in searches])
    return rates.section(
        session,
        [_rate(session, search, windows) for search, windows in zip(searches, results, strict=True) if windows],
        name="decode",
        title="Decoding",
        text=(
            f"{session.effort.lines:,} test lines, models of {session.effort.model_updates:,} updates. Sentences per second without "
            "loading the model; each window is the first pass of a fresh process, and the systems take turns. For nmt, `warm` is the "
            "second pass. Operations are those of matrix products, two per multiplication, for every place of the beam; the whole "
            f"output layer counts with a shortlist too. A shortlist, prune ({PRUNE:g} nats) and horizon ({HORIZON} tokens instead of 8) "
            "change some translations. nmt may decode with as many processes as threads: the peak is that of the largest."
        ),
        unit="sentences/s",
    )


def precisions(session: Session) -> list[str]:
    """The precisions of nmt: fp32, what `auto` resolves to, and int8 if the machine has it."""
    return list(dict.fromkeys(["fp32", session.machine["auto"], *(["int8"] if "int8" in session.machine else [])]))


def our_model(session: Session) -> Path:
    """The model that nmt decodes with. Raises MeasurementError."""
    return train_ours(session, VARIANTS[0], "auto", updates=session.effort.model_updates, keep=True).model


def their_model(session: Session, peer: Peer) -> Path:
    """The model that a peer decodes with. Raises MeasurementError."""
    updates, batch_tokens = session.effort.model_updates, session.batch_tokens
    model = peer.model(FAMILY, session.text, updates=updates, batch_tokens=batch_tokens)
    if not model.exists():
        peer.train(FAMILY, session.text, updates=updates, batch_tokens=batch_tokens)
    if not model.exists():
        raise MeasurementError(
            f"{peer.name} ended its training without writing the model {model}; see the log beside it."
        )
    return model


def lines_of_test(session: Session, count: int) -> Path:
    """Write a file of `count` source lines of the test text, repeated as needed."""
    path = session.folder / f"{count}-lines.{session.text.key}.{session.text.source}"
    lines = session.text.file("test", "source").read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{lines[row % len(lines)]}\n" for row in range(count)), encoding="utf-8")
    return path


def _shortlist(session: Session, model: Path) -> Path:
    """The shortlist of nmt's model, learned from the training text on first use. Raises MeasurementError."""
    path, text = model.with_name("shortlist.safetensors"), session.text
    if not path.is_file():
        sides = ["--source", text.file("train", "source"), "--target", text.file("train", "target")]
        arguments = ["shortlist", model, *sides, "--output", path]
        ours("nmt", *arguments, threads=session.threads, what="nmt shortlist")
    return path


def _ours(session: Session, model: Path, source: Path, precision: str, mode: SearchMode) -> Search:
    def window() -> tuple[Decoded, float | None]:
        output = session.folder / f"nmt, {precision}, {mode}.{session.text.target}"
        answer, process = work(
            "decode",
            threads=session.threads,
            what=f"nmt, {precision}, {mode}",
            model=str(model),
            source=str(source),
            output=str(output),
            device=session.device,
            precision=precision,
            decoding=mode.settings,
            shortlist=str(_shortlist(session, model)) if mode.shortlist else None,
            passes=2,
        )
        cold, warm = answer["seconds"]
        return Decoded(cold, process.seconds, process.peak, output), warm

    return Search(rates.OURS, precision, mode, window)


def _theirs(session: Session, peer: Peer, model: Path, source: Path, mode: SearchMode) -> Search:
    def window() -> tuple[Decoded, float | None]:
        return peer.decode(model, FAMILY, session.text, source, beam=mode.beam), None

    return Search(peer.name, "fp32", mode, window)


def _rate(session: Session, search: Search, windows: Sequence[tuple[Decoded, float | None]]) -> Rate:
    text, lines = session.text, session.effort.lines
    last, references = windows[-1][0].output, str(text.file("test", "target"))
    quality, _ = work("quality", threads=1, what="BLEU", hypotheses=str(last), references=references)
    warm = [lines / seconds for _, seconds in windows if seconds is not None]
    return Rate(
        search.system,
        str(search.mode),
        search.mode.kind,
        search.precision,
        Spread.of(lines / first.seconds for first, _ in windows),
        VARIANTS[0].decoding_flop(text.vocabulary, text.source_tokens, text.target_tokens, search.mode.beam),
        max(first.peak for first, _ in windows),
        {**({"warm": Spread.of(warm).median} if warm else {}), **quality},
    )
