"""How time and memory grow along each axis, and whether a long file takes more memory than a short one."""

from __future__ import annotations

from pathlib import Path

from .decoding import lines_of_test, our_model
from .growing import AXES, DEFAULT, TARGET
from .measuring import ProcessResult, Spread, ours, work
from .rates import number
from .session import Section, Session

QUICK_POINTS = 2
"""Points of each axis that a quick run measures."""
_TASKS = {"train-step": "an update", "search": "a search"}


def grow(session: Session) -> Section:
    """Time and peak memory of one update and one beam search, along source length, batch, vocabulary and beam."""
    points = [
        (axis, value, task)
        for axis, values in AXES.items()
        for value in (values if session.effort.windows > 1 else values[:QUICK_POINTS])
        for task in _TASKS
        if task == "search" or axis != "beam"
    ]
    measurements = []
    for axis, value, task in points:
        measured = session.attempt(f"growth: {axis} {value:,}, {task}", _point, session, axis, value, task)
        if measured is not None:
            measurements.append((axis, value, task, *measured))
    defaults = ", ".join(f"{name} {value:,}" for name, value in DEFAULT.items())
    return Section(
        "growth",
        "Growth",
        f"One training update and one beam search on random tokens, with {defaults} unless the table says otherwise; targets have "
        f"{TARGET} tokens. Precision auto ({session.machine['auto']}); peak memory is that of the whole process, torch included.",
        ["axis", "value", "task", "ms", "min to max", "peak MiB"],
        [
            [axis, f"{value:,}", _TASKS[task], *_milliseconds(seconds), number(peak)]
            for axis, value, task, seconds, peak in measurements
        ],
        [
            {"axis": axis, "value": value, "task": task, "seconds": seconds, "peak": peak}
            for axis, value, task, seconds, peak in measurements
        ],
    )


def trace(session: Session, folder: Path) -> None:
    """Profile an update and a search at the defaults of `grow`, for https://ui.perfetto.dev."""
    for task, name in _TASKS.items():
        settings = {**DEFAULT, "precision": "auto", "device": session.device, "windows": 1}
        file = str(folder.resolve() / f"{task}.json.gz")
        work(task, threads=session.threads, what=f"trace: {name}", trace=file, **settings)


def long_file(session: Session) -> Section:
    """Time and peak memory of `nmt translate` over files of growing length."""
    model = session.attempt("file: train nmt's model if needed", our_model, session)
    runs = []
    for count in session.effort.file_lines if model is not None else ():
        process = session.attempt(f"file: {count:,} lines", _translate, session, str(model), count)
        if process is not None:
            runs.append((count, process))
    return Section(
        "file",
        "A long file",
        "`nmt translate --beam-size 1 --precision auto` over the test lines, repeated as needed.",
        ["lines", "seconds", "lines/s", "peak MiB"],
        [
            [f"{count:,}", number(process.seconds), number(count / process.seconds), number(process.peak)]
            for count, process in runs
        ],
        [{"lines": count, "seconds": process.seconds, "peak": process.peak} for count, process in runs],
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
    answer, process = work(task, threads=session.threads, what=what, **settings)
    return Spread.of(answer["seconds"]), answer.get("device_peak", process.peak)


def _translate(session: Session, model: str, count: int) -> ProcessResult:
    source, output = lines_of_test(session, count), session.folder / "long-file"
    paths = ["--input", source, "--output", output]
    options = ["--beam-size", 1, "--precision", "auto", "--device", session.device, "--quiet"]
    arguments = ["translate", model, *paths, *options]
    return ours("nmt", *arguments, threads=session.threads, what=f"{count:,} lines")


def _milliseconds(seconds: Spread) -> tuple[str, str]:
    median, low, high = (number(1000 * value) for value in (seconds.median, seconds.low, seconds.high))
    return median, f"{low} to {high}"
