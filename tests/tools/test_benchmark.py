"""How the benchmark reads logs and reports figures. Nothing is timed here."""

import json
import runpy
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt.fast.int8 import can_multiply_int8
from nmt.fast.linear import can_pack
from nmt.recipe import parse_recipe
from nmt.training.log import METRICS
from tools.benchmarks import joey, onmt, report, training, worker
from tools.benchmarks.measuring import MeasurementError, Spread, work
from tools.benchmarks.rates import Rate, section
from tools.benchmarks.session import PRECISIONS, QUICK, Section, Session
from tools.benchmarks.shared_model import VARIANTS

ROOT = Path(__file__).resolve().parents[2]
_STEP = "[2026-01-02 03:04:09,100 INFO] Step %d/   20; acc: 2.1; ppl: 7811.3; xent: 9.0; lr: 0.00100; sents:     700; bsz: %s tok/s;"
ONMT_LOG = f"""\
[2026-01-02 03:04:05,678 INFO] Starting training on CPU, could be very slow
{_STEP % (5, "1800/2000/140; 2400/2500")}      3 sec;
{_STEP % (10, "1900/2200/144; 2300/2700")}      6 sec;
"""
_WINDOW = "- INFO - joeynmt.training - Epoch   1, Step: %8d, Batch Loss:     7.123456, Batch Acc: 0.010000, Tokens per Sec: %8d"
JOEY_LOG = f"""\
2026-01-02 03:04:05,100 - INFO - joeynmt.training - EPOCH 1
2026-01-02 03:04:09,100 {_WINDOW % (5, 1000)}, Lr: 0.001000
2026-01-02 03:04:11,100 {_WINDOW % (10, 1200)}, Lr: 0.001000
"""


def rate(system: str, kind: str, median: float, **notes: float) -> Rate:
    return Rate(
        system, f"{kind} of {system}", kind, "fp32", Spread(median, median - 1, median + 1, 3), 2e9, 512.0, notes
    )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = Session(tmp_path, QUICK, threads=1, device="cpu", batch_tokens=4096, peers=[])
    session.__dict__["machine"] = {
        "processor": "a processor",
        "threads": 1,
        "torch": "2.0",
        "auto": "bf16",
        "kernels": "native",
        "fp32": Spread(1e12, 0.9e12, 1.1e12, 3),
        "bf16": Spread(4e12, 3e12, 5e12, 3),
    }
    return session


# --- logs -------------------------------------------------------------------------------------------------------


def test_the_logs_of_peers_tell_speeds_and_batches_in_target_tokens() -> None:
    assert onmt.windows(ONMT_LOG) == ([2500.0, 2700.0], 2100.0)
    assert onmt.seconds("[INFO] PRED SCORE: -0.3\n[INFO] Total translation time (s): 12.5\n[INFO] Average") == 12.5
    # 2 seconds at 1,200 per second are 2,400 tokens in 5 updates
    assert joey.windows(JOEY_LOG) == ([1000.0, 1200.0], 480.0)
    assert joey.seconds("INFO - joeynmt.prediction - Generation took 23.4567[sec].") == 23.4567


@pytest.mark.parametrize("parse", [onmt.windows, onmt.seconds, joey.windows, joey.seconds])
def test_a_log_without_figures_is_quoted(parse: Any) -> None:
    with pytest.raises(MeasurementError, match="KeyError: 'spam'"):
        parse("Traceback (most recent call last):\nKeyError: 'spam'\n")


def test_nmt_logs_what_the_benchmark_reads(tmp_path: Path) -> None:
    from nmt.training.log import Log

    record = {"epoch": 1, "update": 5, "loss": 1.0, "perplexity": 2.0, "tokens_per_second": 100.0}
    Log(tmp_path, quiet=True).trained({**record, "rate": 1e-3, "seconds": 10.0, "seconds_left": 2.0})
    assert training.windows((tmp_path / METRICS).read_text()) == ([100.0], 200.0)


