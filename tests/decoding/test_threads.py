"""Several threads use one translator at the same time, with options of their own: results are those of calls in turn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from nmt.alignment.translation import Translation
from nmt.decoding.ensemble import Ensemble, EnsembleMemory
from nmt.decoding.translator import Translator
from nmt.search.sampling import Sampling
from tests.decoding.test_translator import LINES as LINES_OF_ALL_LENGTHS
from tests.decoding.test_translator import bundle, check_same

LINES = LINES_OF_ALL_LENGTHS[5:]
THREADS = 6
CALLS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 3, "n_best": 3, "length_penalty": 0.3},
    {"beam_size": 4, "prune": 2.0, "alignments": False},
    {"sampling": Sampling(seed=3), "n_best": 2},
    {"posterior": True, "batch_tokens": 60},
    {"mbr_samples": 5, "window": 3},
]


def called(translator: Translator, number: int) -> Sequence[Translation]:
    """One of the calls: translations, or scores for every seventh."""
    if number % 7 == 6:
        return translator.score([(line, "das ist gut") for line in LINES[number % 5 :]])
    translations: Sequence[Translation] = translator.translate(LINES[number % 5 :], **CALLS[number % len(CALLS)])
    return translations


@pytest.mark.parametrize(("name", "fast"), [("bahdanau", "1"), ("luong", "1"), ("bahdanau", "0")])
def test_calls_of_several_threads_equal_calls_in_turn(name: str, fast: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_FAST", fast)
    in_turn, shared = Translator([bundle(name)]), Translator([bundle(name)])
    numbers = range(2 * THREADS + 2)
    expected = [called(in_turn, number) for number in numbers]
    barrier = threading.Barrier(THREADS)

    def call(number: int) -> Sequence[Translation]:
        if number < THREADS:
            barrier.wait()  # all begin at once, with empty tables
        return called(shared, number)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            actual = list(pool.map(call, numbers))
    finally:
        sys.setswitchinterval(before)
    for ours, theirs in zip(actual, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            check_same(one, other)


@pytest.mark.skipif(sys.platform != "linux", reason="there are no forks")
def test_streams_with_processes_of_their_own_end_in_any_order_with_the_same_translations() -> None:
    """The processes of the second stream inherit the pipes of the first, which end nevertheless."""
    translator = Translator([bundle()], processes=2, batch_tokens=40, beam_size=2, n_best=2, window=4)
    expected = translator.translate(LINES, processes=1)
    streams = [translator.stream(LINES), translator.stream(LINES)]
    firsts = [next(stream) for stream in streams]
    for first, stream in zip(firsts, streams, strict=True):
        for one, other in zip([first, *stream], expected, strict=True):
            check_same(one, other)


def test_a_few_tokens_are_decoded_by_one_thread_and_many_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside busy processes, threads that wait for each other would take a core each and compute nothing."""
    threads: list[int] = []
    encode = Ensemble.encode

    def counting(ensemble: Ensemble, sources: Sequence[torch.Tensor]) -> EnsembleMemory:
        threads.append(torch.get_num_threads())
        return encode(ensemble, sources)

    monkeypatch.setattr(Ensemble, "encode", counting)
    monkeypatch.setattr("nmt.runtime.device._SHARED_TOKENS", 30)
    translator, before = Translator([bundle()], beam_size=2), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        translator.translate(LINES[0])
        translator.translate(LINES * 4)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert (threads[0], *set(threads[1:])) == (1, 2)
