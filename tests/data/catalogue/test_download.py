"""Downloads: continued where they stopped, started anew where they must be, and given up when there is no hope."""

import socket
from pathlib import Path

import pytest

from nmt.data.catalogue import download as module
from nmt.data.catalogue.download import ATTEMPTS, DownloadError, download
from tests.data.catalogue.fetching import Server

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def server(server: Server) -> Server:
    server.contents["/file.bin"] = CONTENT
    return server


@pytest.fixture(params=['"one"', 'W/"one"'], ids=["strong", "weak"])
def interrupted(
    request: pytest.FixtureRequest, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Server:
    """A server whose connection broke after 70,000 bytes of the file; only a strong ETag is a condition for the rest."""
    server.headers, server.cut["/file.bin"] = {"ETag": request.param}, [70_000]
    with monkeypatch.context() as patch:
        patch.setattr(module, "ATTEMPTS", 1)
        with pytest.raises(DownloadError, match=r"only 70,000 of 256,000 bytes came \(1 attempts\)"):
            download(f"{server.address}/file.bin", tmp_path)
    return server


def parts(folder: Path) -> list[str]:
    return sorted(path.name.split("-", 1)[1] for path in folder.iterdir())


@pytest.mark.parametrize("headers", [{"ETag": '"one"'}, {"Last-Modified": "Mon, 05 Jan 2026 10:00:00 GMT"}, {}])
def test_a_broken_connection_is_continued(server: Server, tmp_path: Path, headers: dict[str, str]) -> None:
    server.headers, server.cut["/file.bin"] = headers, [100_000, 50_000]
    heard: list[tuple[int, int | None]] = []
    path = download(f"{server.address}/file.bin", tmp_path, lambda _, count, total: heard.append((count, total)))
    assert path.read_bytes() == CONTENT
    assert [byte_range for _, byte_range in server.requests] == [None, "bytes=100000-", "bytes=150000-"]
    assert server.conditions == [None, *[next(iter(headers.values()), None)] * 2]
    assert heard[-1] == (len(CONTENT), len(CONTENT))
    assert [count for count, _ in heard] == sorted(count for count, _ in heard)
    assert parts(tmp_path) == ["file.bin"]


def test_another_process_continues_what_one_has_left(interrupted: Server, tmp_path: Path) -> None:
    assert parts(tmp_path) == ["file.bin.part", "file.bin.part.json"]
    assert download(f"{interrupted.address}/file.bin", tmp_path).read_bytes() == CONTENT
    assert interrupted.requests[-1] == ("/file.bin", "bytes=70000-")


def test_a_server_without_ranges_sends_the_whole_again(server: Server, tmp_path: Path) -> None:
    server.ranges, server.cut["/file.bin"] = False, [200_000, 100]
    assert download(f"{server.address}/file.bin", tmp_path).read_bytes() == CONTENT
    assert [byte_range for _, byte_range in server.requests] == [None, "bytes=200000-", "bytes=100-"]


@pytest.mark.parametrize(("content", "etag"), [(CONTENT[::-1], '"two"'), (b"short", '"one"')])
def test_a_file_that_has_changed_is_fetched_anew(
    interrupted: Server, tmp_path: Path, content: bytes, etag: str
) -> None:
    interrupted.contents["/file.bin"], interrupted.headers = content, {"ETag": etag}
    assert download(f"{interrupted.address}/file.bin", tmp_path).read_bytes() == content


def test_an_overloaded_server_is_asked_again_but_not_for_ever(server: Server, tmp_path: Path) -> None:
    server.broken["/file.bin"] = [503, 429]
    assert download(f"{server.address}/file.bin", tmp_path).read_bytes() == CONTENT
    server.contents["/other"] = b""
    server.broken["/other"] = [503] * 20
    with pytest.raises(DownloadError, match=rf"HTTP 503 Service Unavailable \({ATTEMPTS} attempts\)"):
        download(f"{server.address}/other", tmp_path)
    assert [address for address, _ in server.requests].count("/other") == ATTEMPTS


def test_a_connection_that_breaks_at_the_same_byte_is_given_up(server: Server, tmp_path: Path) -> None:
    server.ranges, server.cut["/file.bin"] = False, [1000] * 20
    with pytest.raises(DownloadError, match="only 1,000 of 256,000 bytes came"):
        download(f"{server.address}/file.bin", tmp_path)
    assert len(server.requests) == ATTEMPTS


@pytest.mark.parametrize(("status", "name"), [(404, "Not Found"), (403, "Forbidden")])
def test_what_is_not_there_is_asked_for_once(server: Server, tmp_path: Path, status: int, name: str) -> None:
    server.broken["/file.bin"] = [status] * 9
    with pytest.raises(DownloadError, match=f"^HTTP {status} {name}$"):
        download(f"{server.address}/file.bin", tmp_path)
    assert len(server.requests) == 1
    assert not list(tmp_path.iterdir())


def test_a_web_page_is_not_the_file(server: Server, tmp_path: Path) -> None:
    server.headers["Content-Type"] = "text/html; charset=utf-8"
    with pytest.raises(DownloadError, match=r"^the server sent a web page instead of the file$"):
        download(f"{server.address}/file.bin", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_silent_server_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(module, "WAIT", 0.001)
    monkeypatch.setattr(module, "_SECONDS", 0.05)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        pytest.raises(DownloadError, match=r"timed out \(4 attempts\)"),
    ):
        download(f"http://127.0.0.1:{listening.getsockname()[1]}/file", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_record_of_a_part_is_no_reason_to_fail(server: Server, tmp_path: Path) -> None:
    path = download(f"{server.address}/file.bin", tmp_path)
    path.rename(f"{path}.part")
    Path(f"{path}.part.json").write_text("{")
    assert download(f"{server.address}/file.bin", tmp_path).read_bytes() == CONTENT


def test_addresses_with_the_same_end_are_different_files(server: Server, tmp_path: Path) -> None:
    server.contents["/a/train.en"], server.contents["/b/train.en"] = b"a", b"b"
    paths = [download(f"{server.address}/{place}/train.en", tmp_path) for place in "ab"]
    assert [path.read_bytes() for path in paths] == [b"a", b"b"]
