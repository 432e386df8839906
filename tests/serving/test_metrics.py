"""The metrics of a service, as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families

from nmt.serving.metrics import ServiceMetrics


def samples(metrics: ServiceMetrics) -> dict[tuple[str, ...], float]:
    """The values by name and label values."""
    families = text_string_to_metric_families(metrics.exposition("")[0].decode())
    return {(item.name, *item.labels.values()): item.value for family in families for item in family.samples}


def test_what_is_measured_is_exposed() -> None:
    metrics = ServiceMetrics()
    metrics.watch_queue(lambda: 7)
    metrics.requests.labels("/translate", 'say "hi"\n\\').inc()
    metrics.lines.labels("mine").inc(3)
    for lines in (1, 2, 9):
        metrics.batches.observe(lines)
    values = samples(metrics)
    assert values["nmt_requests_total", "/translate", 'say "hi"\n\\'] == 1
    assert values["nmt_lines_total", "mine"] == 3
    assert values["nmt_queue_lines",] == 7
    bounds = ("1.0", "2.0", "4.0", "8.0", "16.0", "+Inf")
    assert [values["nmt_batch_lines_bucket", bound] for bound in bounds] == [1, 2, 2, 2, 3, 3]
    assert values["nmt_batch_lines_sum",] == 12


def test_a_service_counts_only_what_is_its_own() -> None:
    one, other = ServiceMetrics(), ServiceMetrics()
    one.lines.labels("mine").inc()
    assert ("nmt_lines_total", "mine") not in samples(other)


def test_a_client_may_ask_for_openmetrics() -> None:
    text, media_type = ServiceMetrics().exposition("application/openmetrics-text; version=1.0.0")
    assert media_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
