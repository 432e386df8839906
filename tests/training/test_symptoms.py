"""A run that overfits, diverges, or translates worse than a copy of the source says so once, and an ordinary one does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from nmt.training.advice import Symptoms
from nmt.training.trainer import train
from tests.training.toy import recipe, write_reversal


def sentences(curve: list[tuple[float, float]], *, chrf: float = 99.0, warmup: int = 0) -> list[str]:
    """What is said of a curve of the perplexities of validation and training, a validation every 10 updates."""
    state, lines = Symptoms({"chrf": 15.4, "bleu": 1.34}, warmup).state_dict(), list[str]()
    for number, (valid, trained) in enumerate(curve, start=1):
        symptoms = Symptoms({"chrf": 15.4, "bleu": 1.34}, warmup)
        symptoms.load_state_dict(json.loads(json.dumps(state)))  # as in a run that is always resumed
        figures = {"perplexity": valid, "train_perplexity": trained, "update": 10 * number, "chrf": chrf}
        lines += symptoms.of_validation(figures, improved=True)
        state = symptoms.state_dict()
    return lines


OVERFITTING = [
    (200.0, 300.0),
    (94.0, 66.6),
    (102.0, 40.0),
    (115.0, 12.0),
    (150.0, 8.0),
    (170.0, 6.0),
    (190.0, 5.0),
    (263.0, 4.0),
]


def test_overfitting_is_said_once_with_both_perplexities_and_what_helps() -> None:
    [sentence] = sentences(OVERFITTING)
    assert sentence == (
        "Warning: the model overfits. Since update 20 the perplexity of validation has risen from 94.00 to 170.00, while that of "
        "training (with dropout, without label smoothing) has fallen from 66.60 to 6.00. More dropout, fewer updates or more text, "
        "such as back-translation, would help."
    )


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(
            [(30.0, 60.0), (12.0, 20.0), (8.0, 9.0), (5.7, 6.0), (5.9, 5.0), (6.2, 4.5), (6.6, 4.2)], id="a little"
        ),
        pytest.param(
            [(30.0, 60.0), (12.0, 20.0), (16.0, 19.0), (15.0, 18.0), (11.0, 17.0), (14.0, 16.0)], id="not in a row"
        ),
        pytest.param([(30.0, 60.0), (12.0, 20.0), (16.0, 21.0), (17.0, 22.0), (18.0, 23.0)], id="training rises too"),
    ],
)
def test_an_ordinary_curve_is_no_overfitting(curve: list[tuple[float, float]]) -> None:
    assert sentences(curve) == []


def test_an_explosion_is_divergence_only_where_training_does_not_go_on_well() -> None:
    [diverged] = sentences([(30.0, 60.0), (12.0, 20.0), (130.0, 100.0), (900.0, 500.0)])
    assert diverged.startswith("Training diverged: perplexity is above 10 times the best.")
    [overfitted] = sentences([(30.0, 60.0), (12.0, 20.0), (130.0, 9.0), (140.0, 8.0), (150.0, 7.0)])
    assert "overfits" in overfitted


def test_a_score_below_that_of_the_source_is_said_at_the_third_validation_after_the_warm_up() -> None:
    flat = [(9.0, 9.0)] * 6
    said = [len(sentences(flat[:count], chrf=9.1, warmup=20)) for count in range(1, 7)]
    assert said == [0, 0, 0, 1, 1, 1]
    assert sentences(flat, chrf=9.1)[0].startswith(
        "Warning: chrF is 9.10 up to now, but 15.40 (BLEU 1.34) if the source is left untranslated"
    )
    assert sentences(flat, chrf=15.4) == []


@pytest.mark.parametrize("copying", [{}, {"chrf": 99.0}])
def test_a_run_says_at_its_end_that_a_copy_scores_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], copying: Mapping[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5)
    monkeypatch.setattr("nmt.training.validation.Validator.copying", copying)
    train(recipe(tmp_path, training={"epochs": 1}), tmp_path / "run", device="cpu")
    assert ("if the source is left untranslated" in capsys.readouterr().err) == bool(copying)
    [record] = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert record["train_perplexity"] > 1


def test_the_scores_of_a_copy_are_those_of_the_source_as_a_translation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5)
    for name in ("train", "valid"):  # copying is right
        (tmp_path / f"{name}.tgt").write_bytes((tmp_path / f"{name}.src").read_bytes())
    train(recipe(tmp_path, training={"epochs": 1}), tmp_path / "run", device="cpu")
    assert "but 100.00 (BLEU 100.00) if the source" in capsys.readouterr().err
