"""Sections as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from .rates import number
from .session import PRECISIONS, Section, Session


def markdown(session: Session, sections: Sequence[Section]) -> str:
    """The whole report."""
    parts = [_introduction(session), *map(_section, sections)]
    if session.failures:
        parts.append("## Failed measurements\n\n" + "\n".join(f"* {sentence}" for sentence in session.failures) + "\n")
    return "\n".join(parts)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table. Bars within cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def as_json(session: Session, sections: Sequence[Section]) -> str:
    """All figures."""
    content = {
        "machine": session.machine,
        "batch_tokens": session.batch_tokens,
        "effort": session.effort,
        **{section.name: section.figures for section in sections},
        "failures": session.failures,
    }
    return json.dumps(content, default=_plain, ensure_ascii=False, indent=1) + "\n"


def _introduction(session: Session) -> str:
    machine = session.machine
    ceilings = table(
        ["matrix products", "TFLOP/s", "min to max"],
        [
            [precision, number(spread.median / 1e12), f"{number(spread.low / 1e12)} to {number(spread.high / 1e12)}"]
            for precision, spread in ((name, machine[name]) for name in PRECISIONS if name in machine)
        ],
    )
    setup = (
        f"{machine['processor']}, {machine['threads']} threads, torch {machine['torch']}, kernels: {machine['kernels']}; "
        f"precision auto is {machine['auto']}"
    )
    ceiling = "The ceiling is the peak throughput of matrix products, measured in this run:"
    return f"# Benchmark\n\n{setup}. {ceiling}\n\n{ceilings}"


def _section(section: Section) -> str:
    return f"## {section.title}\n\n{section.text}\n\n{table(section.header, section.rows)}"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)
