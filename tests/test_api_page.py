"""Every example of nmt/API.md runs, in its order."""

import re
from pathlib import Path
from typing import Any

import pytest

from nmt.recipe import dump_recipe
from tests.commands import ROOT
from tests.robustness import tiny
from tests.training import toy

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "nmt/API.md").read_text(encoding="utf-8"), re.DOTALL)


def test_every_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.bundle().save(tmp_path / "runs/mine")
    (tmp_path / "data").mkdir()
    for side in ("en", "de"):
        (tmp_path / f"data/test.{side}").write_text("".join(f"{line}\n" for line in tiny.TEXT))
    toy.write_reversal(tmp_path, pairs=40, held_out=5)
    (tmp_path / "mine.yaml").write_text(dump_recipe(toy.recipe(tmp_path, training={"updates": 1})))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "example"}
    assert len(BLOCKS) == 7
    for number, block in enumerate(BLOCKS, start=1):
        exec(compile(block, f"API.md, block {number}", "exec"), names)
    assert len(names["pairs"]["de"]) == 2
    assert names["best"].ids == (4,)
    assert names["best"].log_probability == pytest.approx(-0.616186)
    assert len(names["sampled"].hypotheses) == 4
    assert len(names["links"]) == 2
    assert names["run"].folder == Path("runs/new")
    assert (tmp_path / "mine.zip").is_file()
    assert (tmp_path / "alignment.png").read_bytes().startswith(b"\x89PNG")
    assert "BLEU" in capsys.readouterr().out
