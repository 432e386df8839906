"""What the layout promises: who imports whom, what a start costs, and which names are public."""

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

import nmt
from nmt.bundle.folder import Bundle
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"torch", "datasets", "matplotlib", "sacrebleu", "pydantic", "numpy", "pyarrow", "sentencepiece", "yaml"}
REPORT = "import atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"


def modules_after(code: str, stdin: str = "") -> set[str]:
    """The packages and modules that a fresh interpreter has imported once the code has run."""
    command = [sys.executable, "-c", REPORT + code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, env=environment)
    modules = json.loads(ended.stderr.splitlines()[-1])
    return {*modules, *(name.partition(".")[0] for name in modules)}


def run_cli(*commands: Sequence[str]) -> str:
    """The code that runs some commands, one after the other; each must succeed."""
    return (
        f"from nmt.cli import main\nfor arguments in {commands!r}:\n    sys.argv = ['nmt', *arguments]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code"
    )


def test_neither_the_package_nor_its_help_imports_anything_heavy() -> None:
    assert not modules_after("import nmt\n" + run_cli(["--version"], ["--help"])) & HEAVY


def test_the_help_of_a_command_imports_nothing_it_runs_with() -> None:
    commands = ("train", "compare", "reproduce", "translate", "evaluate", "align", "plot")
    # typer itself checks ranges of numbers with pydantic
    assert not modules_after(run_cli(*([command, "--help"] for command in commands))) & (HEAVY - {"pydantic"})


def test_translating_imports_neither_datasets_nor_matplotlib_nor_torchs_compiler(tmp_path: Path) -> None:
    subwords = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    Bundle.fresh(small_recipe(), subwords, subwords).save(tmp_path / "model")
    imported = modules_after(
        run_cli(["translate", str(tmp_path / "model"), "--set", "decoding.max_ratio=1"]), "a dog\n"
    )
    assert "torch" in imported
    assert not imported & {"datasets", "matplotlib", "sacrebleu", "pyarrow", "pandas"}
    assert "torch._dynamo" not in imported  # torch's compiler, which takes a second


PUBLIC = """
    Alignment Bundle DataError DecodingOptions Drawing Evaluation NmtError ParallelCorpus Recipe Sampling Subwords
    TrainingResult Translation TranslationHypothesis Translator Upload UsageError evaluate export links load load_corpus
    load_recipe plot_alignment plot_importances push search train
"""


def test_the_public_names_are_these() -> None:
    assert sorted(nmt.__all__) == PUBLIC.split()
    for name in nmt.__all__:
        assert getattr(nmt, name).__doc__
        assert name in dir(nmt)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = nmt.nothing


def test_no_two_classes_share_a_name() -> None:
    """Private ones included, a leading underscore apart."""
    homes = defaultdict(list)
    for path in (ROOT / "nmt").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].append(path.relative_to(ROOT).as_posix())
    assert len(homes) > 150
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
