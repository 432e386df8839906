"""Pages of other sites, and proxies that show the server elsewhere or change its host name."""

import re
from pathlib import Path

import pytest

from nmt.cli import serving as command
from nmt.errors import UsageError
from nmt.serving.middleware import Access
from nmt.serving.pages import ASSETS
from tests.serving.fakes import Answer, Running, serving

CONTENT = {"q": "a b", "target": "de"}
SITE = "https://mt.example.org"


def test_pages_of_a_site_that_is_named_may_use_the_server() -> None:
    with serving(access=Access(origins=(SITE,))) as running:
        answer = running.ask("/translate", CONTENT, Origin=SITE)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, SITE)
        assert answer.headers["vary"] == "Origin"
        assert running.ask("/translate", {}, Origin=SITE).headers["access-control-allow-origin"] == SITE

        def prepare(origin: str) -> Answer:
            """What a browser asks first."""
            headers = "content-type, x-api-key"
            return running.ask(
                "/translate",
                method="OPTIONS",
                Origin=origin,
                Access_Control_Request_Method="POST",
                Access_Control_Request_Headers=headers,
            )

        before = prepare(SITE)
        assert (before.status, before.headers["access-control-allow-origin"]) == (200, SITE)
        assert running.ask("/translate", CONTENT, Origin="https://evil.example").status == 403
        assert prepare("https://evil.example").status == 400
        assert running.ask("/translate", CONTENT).status == 200


def test_pages_of_any_site_may_use_the_server_if_so_told() -> None:
    with serving(access=Access(origins=("*",))) as running:
        for origin in (SITE, "null"):
            answer = running.ask("/translate", CONTENT, Origin=origin)
            assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "*")


def test_without_the_option_no_other_page_reads_answers(server: Running) -> None:
    assert "access-control-allow-origin" not in server.ask("/languages", Origin=SITE).headers
    assert server.ask("/translate", method="OPTIONS", Origin=SITE).status == 405
    refused = server.ask("/translate", CONTENT, Origin=SITE)
    assert refused.json == {"error": "Pages of other sites may not use this server: --allow-origin adds a site."}


@pytest.mark.parametrize(("relation", "status"), [("same-origin", 200), ("same-site", 403), ("cross-site", 403)])
def test_the_page_itself_is_known_by_its_browser_where_a_proxy_changes_the_host(
    server: Running, relation: str, status: int
) -> None:
    assert server.ask("/translate", CONTENT, Origin=SITE, Sec_Fetch_Site=relation).status == status


def test_the_server_lives_below_a_path() -> None:
    with serving(root_path="/mt") as running:
        for path in ("/mt/translate", "/translate", "/mt/translate/"):  # a proxy may cut the path off, or leave it
            assert running.ask(path, CONTENT).status == 200
        assert running.ask("/mt/").body == running.ask("/").body
        redirect = running.ask("/mt")
        assert (redirect.status, redirect.headers["location"]) == (308, "/mt/")
        assert running.ask("/mtx/translate", CONTENT).status == 404
        assert running.ask("/mt/openapi.json").json["servers"] == [{"url": "/mt"}]
        assert 'path="/translate",status="200"} 3.0' in running.ask("/mt/metrics").body.decode()


def test_links_of_the_page_are_relative(server: Running) -> None:
    page = server.ask("/").body.decode()
    links = re.findall(r'(?:href|src|action)="([^"]*)"', page)
    assert {"static/page.css", "static/page.js", "openapi.json", "./"} <= set(links)
    assert not [link for link in links if link.startswith("/")]
    for name, (content, _) in ASSETS.items():
        assert not re.findall(r"""(?:ask|fetch|url|import)\(?\s*["'`]/[a-z]""", content), name


@pytest.mark.parametrize("origin", ["example.org", "https://example.org/page", "ftp://example.org", "https://", "null"])
def test_an_origin_is_a_site(origin: str) -> None:
    with pytest.raises(
        UsageError, match=r"^--allow-origin .* is no site: name one as https://example\.org, or \* for any\.$"
    ):
        command.serve([Path("model")], allow_origin=[origin])


@pytest.mark.parametrize("path", ["mt", "https://example.org/mt", "/mt?x", "//mt", "/a b"])
def test_a_root_path_is_a_path(path: str) -> None:
    with pytest.raises(UsageError, match=r"^--root-path .* is no path: name one as /mt\.$"):
        command.serve([Path("model")], root_path=path)
