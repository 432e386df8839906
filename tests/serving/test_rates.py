"""Clients that ask for too much in a minute are told to slow down."""

import pytest

from nmt.serving.middleware import Access
from nmt.serving.rates import RequestRates
from nmt.serving.refusals import RefusedError
from tests.serving.fakes import serving


def test_requests_are_counted_per_client_and_minute() -> None:
    now = 1000.0
    rates = RequestRates(2, clock=lambda: now)
    for client in ("a", "b", "a", "b"):
        rates.count(client)
    now += 45
    with pytest.raises(RefusedError, match="this server takes 2 requests per minute") as refused:
        rates.count("a")
    assert (refused.value.status, refused.value.retry_after) == (429, 15)
    now += 15
    rates.count("a")


def test_a_client_that_sends_too_much_is_refused() -> None:
    content = {"q": "a b", "target": "de"}
    with serving(access=Access(requests=2)) as running:
        assert [running.ask("/translate", content).status for _ in range(3)] == [200, 200, 429]
        refused = running.ask("/score", content)
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json["error"].startswith("Slow down")
        assert running.ask("/languages").status == 200
        assert running.ask("/translate", content, X_Forwarded_For="192.0.2.1").status == 200  # through a proxy here
