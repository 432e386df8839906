"""Files over HTTP: translated, kept for a while, and fetched by a name that nobody guesses."""

from __future__ import annotations

import socket

import pytest

from nmt.serving.documents.formats import FORMATS
from nmt.serving.middleware import HEADERS, Access
from nmt.serving.translated_files import KeptFiles, TranslatedFile
from tests.serving.fakes import Answer, Running, serving, wait_until

TMX = (
    "<?xml version='1.0' encoding='UTF-8'?>\n<tmx><body><tu>"
    '<tuv xml:lang="en"><seg>a <hi>b</hi></seg></tuv>%s</tu><tu><tuv xml:lang="fr"><seg>c</seg></tuv></tu></body></tmx>'
)
LONG_TMX = TMX.replace("%s", "").replace("a <", "a" * 5001 + " <").encode()


def upload(running: Running, name: str, content: bytes, **fields: str) -> Answer:
    """A file sent as a browser sends it."""
    parts = [
        f'Content-Disposition: form-data; name="{key}"\r\n\r\n{value}'.encode()
        for key, value in {"source": "en", "target": "de", **fields}.items()
    ]
    head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
    body = b"".join(b"--x\r\n" + part + b"\r\n" for part in [*parts, head.encode() + content])
    return running.ask("/translate_file", body=body + b"--x--\r\n", Content_Type="multipart/form-data; boundary=x")


def fetch(running: Running, answer: Answer) -> Answer:
    """What the address in an answer leads to."""
    assert answer.status == 200, answer.body
    base, _, path = answer.json["translatedFileUrl"].partition("/download_file/")
    assert base == f"http://127.0.0.1:{running.port}"
    return running.ask(f"/download_file/{path}")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", b"a b\r\n\r\nc d\n", b"b a\r\n\r\nd c\n"),
        ("../../Notes.TXT", b"", b""),
        ("a.html", b"<p>a <b>b</b></p>", b"<p><b>b</b> a</p>"),
        ("a.tmx", TMX.encode() % b"", TMX.encode() % b'<tuv xml:lang="de"><seg><hi>b</hi> a</seg></tuv>'),
        ("a.srt", b"1\n0:00:01,0 --> 0:00:02,0\na b\n", b"1\n0:00:01,0 --> 0:00:02,0\nb a\n"),
    ],
)
def test_a_file_is_translated_and_fetched(server: Running, name: str, content: bytes, expected: bytes) -> None:
    fetched = fetch(server, upload(server, name, content))
    suffix = name[-4:].lower()
    assert (fetched.status, fetched.body) == (200, expected)
    assert (
        fetched.headers["content-disposition"]
        == f'attachment; filename="translation{name[1:] if name[0] == "a" else suffix}"'
    )
    assert fetched.headers.items() >= HEADERS.items()


def test_two_files_have_names_of_their_own(server: Running) -> None:
    answers = [upload(server, "a.txt", b"a b").json["translatedFileUrl"] for _ in range(2)]
    assert answers[0] != answers[1]
    assert all(len(answer.rpartition("/")[2]) == 36 for answer in answers)


