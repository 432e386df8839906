"""The table of a comparison, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from nmt import __version__
from nmt.comparison.measure import Figures, read_translations, tokenizer_of
from nmt.comparison.plan import Candidate, settings
from nmt.data.corpus import ParallelCorpus
from nmt.evaluation import metrics
from nmt.recipe import Recipe
from nmt.runtime.wording import counted

NONE = "–"
_FAULT_MARK = " †"
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
"""Settings that have columns of their own (`describe`)."""


@dataclass(frozen=True)
class Row:
    """One row of the table: a recipe with its figures, or the problem for which it has none."""

    candidate: Candidate
    figures: Figures | None
    problem: str | None = None
    p_values: Mapping[str, float] = field(default_factory=dict)
    """Of the difference from the baseline, by metric."""

    @property
    def fault(self) -> str | None:
        """Why its translations are worthless, if they are."""
        return self.figures.fault if self.figures else None

    @property
    def title(self) -> str:
        """The model's name, with a mark if its translations are worthless."""
        return self.candidate.name + (_FAULT_MARK if self.fault else "")


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
                "name": row.candidate.name,
                "problem": row.problem,
                "settings": settings(row.candidate.recipe),
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
            blocks += [self._figures(), self._legend(), "## BLEU by length of the source", _by_length(measured)]
        blocks += [f"**{row.candidate.name}** has no figures: {row.problem}" for row in self.rows if row.problem]
        return "\n\n".join(block for block in blocks if block) + "\n"

    def _circumstances(self) -> str:
        """The list above the table: text, budget, machine, command."""
        recipes = [row.candidate.recipe for row in self.rows]
        described = [describe(recipe) for recipe in recipes]
        shared = [f"{key} {text}" for key, text in described[0].items() if {item[key] for item in described} == {text}]
        trainings = {json.dumps(row.figures.trained_with, sort_keys=True) for row in self.rows if row.figures}
        aligned = f"; alignments against {self.aligned}" if self.aligned else ""
        lines = [f"Text: {self.text}{aligned}.", f"Budget: {_budget(recipes)}."]
        if shared:
            lines.append(f"All: {', '.join(shared)}.")
        if others := _other_differences(recipes):
            lines.append(f"The recipes also differ in {others}.")
        lines.append(f"Machine: {self.machine}; nmt {__version__}.")
        if len(trainings) > 1:
            otherwise = "Not all were trained under the same circumstances (`trained_with` in the JSON)"
            lines.append(f"{otherwise}: training speeds differ by that too.")
        return "\n".join(f"- {line}" for line in [*lines, f"Command: `{self.command}`"])

    def _figures(self) -> str:
        columns = [TableColumn("model", [row.title for row in self.rows], "left")]
        described = [describe(row.candidate.recipe) for row in self.rows]
        varied = [key for key in described[0] if len({item[key] for item in described}) > 1]
        columns += [TableColumn(key, [item[key] for item in described], "left") for key in varied]
        vocabularies = {row.figures.vocabulary for row in self.rows if row.figures}
        for figure in _FIGURE_COLUMNS:
            if any(figure.value(row.figures) is not None for row in self.rows if row.figures):
                is_comparable = figure.name != "perplexity" or len(vocabularies) == 1
                columns.append(_column(figure, self.rows, best=figure.better if is_comparable else None))
        return markdown_table(columns)

    def _legend(self) -> str:
        """Footnotes of worthless models, the meaning of the columns, and sacreBLEU's signatures."""
        figures = next(row.figures for row in self.rows if row.figures)
        faults = [f"{_FAULT_MARK.strip()} {row.candidate.name}: {row.fault}." for row in self.rows if row.fault]
        sentences = [
            "Bold is a strict best.",
            "Perplexity is that of the references, per target token; it compares only between models with the same vocabulary.",
            "BLEU and chrF are cased and detokenized, ± half a 95 % interval by bootstrap.",
        ]
        if self.baseline:
            sentences.append(
                f"`*` marks a difference from {self.baseline} with p < {_SIGNIFICANT} (paired approximate randomization)."
            )
        if self.aligned:
            sentences.append(
                "AER is the alignment error rate of the attention's links, posterior AER that of the links given each target word."
            )
        sentences.append(
            "Entropy is that of a target word's attention over source words, in nats. Training speed is in target tokens "
            "per second; decoding speed is that of the recipe's beam search over the whole text, the fastest of up to three passes."
        )
        signatures = "  \n".join(f"{name}: `{signature}`" for name, signature in figures.signatures.items())
        return "\n\n".join(filter(None, ["  \n".join(faults), " ".join(sentences), signatures]))


