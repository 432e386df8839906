"""A server on this machine in place of those of corpora, and a cache for what comes from it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.data.catalogue import download
from tests.data.catalogue.fetching import Server, serving


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server without files; what is fetched goes to `tmp_path / "cache"`, and no attempt waits."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_CORPORA", raising=False)
    monkeypatch.setattr(download, "WAIT", 0.001)
    with serving() as state:
        yield state


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """Where the cache keeps the corpus `toy`."""
    return tmp_path / "cache" / "corpora" / "toy"
