"""Sentences a second in decoding: every window a fresh process, its clock starting once the model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import rates
from .measuring import Failed, Spread, ours, work
from .peers import Decoded, Peer
from .rates import Rate
from .session import Section, Session
from .shared_model import VARIANTS
from .training import train_ours

BEAMS = (1, 5, 12)
PRUNE = 2.0
"""Nats below the best at which a pruned beam drops a hypothesis."""
HORIZON = 2
"""Pieces within which something alive must be able to win for a pruned beam to go on."""
FAMILY = VARIANTS[0].family
"""Of the models that are decoded with."""


@dataclass(frozen=True)
class Way:
    """How a search is made: as wide as a beam, with a shortlist or not, and pruned or not, which also looks less far."""

    beam: int
    short: bool = False
    pruned: bool = False

    @property
    def kind(self) -> str:
        """What all systems do, whatever else is done to be faster."""
        return "greedy" if self.beam == 1 else f"beam {self.beam}"

    @property
    def settings(self) -> dict[str, float]:
        """What of a recipe's `decoding` it changes."""
        return {"beam_size": self.beam} | ({"prune": PRUNE, "horizon": HORIZON} if self.pruned else {})

    def __str__(self) -> str:
        return self.kind + ", shortlist" * self.short + f", prune {PRUNE:g}, horizon {HORIZON}" * self.pruned


WAYS = [
    *(Way(beam, short) for short in (False, True) for beam in BEAMS),
    *(Way(beam, short=True, pruned=True) for beam in BEAMS if beam > 1),
]
"""Of nmt; the first are those of its peers."""


@dataclass(frozen=True)
class Search:
    """What one system does in one way. A window is a fresh process; of nmt it has a second pass, whose seconds come too."""

    system: str
    precision: str
    way: Way
    window: Callable[[], tuple[Decoded, float | None]]

    def __str__(self) -> str:
        return f"{self.system}, {self.precision}, {self.way}"


def decode(session: Session) -> Section:
    """nmt and every peer, greedy and with a beam, each with a model that it has trained for so many updates itself."""
    source = lines_of_test(session, session.effort.lines)
    searches: list[Search] = []
    model = session.attempt("decode: training nmt's model, unless that is done", our_model, session)
    if model is not None:
        searches += [_ours(session, model, source, precision, way) for precision in precisions(session) for way in WAYS]
    for peer in session.peers:
        what = f"decode: training the model of {peer.name}, unless that is done"
        theirs = session.attempt(what, their_model, session, peer)
        if theirs is not None:
            searches += [_theirs(session, peer, theirs, source, Way(beam)) for beam in BEAMS]
    taken = session.in_turn([(f"decode: {search}, window", search.window) for search in searches])
    return rates.section(
        session,
        [_rate(session, search, windows) for search, windows in zip(searches, taken, strict=True) if windows],
        name="decode",
        title="Decoding",
        text=(
            f"{session.effort.lines:,} test lines, models of {session.effort.model_updates:,} updates. Sentences a second without "
            "loading the model, each window the first pass of a fresh process, all systems in turn; for nmt, `warm` is the pass after "
            "it. Operations are those of matrix products, two a multiplication, for every place of the beam; the whole output layer "
            f"counts with a shortlist too. A shortlist changes some words, and so does dropping what is {PRUNE:g} nats less probable "
            f"than the best of its beam (prune), and stopping where nothing could win within {HORIZON} pieces, not 8 (horizon). nmt may "
            "decode with as many processes as threads: the peak is that of the largest."
        ),
        unit="sentences/s",
    )


def precisions(session: Session) -> list[str]:
    """What nmt decodes in: fp32, which is the exact search, then what `auto` is, and int8 where there is that."""
    return list(dict.fromkeys(["fp32", session.machine["auto"], *(["int8"] if "int8" in session.machine else [])]))


def our_model(session: Session) -> Path:
    """The model that nmt decodes with. Raises Failed."""
    return train_ours(session, VARIANTS[0], "auto", updates=session.effort.model_updates, keep=True).model


def their_model(session: Session, peer: Peer) -> Path:
    """The model that a peer decodes with. Raises Failed."""
    updates, batch_tokens = session.effort.model_updates, session.batch_tokens
    model = peer.model(FAMILY, session.text, updates=updates, batch_tokens=batch_tokens)
    if not model.exists():
        peer.train(FAMILY, session.text, updates=updates, batch_tokens=batch_tokens)
    if not model.exists():
        raise Failed(f"{peer.name} has trained without leaving the model {model}.")
    return model


def lines_of_test(session: Session, count: int) -> Path:
    """A file with so many source lines of the test text, from its beginning again where they run out."""
    path = session.folder / f"{count}-lines.{session.text.key}.{session.text.source}"
    lines = session.text.file("test", "source").read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{lines[row % len(lines)]}\n" for row in range(count)), encoding="utf-8")
    return path


def _shortlist(session: Session, model: Path) -> Path:
    """The shortlist of nmt's model, learnt from the training text unless that is done. Raises Failed."""
    path, text = model.with_name("shortlist.safetensors"), session.text
    if not path.is_file():
        sides = ["--source", text.file("train", "source"), "--target", text.file("train", "target")]
        arguments = ["shortlist", model, *sides, "--output", path]
        ours("nmt.cli", *arguments, threads=session.threads, what="nmt shortlist")
    return path


def _ours(session: Session, model: Path, source: Path, precision: str, way: Way) -> Search:
    def window() -> tuple[Decoded, float | None]:
        output = session.folder / f"nmt, {precision}, {way}.{session.text.target}"
        found, ended = work(
            "decode",
            threads=session.threads,
            what=f"nmt, {precision}, {way}",
            model=str(model),
            source=str(source),
            output=str(output),
            device=session.device,
            precision=precision,
            decoding=way.settings,
            shortlist=str(_shortlist(session, model)) if way.short else None,
            passes=2,
        )
        first, second = found["seconds"]
        return Decoded(first, ended.seconds, ended.peak, output), second

    return Search(rates.OURS, precision, way, window)


def _theirs(session: Session, peer: Peer, model: Path, source: Path, way: Way) -> Search:
    def window() -> tuple[Decoded, float | None]:
        return peer.decode(model, FAMILY, session.text, source, beam=way.beam), None

    return Search(peer.name, "fp32", way, window)


def _rate(session: Session, search: Search, windows: Sequence[tuple[Decoded, float | None]]) -> Rate:
    text, lines = session.text, session.effort.lines
    last, references = windows[-1][0].output, str(text.file("test", "target"))
    quality, _ = work("quality", threads=1, what="BLEU", hypotheses=str(last), references=references)
    warm = [lines / seconds for _, seconds in windows if seconds is not None]
    return Rate(
        search.system,
        str(search.way),
        search.way.kind,
        search.precision,
        Spread.of(lines / first.seconds for first, _ in windows),
        VARIANTS[0].decoding_flop(text.vocabulary, text.source_pieces, text.target_pieces, search.way.beam),
        max(first.peak for first, _ in windows),
        {**({"warm": Spread.of(warm).median} if warm else {}), **quality},
    )
