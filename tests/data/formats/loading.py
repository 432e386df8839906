"""Write files and load them as parallel text."""

from pathlib import Path

import pytest

from nmt.data.locators import load_corpus
from nmt.errors import DataError


def load(path: Path | str, source: str = "en", target: str = "de") -> list[tuple[str, str]]:
    return list(load_corpus(path, source=source, target=target).pairs())


def refusal(path: Path | str, source: str = "en", target: str = "de") -> str:
    """The one sentence with which a text is refused."""
    with pytest.raises(DataError) as caught:
        load(path, source, target)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence
