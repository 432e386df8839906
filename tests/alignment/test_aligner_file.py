"""A word aligner in a file links as it did before."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nmt.alignment.aligner_file import load_aligner, save_aligner
from nmt.alignment.statistical.aligner import HMMAligner
from nmt.bundle.folder import load_tensors, save_tensors
from nmt.errors import DataError

TEXT = [("red dog", "hund rot"), ("red cät", "katze rot"), ("dog", "hund"), ("cät", "katze")] * 20
NEW = [("red dogs", "hunde rot"), ("dog 1867", "1867 hund"), ("", "x"), ("cät", "katze")]


def test_a_saved_aligner_links_as_before(tmp_path: Path) -> None:
    aligner = HMMAligner.learn(TEXT)
    save_aligner(aligner, tmp_path / "new" / "links")
    loaded = load_aligner(tmp_path / "new" / "links")
    for before, after in zip(aligner.confident_links(NEW), loaded.confident_links(NEW), strict=True):
        assert after == pytest.approx(before, abs=1e-5)
    assert (loaded.lines, loaded.splits) == (aligner.lines, aligner.splits)


def test_another_file_is_no_aligner(tmp_path: Path) -> None:
    save_tensors({"keys": torch.zeros(2)}, tmp_path / "tensors")
    (tmp_path / "text").write_text("0-0\n")
    save_aligner(HMMAligner.learn(TEXT), tmp_path / "older")
    save_tensors({**load_tensors(tmp_path / "older"), "stem": torch.tensor(5)}, tmp_path / "older")
    for name in ("tensors", "text", "missing", "older"):
        with pytest.raises(DataError, match=f"{name}.*nmt links --save FILE"):
            load_aligner(tmp_path / name)
