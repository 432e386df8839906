"""The rows as Markdown that reads well as it is, and as JSON with every digit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from nmt import __version__
from nmt.comparison.measure import Figures, read_translations, tokenizer_of
from nmt.comparison.plan import Candidate, settings
from nmt.evaluation import metrics
from nmt.recipe import Recipe
from nmt.wording import counted

NONE = "–"
_FAULTY = " †"
_SIGNIFICANT = 0.05
_DESCRIBED = (
    "name",
    "model.attention.heads",
    "model.attention.score.coverage",
    "model.attention.score.kind",
    "model.attention.window.half_width",
    "model.attention.window.kind",
    "model.decoder.order.",
)
"""Settings that the table shows already."""


@dataclass(frozen=True)
class Row:
    """One recipe: its figures, or why it has none.

    Attributes:
        candidate: the recipe and where its run is.
        figures: what was measured; None if it could not be.
        problem: the sentence that says why.
        p_values: of the difference to the baseline, by metric.
    """

    candidate: Candidate
    figures: Figures | None
    problem: str | None = None
    p_values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A comparison and the circumstances that its figures depend on.

    Attributes:
        rows: in the order in which they are shown.
        text: name, languages and size of the text that was translated.
        aligned: likewise of the one with gold links; None if there is none.
        machine: processor and threads.
        command: the command line.
        baseline: name of the row that others are tested against; None if there is none.
    """

    rows: Sequence[Row]
    text: str
    aligned: str | None
    machine: str
    command: str
    baseline: str | None = None

    def json(self) -> str:
        """Everything, as one JSON object."""
        rows = [{**_plain(row), "p_values": dict(row.p_values)} for row in self.rows]
        about = {"command": self.command, "text": self.text, "aligned": self.aligned, "machine": self.machine}
        content = {"nmt": __version__, **about, "baseline": self.baseline, "rows": rows}
        return json.dumps(content, ensure_ascii=False, indent=2) + "\n"

    def markdown(self) -> str:
        """Two tables and what must be said about them."""
        measured = [row for row in self.rows if row.figures is not None]
        blocks = [f"# {counted(len(self.rows), 'recipe')} under one budget", self._circumstances()]
        if measured:
            blocks += [self._figures(), self._legend(), "## BLEU by length of the source", _by_length(measured)]
        blocks += [f"**{row.candidate.name}** has no figures: {row.problem}" for row in self.rows if row.problem]
        return "\n\n".join(block for block in blocks if block) + "\n"

    def _circumstances(self) -> str:
        """The sentences above the table."""
        recipes = [row.candidate.recipe for row in self.rows]
        lines = [
            f"- Text: {self.text}" + (f"; alignments against {self.aligned}" if self.aligned else "") + ".",
            f"- Budget: {_budget(recipes)}.",
            *([f"- All: {shared}."] if (shared := _shared(recipes)) else []),
            *([f"- The recipes also differ in {others}."] if (others := _other_differences(recipes)) else []),
            f"- Machine: {self.machine}; nmt {__version__}.",
            *_trained_otherwise(self.rows),
            f"- Command: `{self.command}`",
        ]
        return "\n".join(lines)

    def _figures(self) -> str:
        columns = [Column("model", [_name(row) for row in self.rows], "left")]
        described = [describe(row.candidate.recipe) for row in self.rows]
        varied = [key for key in described[0] if len({item[key] for item in described}) > 1]
        columns += [Column(key, [item[key] for item in described], "left") for key in varied]
        vocabularies = {row.figures.vocabulary for row in self.rows if row.figures}
        for shown in _SHOWN:
            if any(shown.value(row.figures) is not None for row in self.rows if row.figures):
                compares = shown.name != "perplexity" or len(vocabularies) == 1
                columns.append(_column(shown, self.rows, best=shown.better if compares else None))
        return markdown_table(columns)

    def _legend(self) -> str:
        """What the columns mean, and how the figures were made."""
        figures = next(row.figures for row in self.rows if row.figures)
        said = [
            "Bold is a strict best. Perplexity is that of the references, per target token; it compares only between models with"
        ]
        said.append(
            "the same vocabulary. BLEU and chrF are cased and detokenised, ± half a 95 % interval by bootstrap."
        )
        if self.baseline:
            said.append(f"`*` marks a difference from {self.baseline} with p < {_SIGNIFICANT} (paired bootstrap).")
        if self.aligned:
            said.append(
                "AER is the alignment error rate of the attention's links, posterior AER that of the links given each target word."
            )
        said.append(
            "Entropy is that of a target word's attention over source words, in nats. Training speed is in target tokens "
            "per second; decoding speed is that of the recipe's beam search over the whole text, the fastest of up to three passes."
        )
        signatures = "  \n".join(f"{name}: `{signature}`" for name, signature in figures.signatures.items())
        return "\n\n".join([*_faults(self.rows), " ".join(said), signatures])


