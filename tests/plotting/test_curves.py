"""Learning curves from logs as runs really leave them: cut off, resumed, without validation, with NaN."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nmt.errors import DataError, UsageError
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


def is_orange(path: Path) -> bool:
    """Whether the star of the best validation is in the picture."""
    with Image.open(path) as image:
        red, green, blue = np.moveaxis(np.asarray(image.convert("RGB")).astype(int), -1, 0)
    return bool(((red > 200) & (green < 150) & (blue < 60)).sum() > 50)


# --- reading ----------------------------------------------------------------------------------------------------


def test_every_figure_is_read(tmp_path: Path) -> None:
    assert read_curves(write(tmp_path / "m", LOG)) == Curves(
        train={50: 900, 100: 300, 150: 100},
        valid={100: 400, 200: 150, 300: 160},
        scores={"BLEU": {100: 5, 200: 20, 300: 18}},
        best=200,
    )


def test_a_line_cut_off_at_the_end_is_passed_over(tmp_path: Path) -> None:
    whole = read_curves(write(tmp_path / "m", LOG))
    text = (tmp_path / "m").read_bytes()
    for tail in (b'{"kind": "tra', b'{"kind": "train", "name": "\xc3', b"\n\n"):  # \xc3: half a character
        (tmp_path / "m").write_bytes(text + tail)
        assert read_curves(tmp_path / "m") == whole


def test_a_broken_line_elsewhere_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "m", LOG[:1], '{"kind": "tra\n' + json.dumps(LOG[1]) + "\n")
    with pytest.raises(DataError, match=r"m is damaged: line 2 is not a JSON object"):
        read_curves(path)


@pytest.mark.parametrize(
    "line", ['{"kind": "train", "perplexity": 2}', '{"kind": "valid", "update": 1, "bleu": "high"}']
)
def test_an_entry_that_makes_no_sense_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(DataError, match="line 1: an entry must have 'update', and its figures must be numbers"):
        read_curves(write(tmp_path / "m", [], line + "\n"))


def test_what_a_resumed_run_logged_again_replaces_the_first_time(tmp_path: Path) -> None:
    curves = read_curves(
        write(tmp_path / "m", [*LOG, train(75, 500.0), train(100, 310.0), valid(300, 140.0, 21.0, True)])
    )
    assert list(curves.train.items()) == [(50, 900), (75, 500), (100, 310), (150, 100)]
    assert curves.scores["BLEU"][300] == 21
    assert curves.best == 300


def test_a_mean_of_checkpoints_counts_only_if_it_is_best(tmp_path: Path) -> None:
    last = valid(400, 120.0, 25.0, True)
    worse = read_curves(write(tmp_path / "m", [*LOG, last, valid(400, 130.0, 24.0, False) | {"note": "mean"}]))
    assert (worse.best, worse.valid[400], worse.scores["BLEU"][400]) == (400, 120, 25)
    better = read_curves(write(tmp_path / "m", [*LOG, last, valid(400, 110.0, 26.0, True) | {"note": "mean"}]))
    assert (better.best, better.valid[400], better.scores["BLEU"][400]) == (400, 110, 26)


def test_other_lines_and_values_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    entries = [{"kind": "start", "seed": 1}, train(1, float("nan")), train(2, float("inf")), train(3, 7.0)]
    assert read_curves(write(tmp_path / "m", entries)) == Curves(train={3: 7.0})


# --- drawing ----------------------------------------------------------------------------------------------------


def test_both_panels_with_the_best_marked(tmp_path: Path) -> None:
    plot_learning_curve(write(tmp_path / "m", LOG), tmp_path / "a.png")
    plot_learning_curve(write(tmp_path / "m", [entry | {"best": False} for entry in LOG]), tmp_path / "b.png")
    assert is_orange(tmp_path / "a.png")
    assert not is_orange(tmp_path / "b.png")
    plot_learning_curve(write(tmp_path / "m", LOG), tmp_path / "a.svg")
    drawing = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for text in ("perplexity", "BLEU", "update", "training", "validation", "best 20.00 at update 200", "500"):
        assert f">{text}</text>" in drawing


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


def test_validation_by_perplexity_alone_marks_its_best(tmp_path: Path) -> None:
    entries = [train(50, 90.0), valid(100, 40.0, None, True), valid(200, 30.0, None, True)]
    plot_learning_curve(write(tmp_path / "m", entries), tmp_path / "a.svg")
    assert "best 30.00 at update 200" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_nothing_to_draw_and_nowhere_to_draw_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to draw"):
        plot_learning_curve(write(tmp_path / "m", []), tmp_path / "a.png")
    with pytest.raises(DataError, match="No such file"):
        plot_learning_curve(tmp_path / "none", tmp_path / "a.png")
    with pytest.raises(UsageError, match=r"a\.gif"):
        plot_learning_curve(write(tmp_path / "m", LOG), tmp_path / "a.gif")
    with pytest.raises(DataError, match="Cannot write"):
        plot_learning_curve(write(tmp_path / "m", LOG), tmp_path / "m" / "a.png")
