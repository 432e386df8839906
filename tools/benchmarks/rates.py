"""Rates side by side: each as a fraction of the machine's ceiling, and as a multiple of what the other systems reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from .measuring import Spread
from .session import Section, Session

OURS = "nmt"


@dataclass(frozen=True)
class Rate:
    """How fast one system did one thing.

    Attributes:
        system: `nmt` or the name and release of a peer.
        setting: what it did, in the system's own terms.
        kind: rates of the same kind are compared with each other.
        precision: of the matrix products.
        spread: units a second.
        flop: floating-point operations a unit, for matrix products alone.
        peak: memory in MiB.
        notes: further columns.
    """

    system: str
    setting: str
    kind: str
    precision: str
    spread: Spread
    flop: float
    peak: float
    notes: dict[str, float] = field(default_factory=dict)


def ratios(rate: Rate, rates: Sequence[Rate]) -> dict[str, float]:
    """How many times as fast as each other system a rate of nmt is, by system."""
    if rate.system != OURS:
        return {}
    return {
        other.system: rate.spread.median / other.spread.median
        for other in rates
        if other.system != OURS and other.kind == rate.kind
    }


def section(session: Session, rates: Sequence[Rate], *, name: str, title: str, text: str, unit: str) -> Section:
    """The table of rates, with a column for each peer and each note."""
    others = list(dict.fromkeys(rate.system for rate in rates if rate.system != OURS))
    notes = list(dict.fromkeys(note for rate in rates for note in rate.notes))
    header = ["system", "setting", "precision", unit, "min to max", "windows", "of ceiling", "peak MiB"]
    rows, figures = [], []
    for rate in rates:
        spread, times = rate.spread, ratios(rate, rates)
        share = spread.median * rate.flop / session.machine[rate.precision].median
        rows.append(
            [
                *(rate.system, rate.setting, rate.precision, number(spread.median)),
                *(f"{number(spread.low)} to {number(spread.high)}", str(spread.windows)),
                *(f"{share:.1%}", number(rate.peak)),
                *(number(rate.notes[note]) if note in rate.notes else "" for note in notes),
                *(f"{times[other]:.2f} x" if other in times else "" for other in others),
            ]
        )
        figures.append({**asdict(rate), "unit": unit, "of_ceiling": share, "ratios": times})
    return Section(name, title, text, [*header, *notes, *(f"x {other}" for other in others)], rows, figures)


def number(value: float) -> str:
    """A figure with three significant digits or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
