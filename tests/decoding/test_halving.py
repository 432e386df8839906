"""What does not fit into the memory of a GPU, with a decoder that runs out of memory above a number of sentences."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from nmt.decoding.batch_decoder import BatchDecoder
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from tests.decoding.test_translator import LINES, bundle

PAIRS = [(line, "the market") for line in LINES]


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The number of sentences that fit into memory; a test may change it."""
    room = {"sentences": 2}

    def limited(name: str) -> Any:
        decode = getattr(BatchDecoder, name)

        def run(self: BatchDecoder, tasks: Sequence[Any]) -> Any:
            if len(tasks) > room["sentences"]:
                raise torch.OutOfMemoryError
            return decode(self, tasks)

        return run

    for name in ("search", "force"):
        monkeypatch.setattr(BatchDecoder, name, limited(name))
    return room


def test_what_does_not_fit_is_decoded_in_halves(room: dict[str, int], caplog: pytest.LogCaptureFixture) -> None:
    room["sentences"] = len(LINES)
    translator = Translator([bundle()])
    translated, scored = translator.translate(LINES), translator.score(PAIRS)
    assert not any("batch-tokens" in message for message in caplog.messages)
    caplog.clear()  # the characters that the model has not seen
    for room["sentences"] in (3, 1):
        halves = translator.translate(LINES)
        assert [translation.text for translation in halves] == [translation.text for translation in translated]
        for half, whole in zip(translator.score(PAIRS), scored, strict=True):
            assert half.hypotheses[0].log_probability == pytest.approx(whole.hypotheses[0].log_probability, rel=1e-5)
    assert [record.levelno for record in caplog.records] == 4 * [logging.WARNING]  # one for each call
    assert "fewer --batch-tokens" in caplog.messages[0]


def test_a_sentence_that_does_not_fit_is_an_error(room: dict[str, int]) -> None:
    room["sentences"] = 0
    with pytest.raises(DataError, match="The memory of the GPU is too small"):
        Translator([bundle()]).translate(LINES)
