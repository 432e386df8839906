"""Compare rates: each as a fraction of the machine's peak throughput, and as a multiple of the rates of other systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from .measuring import Spread
from .session import Section, Session

OURS = "nmt"


@dataclass(frozen=True)
class Rate:
    """The measured speed of one system in one setting.

    Attributes:
        system: `nmt` or the name and release of a peer.
        setting: the setting, in the system's own terms.
        kind: rates of the same kind are compared.
        precision: precision of the matrix products.
        spread: units per second.
        flop: floating-point operations per unit, of the matrix products alone.
        peak: peak memory in MiB.
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
    """The speed of nmt divided by that of each other system, by system."""
    if rate.system != OURS:
        return {}
    return {
        other.system: rate.spread.median / other.spread.median
        for other in rates
        if other.system != OURS and other.kind == rate.kind
    }


def section(session: Session, rates: Sequence[Rate], *, name: str, title: str, text: str, unit: str) -> Section:
    """The table of rates, with a column for each peer and each note."""
    peers = list(dict.fromkeys(rate.system for rate in rates if rate.system != OURS))
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
                *(f"{times[peer]:.2f} x" if peer in times else "" for peer in peers),
            ]
        )
        figures.append({**asdict(rate), "unit": unit, "of_ceiling": share, "ratios": times})
    return Section(name, title, text, [*header, *notes, *(f"x {peer}" for peer in peers)], rows, figures)


def number(value: float) -> str:
    """Format a figure with three significant digits, or with all digits before the point if there are more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
