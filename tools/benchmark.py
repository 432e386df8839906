"""Measure what the toolkit costs on this machine, as fractions of what the machine can do and beside other toolkits.

    python tools/benchmark.py --peers DIR --json figures.json --markdown figures.md
    python tools/benchmark.py train decode --quick

The report goes to standard output. Text is Multi30k if it is at hand ($NMT_CORPORA or the cache), else the embedded
sample. Run nothing beside it: a second process on the machine halves most figures.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.benchmarks import attention, decoding, dropping, growth, report, starting, training
from tools.benchmarks.joey import Joey
from tools.benchmarks.measuring import Failed
from tools.benchmarks.onmt import OpenNMT
from tools.benchmarks.peers import Peer
from tools.benchmarks.session import FULL, QUICK, Section, Session

PHASES = {
    "train": training.train,
    "decode": decoding.decode,
    "start-up": starting.start,
    "growth": growth.grow,
    "file": growth.long_file,
    "attention": attention.attend,
    "drop-one": dropping.drop,
}


def main() -> int:
    """Run the phases asked for, write the report, and return 1 if a measurement failed."""
    options = _options()
    try:
        session = _session(options)
        _write(options, session, [])  # before hours are spent: can it be written at all?
        sections: list[Section] = []
        for phase in options.phases or PHASES:
            if phase in PHASES:
                sections.append(PHASES[phase](session))
                _write(options, session, sections)  # what has been measured stays, whatever comes
        print(report.markdown(session, sections))
    except Failed as failure:
        sys.exit(f"benchmark: {failure}")
    except OSError as error:
        sys.exit(f"benchmark: cannot write {error.filename}: {error.strerror}.")
    except KeyboardInterrupt:
        return 130
    return 1 if session.failures else 0


def _write(options: argparse.Namespace, session: Session, sections: list[Section]) -> None:
    if options.markdown:
        options.markdown.write_text(report.markdown(session, sections), encoding="utf-8")
    if options.json:
        options.json.write_text(report.as_json(session, sections), encoding="utf-8")


def _options() -> argparse.Namespace:
    from nmt.device import usable_cores

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "phases",
        nargs="*",
        metavar="PHASE",
        help=f"what to measure: {', '.join(PHASES)}; peers only sets them up [all]",
    )
    add("--peers", type=Path, metavar="DIR", help="set OpenNMT-py and JoeyNMT up in DIR (once) and run them too")
    add(
        "--quick", action="store_true", help="a minute or two a phase, to see that everything runs; no figures to quote"
    )
    add(
        "--threads",
        type=_positive,
        default=usable_cores(),
        help="CPU threads of every system [%(default)s]",
    )
    add("--device", default="cpu", help="where nmt computes; peers run on the CPU only [%(default)s]")
    add("--batch-tokens", type=_positive, default=4096, help="tokens in a batch, as each system counts [%(default)s]")
    add("--windows", type=_positive, help="timings of each thing")
    add("--updates", type=_positive, help="updates of each training that is timed, at least 15")
    add("--model-updates", type=_positive, help="updates of the models that are decoded with")
    add("--work", type=Path, metavar="DIR", help="where text and models are kept [benchmark in nmt's cache]")
    add("--json", type=Path, metavar="FILE", help="write all figures")
    add("--markdown", type=Path, metavar="FILE", help="write the report")
    options = parser.parse_args()
    for phase in options.phases:
        if phase not in (*PHASES, "peers"):
            parser.error(f"there is no phase '{phase}': choose from {', '.join((*PHASES, 'peers'))}")
    if options.updates and options.updates < 15:
        parser.error(f"--updates must be at least 15, since ten warm up, but is {options.updates}")
    if options.peers and options.device != "cpu":
        parser.error("--peers compares on the CPU: leave --device out")
    if "peers" in options.phases and not options.peers:
        parser.error("the phase peers needs --peers DIR")
    return options


def _session(options: argparse.Namespace) -> Session:
    from nmt.cache import cache_folder

    given = {name: getattr(options, name) for name in ("windows", "updates", "model_updates")}
    effort = replace(QUICK if options.quick else FULL, **{name: value for name, value in given.items() if value})
    folder = (options.work or cache_folder() / "benchmark").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    session = Session(folder, effort, options.threads, options.device, options.batch_tokens, peers=[])
    if options.peers:
        known: list[Peer] = [kind(options.peers.resolve(), options.threads) for kind in (OpenNMT, Joey)]
        session.peers += [peer for peer in known if _is_set_up(session, peer)]
    return session


def _is_set_up(session: Session, peer: Peer) -> bool:
    failures = len(session.failures)
    session.attempt(f"peers: {peer.name}", peer.set_up)
    return len(session.failures) == failures


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, but is {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