# --- the shared model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_operations_are_those_of_the_weights_that_are_multiplied(variant: Any, tmp_path: Path) -> None:
    from nmt.model.build import build_model

    tree = yaml.safe_load(
        variant.recipe(tmp_path, precision="fp32", updates=20, batch_tokens=4096).replace("1e-3", "0.001")
    )
    model = build_model(parse_recipe(tree, "recipe").model, source_size=700, target_size=700)
    products = sum(
        weight.numel()
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and len(weight) > 1 and "embedding" not in name and "bridge" not in name
    )
    assert variant.source_products + variant.target_products(700) == products


# --- the report -------------------------------------------------------------------------------------------------


def test_the_table_of_rates_has_fractions_ratios_and_notes(session: Session) -> None:
    rates = [
        replace(rate("nmt", "a", 100.0, BLEU=30.5), precision="bf16"),
        rate("Other", "a", 40.0),
        rate("nmt", "b", 7.0),
    ]
    table = section(session, rates, name="n", title="T", text="Text.", unit="tokens/s")
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    assert rows[0]["of ceiling"] == "5.0%"  # 100 x 2 GFLOP of 4 TFLOP/s
    assert rows[0]["x Other"] == "2.50 x"
    assert rows[0]["BLEU"] == "30.5"
    assert rows[0]["min to max"] == "99 to 101"
    assert rows[1]["of ceiling"] == "8.0%"
    assert rows[1]["x Other"] == rows[1]["BLEU"] == rows[2]["x Other"] == ""


def test_the_report_names_machine_sections_and_failures(session: Session) -> None:
    session.attempt("a try", work, "no-task", threads=1, what="A task")
    figures_section = Section(
        "n", "Title", "What it is.", ["a", "b"], [["1", "x|y"]], [{"a": Spread(1.0, 0.0, 2.0, 3)}]
    )
    text = report.markdown(session, [figures_section])
    assert "a processor, 1 threads, torch 2.0, kernels: native; precision auto is bf16" in text
    assert "| bf16 | 4 | 3 to 5 |" in text
    assert "| int8 |" not in text  # a machine may be without
    assert "## Title\n\nWhat it is.\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |\n" in text
    assert "## Failed measurements\n\n* A task: " in text
    figures = json.loads(report.as_json(session, [figures_section]))
    assert figures["n"] == [{"a": {"median": 1.0, "low": 0.0, "high": 2.0, "windows": 3}}]
    assert figures["machine"]["fp32"]["median"] == 1e12
    assert len(figures["failures"]) == 1


def test_measurements_are_interleaved_and_one_that_fails_is_left_out(session: Session) -> None:
    order: list[str] = []

    def measure(name: str) -> str:
        order.append(name)
        if name == "bad":
            raise MeasurementError("It did not work.")
        return f"{name} {len(order)}"

    session.effort = replace(session.effort, windows=3)
    results = session.interleaved([(name, partial(measure, name)) for name in ("one", "bad", "two")])
    assert order == ["one", "bad", "two", "one", "two", "one", "two"]
    assert results == [["one 1", "one 4", "one 6"], [], ["two 3", "two 5", "two 7"]]
    assert session.failures == ["It did not work."]


def test_a_ceiling_is_measured_for_every_precision_of_the_processor() -> None:
    answer = worker.ceiling("cpu", 16, 3)
    precisions = [precision for precision in PRECISIONS if precision in answer]
    has_bf16 = can_pack(torch.ones(1, 1), torch.bfloat16)
    assert precisions == ["fp32", *(["bf16"] if has_bf16 else []), *(["int8"] if can_multiply_int8() else [])]
    assert all(len(answer[precision]) == 3 and min(answer[precision]) > 0 for precision in precisions)


# --- programs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["peers"], "the phase peers needs --peers DIR"),
        (["--updates", "5"], "--updates must be at least 15"),
        (["--threads", "0"], "must be at least 1, but is 0"),
        (["--peers", "x", "--device", "mps"], "--peers runs on cpu or cuda"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = str(ROOT / "tools" / "benchmark.py")
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    with pytest.raises(SystemExit) as error:
        runpy.run_path(program, run_name="__main__")
    assert error.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