@pytest.mark.parametrize(
    ("name", "content", "fields", "status", "sentence"),
    [
        ("a.exe", b"a", {}, 400, f"Invalid request: file format not supported; these are: {' '.join(FORMATS)}."),
        ("txt", b"a", {}, 400, f"Invalid request: file format not supported; these are: {' '.join(FORMATS)}."),
        ("a.txt", b"\xff", {}, 400, "Invalid request: file: The file is not text in UTF-8."),
        ("a.docx", b"a", {}, 400, "Invalid request: file: The file is no document of Word, or is encrypted or damaged."),
        ("a.xlf", b"<xliff><a>" * 9, {}, 400, "Invalid request: file: The file is not valid XML: no element found, line 1."),
        ("a.po", b"a", {}, 400, "Invalid request: file: The file is no PO file: line 1 is not one of it."),
        ("a.txt", b"a", {"target": "xx"}, 400, "From en this server translates to de and fr only."),
        ("a.txt", b"a", {"target": ""}, 400, "Invalid request: missing target parameter."),
        ("a.txt", b"a" * 5001, {}, 413, "The text has 5,001 characters, but at most 5,000 are allowed."),
        ("a.tmx", LONG_TMX, {}, 413, "The texts of the file have more than 5,000 characters."),
        ("a.txt", b"a\n" * 1001, {}, 413, "The text has 1,001 lines, but at most 1,000 are allowed."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(
    server: Running, name: str, content: bytes, fields: dict[str, str], status: int, sentence: str
) -> None:
    answer = upload(server, name, content, **fields)
    assert (answer.status, answer.json) == (status, {"error": sentence})


def test_a_request_without_a_file_is_refused(server: Running) -> None:
    content = {"source": "en", "target": "de"}
    missing = {"error": "Invalid request: missing file parameter."}
    assert server.ask("/translate_file", content).json == missing
    answer = server.ask("/translate_file", {**content, "file": "text"})
    assert (answer.status, answer.json) == (
        400,
        {"error": "Invalid request: file: send a file as multipart/form-data."},
    )


def test_a_file_may_be_larger_than_its_text_but_not_by_any_size(server: Running) -> None:
    filler = b'\nmsgid "translated already"\nmsgstr "schon"\n'
    content = b'msgid ""\nmsgstr "Language: de\\n"\n' + 4000 * filler + b'\nmsgid "a b"\nmsgstr ""\n'
    assert b'msgstr "b a"' in fetch(server, upload(server, "a.po", content)).body
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413")


def test_the_key_is_needed_to_translate_and_the_name_to_fetch() -> None:
    with serving(access=Access(api_key="secret")) as running:
        assert upload(running, "a.txt", b"a").status == 403
        assert fetch(running, upload(running, "a.txt", b"a b", api_key="secret")).body == b"b a"


def test_names_that_are_not_there(server: Running) -> None:
    for name in ("nothing.txt", "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%00"):
        assert server.ask(f"/download_file/{name}").status == 404
    sentence = "There is no such file: translated files are kept for half an hour at most."
    assert server.ask("/download_file/nothing.txt").json == {"error": sentence}
    assert 'path="/download_file",status="404"' in server.ask("/metrics").body.decode()


def test_behind_a_proxy_the_address_is_the_one_that_clients_see() -> None:
    with serving(root_path="/mt", access=Access(hosts=None)) as running:
        kind = "multipart/form-data; boundary=x"
        head = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\na b\r\n--x--\r\n'
        headers = {"Host": "mt.example", "X_Forwarded_Proto": "https", "Content_Type": kind}
        answer = running.ask("/mt/translate_file?target=de", body=head.encode(), **headers)
        address = answer.json["translatedFileUrl"]
        assert address.startswith("https://mt.example/mt/download_file/")
        assert running.ask(address.removeprefix("https://mt.example")).body == b"b a"


def test_only_so_many_files_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.serving.translated_files._MOST_AT_ONCE", 1)
    with serving() as running:
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
            wait_until(lambda: upload(running, "a.txt", b"a").status == 503)
            refused = upload(running, "a.txt", b"a")
            assert refused.json == {"error": "The server is busy with other files."}
            assert refused.headers["retry-after"] == "5"
        wait_until(lambda: upload(running, "a.txt", b"a").status == 200)


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_files_are_kept_for_half_an_hour() -> None:
    now = 0.0
    kept = KeptFiles(clock=lambda: now)
    first = kept.keep(TranslatedFile(b"a", ".txt"))
    now = 1000.0
    second = kept.keep(TranslatedFile(b"b", ".txt"))
    now = 1801.0
    assert kept.fetch(first) is None
    assert kept.fetch(second) == TranslatedFile(b"b", ".txt")


@pytest.mark.parametrize(("size", "most"), [(1, 100), (10_000_000, 6)])
def test_the_oldest_files_go_when_they_are_too_many_or_too_large(size: int, most: int) -> None:
    kept = KeptFiles()
    content = bytes(size)
    names = [kept.keep(TranslatedFile(content, ".txt")) for _ in range(most + 2)]
    assert [kept.fetch(name) is not None for name in names] == [False] * 2 + [True] * most
