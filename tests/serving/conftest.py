"""One client of functions for all tests that leave it as it is."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.serving.fakes import client_of


@pytest.fixture(scope="session")
def client() -> Iterator[TestClient]:
    with client_of() as client:
        yield client