def with_p_values(rows: Sequence[Row], baseline: str, references: Sequence[str]) -> list[Row]:
    """The rows with the chance of their difference from the baseline's; untouched if that one has no figures."""
    systems = {row.candidate.name: read_translations(row.candidate.translations) for row in rows if row.figures}
    if baseline not in systems or len(systems) < 2:
        return list(rows)
    ordered = {baseline: systems.pop(baseline), **systems}
    tokenizer = next(tokenizer_of(row.candidate.recipe) for row in rows if row.candidate.name == baseline)
    tested = metrics.compare(ordered, references, metrics=("bleu", "chrf"), tokenize=tokenizer)
    values: dict[str, dict[str, float]] = {name: {} for name in ordered}
    for item in tested:
        if item.p_value is not None:
            values[item.system][item.score.metric] = item.p_value
    return [replace(row, p_values=values.get(row.candidate.name, {})) for row in rows]


# --- columns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A heading over cells."""

    heading: str
    cells: Sequence[str]
    side: Literal["left", "right"] = "right"


@dataclass(frozen=True)
class _Shown:
    """A figure that the table shows: where it comes from, how it is written, and which end is better."""

    name: str
    value: Callable[[Figures], float | None]
    form: str
    better: Callable[[Sequence[float]], float] | None = None
    margin: Callable[[Figures], float | None] = lambda _: None
    metric: str = ""


_SHOWN = (
    _Shown("parameters", lambda own: own.parameters / 1e6, "{:.2f} M"),
    _Shown("perplexity", lambda own: own.perplexity, "{:.2f}", min),
    _Shown("BLEU", lambda own: own.bleu, "{:.2f}", max, lambda own: own.bleu_margin, "BLEU"),
    _Shown("chrF", lambda own: own.chrf, "{:.2f}", max, lambda own: own.chrf_margin, "chrF2"),
    _Shown("AER", lambda own: None if own.aer is None else 100 * own.aer, "{:.1f} %", min),
    _Shown(
        "posterior AER", lambda own: None if own.posterior_aer is None else 100 * own.posterior_aer, "{:.1f} %", min
    ),
    _Shown("entropy", lambda own: own.entropy, "{:.2f}"),
    _Shown("epochs", lambda own: own.epochs, "{:.0f}"),
    _Shown("training", lambda own: own.training_seconds / 60, "{:.1f} min"),
    _Shown("tokens/s", lambda own: own.tokens_per_second, "{:,.0f}", max),
    _Shown("sentences/s", lambda own: own.sentences_per_second, "{:,.1f}", max),
)


def _column(shown: _Shown, rows: Sequence[Row], *, best: Callable[[Sequence[float]], float] | None) -> Column:
    values = [None if row.figures is None else shown.value(row.figures) for row in rows]
    written = [NONE if value is None else shown.form.format(value) for value in values]
    cells = _with_best(written, values, rows, best)
    for number, row in enumerate(rows):
        margin = None if row.figures is None else shown.margin(row.figures)
        cells[number] += "" if margin is None else f" ± {margin:.2f}"
        cells[number] += "*" if row.p_values.get(shown.metric, 1.0) < _SIGNIFICANT else ""
    return Column(shown.name, cells)


def _with_best(
    cells: Sequence[str],
    values: Sequence[float | None],
    rows: Sequence[Row],
    best: Callable[[Sequence[float]], float] | None,
) -> list[str]:
    """The cells, the best one bold if it is alone and has rivals; translations that are worthless win and lose nothing."""
    rivals = {
        place: value
        for place, (value, row) in enumerate(zip(values, rows, strict=True))
        if value is not None and row.figures is not None and row.figures.fault is None
    }
    if best is None or len(rivals) < 2:
        return list(cells)
    winner = cells[next(place for place, value in rivals.items() if value == best(list(rivals.values())))]
    is_alone = sum(cells[place] == winner for place in rivals) == 1
    return [
        f"**{cell}**" if is_alone and place in rivals and cell == winner else cell for place, cell in enumerate(cells)
    ]


def _name(row: Row) -> str:
    """The model's name, marked if its translations are worthless."""
    return row.candidate.name + (_FAULTY if row.figures and row.figures.fault else "")


