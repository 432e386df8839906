"""Learning curves from logs as runs really leave them: cut off, resumed, without validation, with NaN."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import DataError
from nmt.plotting.curves import Curves, plot_learning_curve, read_curves


def train(update: int, perplexity: float) -> dict[str, Any]:
    return {"kind": "train", "epoch": 1, "update": update, "loss": 1.0, "perplexity": perplexity, "rate": 1e-3}


def valid(update: int, perplexity: float, bleu: float | None, best: bool) -> dict[str, Any]:
    return {"kind": "valid", "epoch": 1, "update": update, "perplexity": perplexity, "bleu": bleu, "best": best}


LOG = [
    train(50, 900.0),
    train(100, 300.0),
    valid(100, 400.0, 5.0, True),
    train(150, 100.0),
    valid(200, 150.0, 20.0, True),
    valid(300, 160.0, 18.0, False),
]


def write(path: Path, entries: Iterable[dict[str, Any]], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries) + tail, encoding="utf-8")
    return path


STAR = "fill: #e8710a"


# --- reading ----------------------------------------------------------------------------------------------------


READ = Curves(
    train={50: 900, 100: 300, 150: 100},
    valid={100: 400, 200: 150, 300: 160},
    scores={"BLEU": {100: 5, 200: 20, 300: 18}},
    best=200,
)


@pytest.mark.parametrize("tail", [b"", b'{"kind": "tra', b'{"kind": "train", "name": "\xc3', b"\n\n"])
def test_every_figure_is_read_but_of_a_line_cut_off_at_the_end(tmp_path: Path, tail: bytes) -> None:
    path = write(
        tmp_path / "m", [{"kind": "start", "seed": 1}, *LOG, train(160, float("nan")), train(170, float("inf"))]
    )
    path.write_bytes(path.read_bytes() + tail)
    assert read_curves(path) == READ


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"kind": "tra', r"m is damaged: line 2 is not a JSON object"),
        ('{"kind": "train", "perplexity": 2}', "line 2: an entry must have 'update', and its figures must be numbers"),
        ('{"kind": "valid", "update": 1, "bleu": "high"}', "line 2: an entry must have 'update'"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = write(tmp_path / "m", LOG[:1], f"{line}\n{json.dumps(LOG[1])}\n")
    with pytest.raises(DataError, match=complaint):
        read_curves(path)


def test_what_a_resumed_run_logged_again_replaces_the_first_time(tmp_path: Path) -> None:
    again = [train(75, 500.0), train(100, 310.0), valid(300, 140.0, 21.0, True)]
    curves = read_curves(write(tmp_path / "m", [*LOG, *again]))
    assert list(curves.train.items()) == [(50, 900), (75, 500), (100, 310), (150, 100)]
    assert curves.scores["BLEU"][300] == 21
    assert curves.best == 300


@pytest.mark.parametrize(("perplexity", "bleu", "best"), [(130.0, 24.0, False), (110.0, 26.0, True)])
def test_a_mean_of_checkpoints_counts_only_if_it_is_best(
    tmp_path: Path, perplexity: float, bleu: float, best: bool
) -> None:
    mean = valid(400, perplexity, bleu, best) | {"note": "mean"}
    curves = read_curves(write(tmp_path / "m", [*LOG, valid(400, 120.0, 25.0, True), mean]))
    found = curves.best, curves.valid[400], curves.scores["BLEU"][400]
    assert found == ((400, perplexity, bleu) if best else (400, 120, 25))


# --- drawing ----------------------------------------------------------------------------------------------------


def test_both_panels_with_the_best_marked(tmp_path: Path) -> None:
    for name, entries in (("best", LOG), ("none", [entry | {"best": False} for entry in LOG])):
        plot_learning_curve(write(tmp_path / "m", entries), tmp_path / f"{name}.svg")
    drawing = (tmp_path / "best.svg").read_text(encoding="utf-8")
    for text in ("perplexity", "BLEU", "update", "training", "validation", "best 20.00 at update 200", "500"):
        assert f">{text}</text>" in drawing
    assert STAR in drawing
    assert STAR not in (tmp_path / "none.svg").read_text(encoding="utf-8")
    plot_learning_curve(tmp_path / "m", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_every_score_has_a_panel_that_names_its_tokenizer(tmp_path: Path) -> None:
    signatures = {"signatures": {"bleu": "nrefs:1|case:mixed|tok:char|smooth:exp", "chrf": "nrefs:1|nc:6"}}
    log = [entry if entry["kind"] == "train" else {**entry, "chrf": entry["bleu"] + 9, **signatures} for entry in LOG]
    assert read_curves(write(tmp_path / "m", log)).scores == {
        "BLEU (char)": {100: 5, 200: 20, 300: 18},
        "chrF": {100: 14, 200: 29, 300: 27},
    }
    plot_learning_curve(tmp_path / "m", tmp_path / "a.svg")
    drawing = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for text in ("BLEU (char)", "chrF", "best 20.00 at update 200", "best 29.00 at update 200"):
        assert f">{text}</text>" in drawing
    entries = [train(50, 90.0), valid(100, 40.0, None, True), valid(200, 30.0, None, True)]  # perplexity alone
    plot_learning_curve(write(tmp_path / "m", entries), tmp_path / "a.svg")
    assert "best 30.00 at update 200" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_there_must_be_something_to_draw(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to draw"):
        plot_learning_curve(write(tmp_path / "m", []), tmp_path / "a.png")
