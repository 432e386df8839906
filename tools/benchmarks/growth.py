"""How time and memory grow along each axis, all else held, and that a long file takes no more memory than a short one."""

from __future__ import annotations

from .decoding import lines_of_test, our_model
from .growing import AXES, DEFAULT, TARGET
from .measuring import Ended, Spread, ours, work
from .rates import number
from .session import Section, Session

QUICK_POINTS = 2
"""Points of each axis that a quick run looks at."""
_TASKS = {"train-step": "an update", "search": "a search"}


def grow(session: Session) -> Section:
    """Seconds and peak memory of one update and of one beam search, along source length, batch, vocabulary and beam."""
    points = [
        (axis, value, task)
        for axis, values in AXES.items()
        for value in (values if session.effort.windows > 1 else values[:QUICK_POINTS])
        for task in _TASKS
        if task == "search" or axis != "beam"
    ]
    found = []
    for axis, value, task in points:
        measured = session.attempt(f"growth: {axis} {value:,}, {task}", _point, session, axis, value, task)
        if measured is not None:
            found.append((axis, value, task, *measured))
    held = ", ".join(f"{name} {value:,}" for name, value in DEFAULT.items())
    return Section(
        "growth",
        "Growth",
        f"One training update and one beam search on random words, with {held} where nothing else is said; targets have "
        f"{TARGET} pieces. Precision auto ({session.machine['auto']}); peak memory is that of the whole process, torch included.",
        ["along", "value", "of", "ms", "min to max", "peak MiB"],
        [
            [axis, f"{value:,}", _TASKS[task], *_milliseconds(seconds), number(peak)]
            for axis, value, task, seconds, peak in found
        ],
        [
            {"axis": axis, "value": value, "task": task, "seconds": seconds, "peak": peak}
            for axis, value, task, seconds, peak in found
        ],
    )


def long_file(session: Session) -> Section:
    """Time and peak memory of `nmt translate` over files of growing length."""
    model = session.attempt("file: training nmt's model, unless that is done", our_model, session)
    found = []
    for count in session.effort.file_lines if model is not None else ():
        ended = session.attempt(f"file: {count:,} lines", _translate, session, str(model), count)
        if ended is not None:
            found.append((count, ended))
    return Section(
        "file",
        "A long file",
        "`nmt translate --beam-size 1 --precision auto` over test lines, repeated as often as needed.",
        ["lines", "seconds", "lines/s", "peak MiB"],
        [
            [f"{count:,}", number(ended.seconds), number(count / ended.seconds), number(ended.peak)]
            for count, ended in found
        ],
        [{"lines": count, "seconds": ended.seconds, "peak": ended.peak} for count, ended in found],
    )


def _point(session: Session, axis: str, value: int, task: str) -> tuple[Spread, float]:
    settings = {
        **DEFAULT,
        axis: value,
        "precision": "auto",
        "device": session.device,
        "windows": session.effort.windows,
    }
    what = f"{task} with {axis} {value:,}"
    found, ended = work(task, threads=session.threads, what=what, **settings)
    return Spread.of(found["seconds"]), found.get("device_peak", ended.peak)


def _translate(session: Session, model: str, count: int) -> Ended:
    source, output = lines_of_test(session, count), session.folder / "long-file"
    places = ["--input", source, "--output", output]
    options = ["--beam-size", 1, "--precision", "auto", "--device", session.device, "--quiet"]
    arguments = ["translate", model, *places, *options]
    return ours("nmt.cli", *arguments, threads=session.threads, what=f"{count:,} lines")


def _milliseconds(seconds: Spread) -> tuple[str, str]:
    median, low, high = (number(1000 * value) for value in (seconds.median, seconds.low, seconds.high))
    return median, f"{low} to {high}"