def _faults(rows: Sequence[Row]) -> list[str]:
    """The footnotes of marked names."""
    faults = [f"{row.candidate.name}: {row.figures.fault}." for row in rows if row.figures and row.figures.fault]
    return ["  \n".join(f"{_FAULTY.strip()} {fault}" for fault in faults)] if faults else []


def _by_length(rows: Sequence[Row]) -> str:
    """BLEU of each bucket, its number of sentences in the heading."""
    figures = [row.figures for row in rows if row.figures is not None]
    columns = [Column("model", [_name(row) for row in rows], "left")]
    for number, bucket in enumerate(figures[0].by_length):
        written = [f"{own.by_length[number].bleu:.1f}" for own in figures]
        cells = _with_best(written, [own.by_length[number].bleu for own in figures], rows, max)
        columns.append(Column(f"{bucket} ({bucket.sentences:,})", cells))
    return markdown_table(columns) + "\n\nIn parentheses the number of sentences."


def markdown_table(columns: Sequence[Column]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    widths = [max(3, len(column.heading), *map(len, column.cells)) for column in columns]
    rules = [
        "-" * width if column.side == "left" else "-" * (width - 1) + ":"
        for column, width in zip(columns, widths, strict=True)
    ]
    lines = [[column.heading for column in columns], rules, *zip(*(column.cells for column in columns), strict=True)]
    return "\n".join("| " + " | ".join(_padded(columns, widths, line)) + " |" for line in lines)


def _padded(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> list[str]:
    return [
        cell.ljust(width) if column.side == "left" else cell.rjust(width)
        for column, width, cell in zip(columns, widths, cells, strict=True)
    ]


# --- what the recipes are ---------------------------------------------------------------------------------------


def describe(recipe: Recipe) -> dict[str, str]:
    """The three settings that name an attention, in short."""
    own = settings(recipe)
    score, window, order = (
        own[f"model.{key}.kind"] for key in ("attention.score", "attention.window", "decoder.order")
    )
    extras = {
        "coverage": own.get("model.attention.score.coverage"),
        f"{own.get('model.attention.heads')} heads": own.get("model.attention.heads", 1) > 1,
    }
    score = ", ".join([score, *(name for name, has in extras.items() if has)])
    if score == "none":
        window = NONE
    if half_width := own.get("model.attention.window.half_width"):
        window += f", D = {half_width}"
    if own.get("model.decoder.order.conditional"):
        order += ", conditional"
    if own.get("model.decoder.order.input_feeding"):
        order += ", input feeding"
    return {"score": score, "window": window, "order": order}


def _budget(recipes: Sequence[Recipe]) -> str:
    """Epochs, updates and size of a batch, and whether they are the same."""
    training = [recipe.training for recipe in recipes]
    parts = [_span([own.epochs for own in training], "epoch")]
    if limits := [own.updates for own in training if own.updates is not None]:
        parts.append(f"at most {_span(limits, 'update')}")
    parts.append(f"batches of {_span([own.batch_tokens * own.accumulate for own in training], 'target token')}")
    return ", ".join(parts)


def _span(values: Sequence[int], noun: str) -> str:
    low, high = min(values), max(values)
    return counted(low, noun) if low == high else f"{low:,} to {counted(high, noun)}"


def _shared(recipes: Sequence[Recipe]) -> str:
    """The settings of the description that have no column because all agree."""
    described = [describe(recipe) for recipe in recipes]
    same = [f"{key} {value}" for key, value in described[0].items() if {item[key] for item in described} == {value}]
    return ", ".join(same)


def _other_differences(recipes: Sequence[Recipe]) -> str:
    """Settings beyond the description in which recipes differ, so that nobody takes them for equal."""
    flat = [settings(recipe) for recipe in recipes]
    keys = dict.fromkeys(key for own in flat for key in own if not key.startswith(_DESCRIBED))
    return ", ".join(key for key in keys if len({json.dumps(own[key]) for own in flat if key in own}) > 1)


def _trained_otherwise(rows: Sequence[Row]) -> list[str]:
    """A warning where training speeds were measured under different circumstances."""
    ways = {json.dumps(row.figures.trained_with, sort_keys=True) for row in rows if row.figures}
    if len(ways) < 2:
        return []
    return [
        "- Not all were trained under the same circumstances (`trained_with` in the JSON): training speeds differ by that too."
    ]


def _plain(row: Row) -> dict[str, Any]:
    return {
        "name": row.candidate.name,
        "problem": row.problem,
        "settings": settings(row.candidate.recipe),
        "figures": None if row.figures is None else asdict(row.figures),
    }
