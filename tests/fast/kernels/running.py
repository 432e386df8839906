"""Runs the tests of the kernels in a process of their own, with kernels that are compiled in another way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.commands import ROOT


def run_tests_of_kernels(variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The outcome, with these variables in the environment."""
    tests = [str(Path(__file__).with_name(f"test_{name}.py")) for name in ("decoding", "training", "signatures")]
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    return subprocess.run(
        command, env=os.environ | variables, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
