"""The log goes on, or leaves lines out, whatever becomes of its reader."""

import json
import logging
import os
from pathlib import Path

import pytest

from nmt.serving.request_log import LogWriter


def record(number: int) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": "request", "levelname": "INFO", "facts": {"number": number}})


def test_a_reader_that_does_not_read_stops_nothing_and_learns_what_was_lost() -> None:
    reading, writing = os.pipe()
    try:
        writer = LogWriter(writing)
        count = 5000  # more than a pipe holds
        for number in range(count):
            writer.emit(record(number))
        os.set_blocking(reading, False)
        written = [json.loads(line) for line in _rest(reading).splitlines()]
        assert [each["number"] for each in written] == list(range(len(written)))
        assert 0 < len(written) < count
        writer.emit(record(count))
        lost, last = map(json.loads, _rest(reading).splitlines())
        assert (lost["event"], lost["level"], lost["records"]) == ("lost", "warning", count - len(written))
        assert last["number"] == count
    finally:
        os.close(reading)
        os.close(writing)


def _rest(descriptor: int) -> bytes:
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


def test_a_reader_that_has_left_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    LogWriter(writing).emit(record(1))
    os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_a_full_disk_stops_nothing() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        writer = LogWriter(full.fileno())
        writer.emit(record(1))
        writer.emit(record(2))
