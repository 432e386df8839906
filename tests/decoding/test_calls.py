"""A line is translated in the calls that nmt/README.md lists."""

import sys

import pytest

from nmt.decoding.translator import Translator
from tests.calls import Calls
from tests.decoding.test_translator import bundle


def test_one_line_is_translated_in_the_calls_that_the_readme_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy search on plain modules."""
    monkeypatch.setenv("NMT_FAST", "0")
    translator, calls = (
        Translator([bundle()], beam_size=1),
        Calls(inside=("data", "fast", "model"), without=("runtime", "text")),
    )
    sys.setprofile(calls.note)
    try:
        translator.translate("a cat sat on the mat .")
    finally:
        sys.setprofile(None)
    calls.check_listed("The calls of one line, ")