def with_p_values(rows: Sequence[Row], baseline: str, text: ParallelCorpus) -> list[Row]:
    """Add p-values against the baseline to the rows; unchanged if the baseline has no figures."""
    systems = {row.candidate.name: read_translations(row.candidate.translations) for row in rows if row.figures}
    if baseline not in systems or len(systems) < 2:
        return list(rows)
    ordered = {baseline: systems.pop(baseline), **systems}
    tokenizer = next(tokenizer_of(row.candidate.recipe, text) for row in rows if row.candidate.name == baseline)
    comparisons = metrics.compare(ordered, list(text.target), metrics=("bleu", "chrf"), tokenize=tokenizer)
    values: dict[str, dict[str, float]] = {name: {} for name in ordered}
    for item in comparisons:
        if item.p_value is not None:
            values[item.system][item.score.metric] = item.p_value
    return [replace(row, p_values=values.get(row.candidate.name, {})) for row in rows]


# --- columns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableColumn:
    """A column of a Markdown table."""

    heading: str
    cells: Sequence[str]
    side: Literal["left", "right"] = "right"


@dataclass(frozen=True)
class _FigureColumn:
    """A figure of the table: its value, its format, and whether large or small values are better."""

    name: str
    value: Callable[[Figures], float | None]
    form: str
    better: Callable[[Sequence[float]], float] | None = None
    margin: Callable[[Figures], float | None] = lambda _: None
    metric: str = ""


_FIGURE_COLUMNS = (
    _FigureColumn("parameters", lambda own: own.parameters / 1e6, "{:.2f} M"),
    _FigureColumn("perplexity", lambda own: own.perplexity, "{:.2f}", min),
    _FigureColumn("BLEU", lambda own: own.bleu, "{:.2f}", max, lambda own: own.bleu_margin, "BLEU"),
    _FigureColumn("chrF", lambda own: own.chrf, "{:.2f}", max, lambda own: own.chrf_margin, "chrF2"),
    _FigureColumn("AER", lambda own: None if own.aer is None else 100 * own.aer, "{:.1f} %", min),
    _FigureColumn(
        "posterior AER", lambda own: None if own.posterior_aer is None else 100 * own.posterior_aer, "{:.1f} %", min
    ),
    _FigureColumn("entropy", lambda own: own.entropy, "{:.2f}"),
    _FigureColumn("epochs", lambda own: own.epochs, "{:.0f}"),
    _FigureColumn("training", lambda own: own.training_seconds / 60, "{:.1f} min"),
    _FigureColumn("tokens/s", lambda own: own.tokens_per_second, "{:,.0f}", max),
    _FigureColumn("sentences/s", lambda own: own.sentences_per_second, "{:,.1f}", max),
)


def _column(
    figure: _FigureColumn, rows: Sequence[Row], *, best: Callable[[Sequence[float]], float] | None
) -> TableColumn:
    values = [None if row.figures is None else figure.value(row.figures) for row in rows]
    texts = [NONE if value is None else figure.form.format(value) for value in values]
    cells = _with_best(texts, values, rows, best)
    for number, row in enumerate(rows):
        margin = None if row.figures is None else figure.margin(row.figures)
        cells[number] += "" if margin is None else f" ± {margin:.2f}"
        cells[number] += "*" if row.p_values.get(figure.metric, 1.0) < _SIGNIFICANT else ""
    return TableColumn(figure.name, cells)


def _with_best(
    cells: Sequence[str],
    values: Sequence[float | None],
    rows: Sequence[Row],
    best: Callable[[Sequence[float]], float] | None,
) -> list[str]:
    """Make the best cell bold if it is a strict best among at least two. Worthless translations do not take part."""
    rivals = {
        place: value
        for place, (value, row) in enumerate(zip(values, rows, strict=True))
        if value is not None and row.fault is None
    }
    if best is None or len(rivals) < 2:
        return list(cells)
    winner = cells[next(place for place, value in rivals.items() if value == best(list(rivals.values())))]
    is_alone = sum(cells[place] == winner for place in rivals) == 1
    return [
        f"**{cell}**" if is_alone and place in rivals and cell == winner else cell for place, cell in enumerate(cells)
    ]


def _by_length(rows: Sequence[Row]) -> str:
    """The table of BLEU by source length."""
    figures = [row.figures for row in rows if row.figures is not None]
    columns = [TableColumn("model", [row.title for row in rows], "left")]
    for number, bucket in enumerate(figures[0].by_length):
        texts = [f"{own.by_length[number].bleu:.1f}" for own in figures]
        cells = _with_best(texts, [own.by_length[number].bleu for own in figures], rows, max)
        columns.append(TableColumn(f"{bucket} ({bucket.sentences:,})", cells))
    return markdown_table(columns) + "\n\nIn parentheses the number of sentences."


def markdown_table(columns: Sequence[TableColumn]) -> str:
    """Format a Markdown table, with columns aligned in the source text too."""
    widths = [max(3, len(column.heading), *map(len, column.cells)) for column in columns]
    rules = [
        "-" * width if column.side == "left" else "-" * (width - 1) + ":"
        for column, width in zip(columns, widths, strict=True)
    ]
    lines = [[column.heading for column in columns], rules, *zip(*(column.cells for column in columns), strict=True)]
    pads = [str.ljust if column.side == "left" else str.rjust for column in columns]
    padded = ([pad(*item) for pad, *item in zip(pads, line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)


# --- descriptions of the recipes --------------------------------------------------------------------------------


def describe(recipe: Recipe) -> dict[str, str]:
    """Score, window and order of a recipe's attention, as the table shows them."""
    own = settings(recipe)
    if recipe.model.kind == "transformer":
        return {"score": f"scaled dot, {recipe.model.heads} heads", "window": "global", "order": "transformer"}
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
    """Epochs, updates and batch size, as ranges if they differ."""
    training = [recipe.training for recipe in recipes]
    parts = [_span([own.epochs for own in training], "epoch")]
    if limits := [own.updates for own in training if own.updates is not None]:
        parts.append(f"at most {_span(limits, 'update')}")
    by_tokens = [own.batch_tokens * own.accumulate for own in training if own.batch_sentences is None]
    by_pairs = [own.batch_sentences * own.accumulate for own in training if own.batch_sentences is not None]
    sizes = ((by_tokens, "target token"), (by_pairs, "sentence pair"))
    parts.append("batches of " + " or ".join(_span(counts, noun) for counts, noun in sizes if counts))
    return ", ".join(parts)


def _span(values: Sequence[int], noun: str) -> str:
    low, high = min(values), max(values)
    return counted(low, noun) if low == high else f"{low:,} to {counted(high, noun)}"


def _other_differences(recipes: Sequence[Recipe]) -> str:
    """The names of other settings in which the recipes differ."""
    flat = [settings(recipe) for recipe in recipes]
    keys = dict.fromkeys(key for own in flat for key in own if not key.startswith(_DESCRIBED))
    return ", ".join(key for key in keys if len({json.dumps(own[key]) for own in flat if key in own}) > 1)
