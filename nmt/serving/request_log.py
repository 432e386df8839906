"""The log of requests on standard error, one JSON object per line. It never waits for its reader."""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import time

logger = logging.getLogger("nmt.serving.requests")


class LogLines(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        time_field = f"{moment}.{int(record.msecs):03d}Z"
        fields = {"time": time_field, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps({**fields, **getattr(record, "facts", {})}, ensure_ascii=True)


class LogWriter(logging.Handler):
    """Writes records while their reader reads; afterwards it says how many were left out.

    A write to a pipe that nobody reads would stop the server, and one to a full disk would fail.
    """

    def __init__(self, descriptor: int) -> None:
        """Write to an open file descriptor."""
        super().__init__()
        self.setFormatter(LogLines())
        self._descriptor = descriptor
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it as lost."""
        if self._lost and self._write(self._loss()):
            self._lost = 0
        if self._lost or not self._write(record):
            self._lost += 1

    def _loss(self) -> logging.LogRecord:
        return logging.makeLogRecord({"msg": "lost", "levelname": "WARNING", "facts": {"records": self._lost}})

    def _write(self, record: logging.LogRecord) -> bool:
        try:
            if select.select([], [self._descriptor], [], 0)[1]:  # a pipe has room for at least PIPE_BUF bytes
                os.write(self._descriptor, f"{self.format(record)}\n".encode()[: select.PIPE_BUF])
                return True
        except OSError:
            pass
        return False


def write_log(level: int) -> None:
    """Write what happens to standard error, if it is open."""
    if sys.stderr is not None:
        logger.handlers[:] = [LogWriter(sys.stderr.fileno())]
    logger.setLevel(level)
    logger.propagate = False
