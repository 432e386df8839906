"""Gold links of a text by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.alignment.gold import aligned_text, gold_links
from nmt.data.catalogue import fetching
from nmt.errors import DataError
from nmt.recipe import DataConfig


def test_gold_links_of_a_corpus_are_those_of_its_split_source_words_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gold").write_text("0-1\n")
    monkeypatch.setattr(fetching, "find", lambda *names: tmp_path / "gold")
    data = DataConfig(source="en", target="fr", train="hansards-en-fr/train", valid="hansards-en-fr/dev")
    for source, link in (("en", (0, 1)), ("fr", (1, 0))):
        [links] = gold_links("hansards-en-fr/gold.trial", source=source) or []
        assert links.sure == {link}
    assert gold_links("hansards-en-fr/dev", source="en") is None
    assert aligned_text(data, "hansards-en-fr/gold.trial") == "hansards-en-fr/gold.trial"
    assert aligned_text(data, "hansards-en-fr/dev") == "hansards-en-fr/gold.trial"

    def missing(*names: str) -> Path:
        raise DataError("It is not here.")

    monkeypatch.setattr(fetching, "find", missing)
    assert aligned_text(data, "hansards-en-fr/dev") is None
    assert aligned_text(data.model_copy(update={"train": "mine/train"}), "mine/dev") is None
