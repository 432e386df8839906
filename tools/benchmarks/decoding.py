"""Sentences a second in decoding: every window a fresh process, its clock starting once the model is loaded."""

from __future__ import annotations

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
FAMILY = VARIANTS[0].family
"""Of the models that are decoded with."""


@dataclass(frozen=True)
class Way:
    """How a search is made: as wide as a beam, with a shortlist, and dropping the improbable or not."""

    beam: int
    short: bool = False
    prune: float | None = None

    @property
    def kind(self) -> str:
        """What all systems do, whatever else is done to be faster."""
        return "greedy" if self.beam == 1 else f"beam {self.beam}"

    def __str__(self) -> str:
        return self.kind + ", shortlist" * self.short + ("" if self.prune is None else f", prune {self.prune:g}")


WAYS = [
    *(Way(beam, short) for short in (False, True) for beam in BEAMS),
    *(Way(beam, short=True, prune=PRUNE) for beam in BEAMS if beam > 1),
]
"""Of nmt; the first are those of its peers."""


def decode(session: Session) -> Section:
    """nmt and every peer, greedy and with a beam, each with a model that it has trained for so many updates itself."""
    source = lines_of_test(session, session.effort.lines)
    found: list[Rate | None] = []
    model = session.attempt("decode: training nmt's model, unless that is done", our_model, session)
    if model is not None:
        found += [
            session.attempt(f"decode: nmt, {precision}, {way}", _ours, session, model, source, precision, way)
            for precision in precisions(session)
            for way in WAYS
        ]
    for peer in session.peers:
        what = f"decode: training the model of {peer.name}, unless that is done"
        theirs = session.attempt(what, their_model, session, peer)
        if theirs is not None:
            found += [
                session.attempt(f"decode: {peer.name}, {way}", _theirs, session, peer, theirs, source, way)
                for way in map(Way, BEAMS)
            ]
    return rates.section(
        session,
        [rate for rate in found if rate is not None],
        name="decode",
        title="Decoding",
        text=(
            f"{session.effort.lines:,} test lines, models of {session.effort.model_updates:,} updates. Sentences a second without "
            "loading the model, each window the first pass of a fresh process; for nmt, `warm` is the pass after it. "
            "Operations are those of matrix products, two a multiplication, for every place of the beam; the whole output layer "
            f"counts with a shortlist too. A shortlist changes some words, and so does dropping what is {PRUNE:g} nats less probable "
            "than the best of its beam (prune). nmt may decode with as many processes as threads: the peak is that of the largest."
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


def _ours(session: Session, model: Path, source: Path, precision: str, way: Way) -> Rate:
    output, cold, warm = session.folder / f"nmt-beam{way.beam}.{session.text.target}", [], []
    shortlist = str(_shortlist(session, model)) if way.short else None
    for _ in range(session.effort.windows):
        found, ended = work(
            "decode",
            threads=session.threads,
            what=f"nmt, {precision}, {way}",
            model=str(model),
            source=str(source),
            output=str(output),
            device=session.device,
            precision=precision,
            beam=way.beam,
            prune=way.prune,
            shortlist=shortlist,
            passes=2,
        )
        first, second = found["seconds"]
        cold.append(Decoded(first, ended.seconds, ended.peak, output))
        warm.append(session.effort.lines / second)
    notes = {"warm": Spread.of(warm).median}
    return _rate(session, rates.OURS, precision, way, cold, notes)


def _theirs(session: Session, peer: Peer, model: Path, source: Path, way: Way) -> Rate:
    runs = [peer.decode(model, FAMILY, session.text, source, beam=way.beam) for _ in range(session.effort.windows)]
    return _rate(session, peer.name, "fp32", way, runs, {})


def _rate(
    session: Session, system: str, precision: str, way: Way, runs: list[Decoded], notes: dict[str, float]
) -> Rate:
    text = session.text
    references = str(text.file("test", "target"))
    quality, _ = work("quality", threads=1, what="BLEU", hypotheses=str(runs[-1].output), references=references)
    return Rate(
        system,
        str(way),
        way.kind,
        precision,
        Spread.of(session.effort.lines / each.seconds for each in runs),
        VARIANTS[0].decoding_flop(text.vocabulary, text.source_pieces, text.target_pieces, way.beam),
        max(each.peak for each in runs),
        {**notes, **quality},
    )
