"""What is measured of requests and batches, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LINES = (1, 2, 4, 8, 16, 32, 64)


class ServiceMetrics:
    """The metrics of one service, in a registry of their own. Decoders report to the process that answers, which counts."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "nmt_requests_total", "Requests, by path and status.", ("path", "status"), registry=registry
        )
        self.seconds = Histogram(
            "nmt_request_seconds", "Seconds per request, by path.", ("path",), registry=registry, buckets=_SECONDS
        )
        self.lines = Counter("nmt_lines_total", "Lines decoded, by model.", ("model",), registry=registry)
        self.characters = Counter(
            "nmt_characters_total", "Characters of the lines accepted, by model.", ("model",), registry=registry
        )
        self.batches = Histogram("nmt_batch_lines", "Lines per batch.", registry=registry, buckets=_LINES)
        self.decoding = Histogram("nmt_batch_seconds", "Seconds per batch.", registry=registry, buckets=_SECONDS)

    def watch_queue(self, waiting: Callable[[], float]) -> None:
        """Measure how many lines wait, whenever the metrics are read."""
        Gauge("nmt_queue_lines", "Lines that wait to be decoded.", registry=self._registry).set_function(waiting)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics and their media type: the text format, or OpenMetrics for a client whose header `Accept` names it."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type
