"""The memory of a training does not grow with its corpus."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["plain", "filtered", "sampling", "guided"])
def test_twenty_times_the_pairs_take_little_more_memory(mode: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools/memory.py"), "--pairs", "30000,600000", "--mode", mode]
    ended = subprocess.run(
        [*command, "--updates", "20", "--folder", str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    lines = [line for line in ended.stdout.splitlines() if line.startswith(mode)]
    figures = [re.findall(r"([\d,]+) MB (?:before|in training)", line) for line in lines]
    peaks = [[int(figure.replace(",", "")) for figure in line] for line in figures]
    small, large = map(max, peaks)
    assert small > 100
    assert large - small < 120, ended.stdout
