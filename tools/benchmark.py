"""Measure the speed and memory of nmt on this machine, against the machine's peak throughput and against other toolkits.

    python tools/benchmark.py --peers DIR --json figures.json --markdown figures.md
    python tools/benchmark.py train decode --quick

The report goes to standard output. The text is Multi30k if $NMT_CORPORA or the cache holds it, else the embedded sample.
Run nothing else meanwhile: a second busy process halves most figures.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.benchmarks import decoding, dropping, report, starting, training
from tools.benchmarks.joey import Joey
from tools.benchmarks.measuring import MeasurementError
from tools.benchmarks.onmt import OpenNMT
from tools.benchmarks.peers import Peer
from tools.benchmarks.session import FULL, QUICK, Section, Session

PHASES = {
    "train": training.train,
    "decode": decoding.decode,
    "start-up": starting.start,
    "drop-one": dropping.drop,
}


def main() -> int:
    """Run the phases, write the report, and return 1 if a measurement failed."""
    options = _options()
    try:
        session = _session(options)
        _write(options, session, [])  # fail now, not after hours, if the files cannot be written
        sections: list[Section] = []
        for phase in options.phases or PHASES:
            if phase in PHASES:
                sections.append(PHASES[phase](session))
                _write(options, session, sections)  # keep these figures if a later phase fails
        print(report.markdown(session, sections))
    except MeasurementError as error:
        sys.exit(f"benchmark: {error}")
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
    from nmt.runtime.cores import usable_cores

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "phases",
        nargs="*",
        metavar="PHASE",
        help=f"phases to run: {', '.join(PHASES)}; 'peers' only sets the peers up [all]",
    )
    add("--peers", type=Path, metavar="DIR", help="install OpenNMT-py and JoeyNMT in DIR (once) and run them too")
    add(
        "--quick",
        action="store_true",
        help="check that everything runs, in a minute or two per phase; do not quote the figures",
    )
    add(
        "--threads",
        type=_positive,
        default=usable_cores(),
        help="CPU threads of every system [%(default)s]",
    )
    add("--device", default="cpu", help="cpu or cuda, for every system [%(default)s]")
    add(
        "--batch-tokens",
        type=_positive,
        default=4096,
        help="tokens per batch, as each system counts them [%(default)s]",
    )
    add("--windows", type=_positive, help="repetitions of each measurement")
    add("--updates", type=_positive, help="updates of each timed training run, at least 15")
    add("--model-updates", type=_positive, help="updates of the models used for decoding")
    add("--work", type=Path, metavar="DIR", help="folder for text and models [benchmark in nmt's cache]")
    add("--json", type=Path, metavar="FILE", help="write all figures")
    add("--markdown", type=Path, metavar="FILE", help="write the report")
    options = parser.parse_args()
    for phase in options.phases:
        if phase not in (*PHASES, "peers"):
            parser.error(f"there is no phase '{phase}': choose from {', '.join((*PHASES, 'peers'))}")
    if options.updates and options.updates < 15:
        parser.error(f"--updates must be at least 15, since the first ten only warm up, but is {options.updates}")
    if options.peers and options.device not in ("cpu", "cuda"):
        parser.error("--peers runs on cpu or cuda")
    if "peers" in options.phases and not options.peers:
        parser.error("the phase peers needs --peers DIR")
    return options


def _session(options: argparse.Namespace) -> Session:
    from nmt.runtime.cache import cache_folder

    settings = {name: getattr(options, name) for name in ("windows", "updates", "model_updates")}
    effort = replace(QUICK if options.quick else FULL, **{name: value for name, value in settings.items() if value})
    folder = (options.work or cache_folder() / "benchmark").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    session = Session(folder, effort, options.threads, options.device, options.batch_tokens, peers=[])
    if options.peers:
        peers: list[Peer] = [
            peer_type(options.peers.resolve(), options.threads, options.device) for peer_type in (OpenNMT, Joey)
        ]
        session.peers += [peer for peer in peers if _is_set_up(session, peer)]
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
