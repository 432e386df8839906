"""One server of functions for all tests that leave it as it is."""

from collections.abc import Iterator

import pytest

from tests.serving.fakes import Running, serving


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    with serving() as running:
        yield running
