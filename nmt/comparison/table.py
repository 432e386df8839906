"""The table of a comparison, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Literal

from nmt import __version__
from nmt.comparison.evaluation import tokenizer_of
from nmt.comparison.measure import Figures
from nmt.comparison.plan import Candidate
from nmt.data.corpus import ParallelCorpus
from nmt.evaluation import metrics
from nmt.recipe import flat_settings
from nmt.runtime.wording import counted

NONE = "–"
_SIGNIFICANT = 0.05
_LEGEND = f"""\
Bold is a strict best, of BLEU and chrF only if it differs from all others by more than their intervals; `*` marks a difference
from the baseline with p < {_SIGNIFICANT} (paired approximate randomization).
Perplexity is that of the references, per target token; it compares only between models with the same vocabulary. BLEU and chrF
are cased and detokenized, ± half a 95 % interval by bootstrap. AER is the alignment error rate of the attention's links,
posterior AER that of the links given each target word. Entropy is that of a target word's attention over source words, in nats;
zeros are the share of weights between words that are exactly 0.
Training speed is in target tokens per second; decoding speed is that of the recipe's search over the whole text."""


@dataclass(frozen=True)
class Row:
    """One row of the table: a recipe with its figures, or the problem for which it has none."""

    candidate: Candidate
    figures: Figures | None
    problem: str | None = None
    p_values: Mapping[str, float] = field(default_factory=dict)
    """Of the difference from the baseline, by metric."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.candidate.name

    @property
    def described(self) -> dict[str, str]:
        """Attention and budget in words: columns where rows differ, else one line for all."""
        recipe, training = self.candidate.recipe, self.candidate.recipe.training
        updates = NONE if training.updates is None else f"{training.updates:,}"
        return {**recipe.model.attention_in_words, "most epochs": f"{training.epochs:,}", "most updates": updates}


@dataclass(frozen=True)
class TableColumn:
    """A column of a Markdown table."""

    heading: str
    cells: Sequence[str]
    side: Literal["left", "right"] = "right"


@dataclass(frozen=True)
class Table:
    """The results of a comparison and, in words, how they were obtained: on which text, with gold links of which one, where."""

    rows: Sequence[Row]
    text: str
    aligned: str | None
    machine: str
    command: str
    baseline: str | None = None
    """The name of the row that others are tested against."""

    def json(self) -> str:
        """Everything as one JSON object."""
        rows = [
            {
                "name": row.name,
                "problem": row.problem,
                "settings": flat_settings(row.candidate.recipe),
                "figures": None if row.figures is None else asdict(row.figures),
                "p_values": dict(row.p_values),
            }
            for row in self.rows
        ]
        about = {"command": self.command, "text": self.text, "aligned": self.aligned, "machine": self.machine}
        content = {"nmt": __version__, **about, "baseline": self.baseline, "rows": rows}
        return json.dumps(content, ensure_ascii=False, indent=2) + "\n"

    def markdown(self) -> str:
        """The tables of figures and of BLEU by length, with their circumstances and a legend."""
        measured = [row for row in self.rows if row.figures is not None]
        blocks = [f"# {counted(len(self.rows), 'recipe')} under one budget", self._circumstances()]
        if measured:
            signatures = measured[0].figures.signatures.items() if measured[0].figures else ()
            blocks += [
                self._figures(),
                _LEGEND,
                "  \n".join(f"{name}: `{signature}`" for name, signature in signatures),
            ]
            blocks += ["## BLEU by length of the source", _by_length(measured)]
        blocks += [f"**{row.name}** has no figures: {row.problem}" for row in self.rows if row.problem]
        return "\n\n".join(blocks) + "\n"

    def _circumstances(self) -> str:
        """The list above the table: text, what the recipes share and differ in, machine, command."""
        first, *others = [row.described for row in self.rows]
        shared = [f"{key} {text}" for key, text in first.items() if all(other[key] == text for other in others)]
        aligned = f"; alignments against {self.aligned}" if self.aligned else ""
        lines = [f"Text: {self.text}{aligned}.", f"All: {', '.join(shared)}."]
        flat = [flat_settings(row.candidate.recipe) for row in self.rows]
        keys = dict.fromkeys(chain(*flat))
        if different := [key for key in keys if len({json.dumps(values.get(key)) for values in flat}) > 1]:
            lines.append(f"The recipes differ in {', '.join(different)}.")
        if self.baseline:
            lines.append(f"Baseline: {self.baseline}.")
        lines += [f"Machine: {self.machine}; nmt {__version__}.", f"Command: `{self.command}`"]
        return "\n".join(f"- {line}" for line in lines)

    def _figures(self) -> str:
        """The table of figures, without columns that are alike or empty for all."""
        columns = [TableColumn("model", [row.name for row in self.rows], "left")]
        for key in self.rows[0].described:
            cells = [row.described[key] for row in self.rows]
            if len(set(cells)) > 1:
                columns.append(TableColumn(key, cells, "left"))
        vocabularies = {row.figures.vocabulary for row in self.rows if row.figures}
        for figure in _FIGURE_COLUMNS:
            if any(figure.value(row.figures) is not None for row in self.rows if row.figures):
                is_comparable = figure.name != "perplexity" or len(vocabularies) == 1
                columns.append(figure.column(self.rows, best=figure.better if is_comparable else None))
        return markdown_table(columns)


def with_p_values(rows: Sequence[Row], baseline: str, text: ParallelCorpus) -> list[Row]:
    """Add p-values against the baseline to the rows; unchanged if the baseline has no figures."""
    systems = {
        row.name: row.candidate.translations.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        for row in sorted(rows, key=lambda row: row.name != baseline)  # the first is the baseline
        if row.figures
    }
    if baseline not in systems or len(systems) < 2:
        return list(rows)
    tokenizer = next(tokenizer_of(row.candidate.recipe, text) for row in rows if row.name == baseline)
    values: dict[str, dict[str, float]] = {name: {} for name in systems}
    for compared in metrics.compare(systems, list(text.target), metrics=("bleu", "chrf"), tokenize=tokenizer):
        if compared.p_value is not None:
            values[compared.system][compared.score.metric] = compared.p_value
    return [replace(row, p_values=values.get(row.name, {})) for row in rows]


# --- columns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FigureColumn:
    """A figure of the table: its value, its format, and whether large or small values are better."""

    name: str
    value: Callable[[Figures], float | None]
    form: str
    better: Callable[[Sequence[float]], float] | None = None
    margin: Callable[[Figures], float | None] = lambda _: None
    metric: str = ""

    def column(self, rows: Sequence[Row], best: Callable[[Sequence[float]], float] | None) -> TableColumn:
        """The column: margins, marks of significance, and in bold a best that no interval has in common with another row."""
        values = [None if row.figures is None else self.value(row.figures) for row in rows]
        margins = [None if row.figures is None else self.margin(row.figures) for row in rows]
        cells = [NONE if value is None else self.form.format(value) for value in values]
        known = {number: value for number, value in enumerate(values) if value is not None}
        if best is not None and len(known) > 1:
            top = best(list(known.values()))
            winner = values.index(top)
            rivals = known.keys() - {winner}
            is_clear = all(abs(top - known[rival]) > max(margins[rival] or 0, margins[winner] or 0) for rival in rivals)
            if is_clear and cells.count(cells[winner]) == 1:
                cells[winner] = f"**{cells[winner]}**"
        for number, (row, margin) in enumerate(zip(rows, margins, strict=True)):
            cells[number] += "" if margin is None else f" ± {margin:.2f}"
            cells[number] += "*" if row.p_values.get(self.metric, 1.0) < _SIGNIFICANT else ""
        return TableColumn(self.name, cells)


_FIGURE_COLUMNS = (
    _FigureColumn("parameters", lambda figures: figures.parameters / 1e6, "{:.2f} M"),
    _FigureColumn("perplexity", lambda figures: figures.perplexity, "{:.2f}", min),
    _FigureColumn("BLEU", lambda figures: figures.bleu, "{:.2f}", max, lambda figures: figures.bleu_margin, "BLEU"),
    _FigureColumn("chrF", lambda figures: figures.chrf, "{:.2f}", max, lambda figures: figures.chrf_margin, "chrF2"),
    _FigureColumn("AER", lambda figures: None if figures.aer is None else 100 * figures.aer, "{:.1f} %", min),
    _FigureColumn(
        "posterior AER",
        lambda figures: None if figures.posterior_aer is None else 100 * figures.posterior_aer,
        "{:.1f} %",
        min,
    ),
    _FigureColumn("entropy", lambda figures: figures.entropy, "{:.2f}"),
    _FigureColumn("zeros", lambda figures: None if figures.zeros is None else 100 * figures.zeros, "{:.1f} %"),
    _FigureColumn("epochs", lambda figures: figures.epochs, "{:.0f}"),
    _FigureColumn("training", lambda figures: figures.training_seconds / 60, "{:.1f} min"),
    _FigureColumn("tokens/s", lambda figures: figures.tokens_per_second, "{:,.0f}", max),
    _FigureColumn("sentences/s", lambda figures: figures.sentences_per_second, "{:,.1f}", max),
)


def _by_length(rows: Sequence[Row]) -> str:
    """The table of BLEU by source length."""
    figures = [row.figures for row in rows if row.figures is not None]
    columns = [TableColumn("model", [row.name for row in rows], "left")]
    for number, bucket in enumerate(figures[0].by_length):
        cells = [f"{model_figures.by_length[number].bleu:.1f}" for model_figures in figures]
        columns.append(TableColumn(f"{bucket} ({bucket.sentences:,})", cells))
    return markdown_table(columns) + "\n\nIn parentheses the number of sentences."


def markdown_table(columns: Sequence[TableColumn]) -> str:
    """Format a Markdown table, with columns aligned in the source text too."""
    aligned = []
    for column in columns:
        width = max(3, len(column.heading), *map(len, column.cells))
        pad = str.ljust if column.side == "left" else str.rjust
        rule = "-" * width if column.side == "left" else "-" * (width - 1) + ":"
        aligned.append([pad(column.heading, width), rule, *(pad(cell, width) for cell in column.cells)])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*aligned, strict=True))
