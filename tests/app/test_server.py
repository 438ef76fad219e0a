"""The server: health, fonts, headers, closed routes; the same from whatever folder it is started in."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit import config

from app.server import BLOCKED, FONTS, content_policy, serve
from core.errors import UserError
from core.settings import settings_from

ROOT = Path(__file__).resolve().parents[2]
SERVE = """
import os
from core.settings import settings_from
from app.server import serve
serve(settings_from(os.environ), port=0, started=lambda address: print(address, flush=True))
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard in a process of its own, started in an empty folder."""
    folder = tmp_path_factory.mktemp("elsewhere")
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "FLASHPOINT_DATA": str(folder / "data")}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], cwd=folder, env=environ, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def _get(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def test_health_and_readiness_answer_without_a_page(address: str) -> None:
    assert _get(address + "/healthz")[0] == 200
    status, _, body = _get(address + "/readyz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "path", ["/", "/compare", "/healthz", "/_stcore/health", "/app/static/fonts/sans.ttf", "/no-such.js"]
)
def test_every_answer_carries_the_security_headers(path: str, address: str) -> None:
    _, headers, _ = _get(address + path)
    assert headers["content-security-policy"] == content_policy()
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"


def test_the_policy_names_no_other_host_and_runs_no_inline_script() -> None:
    policy = content_policy()
    assert "http" not in policy and "*" not in policy
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert "unsafe" not in scripts


@pytest.mark.parametrize("path", [*BLOCKED, "/_stcore/agent/openapi.json", "//_stcore//metrics", "/_stcore/%6Detrics"])
def test_routes_that_answer_anybody_are_closed(path: str, address: str) -> None:
    status, _, body = _get(address + path)
    assert (status, body) == (404, b"Not found.")


@pytest.mark.parametrize("name", FONTS)
def test_the_fonts_come_from_their_packages(name: str, address: str) -> None:
    status, headers, body = _get(f"{address}/app/static/fonts/{name}")
    assert (status, headers["content-type"]) == (200, "font/ttf")
    assert body[:4] == b"\x00\x01\x00\x00" and len(body) > 50_000


@pytest.mark.parametrize("name", ["..%2F..%2Fpyproject.toml", "IBMPlexSans%5Bwdth,wght%5D.ttf", "no.ttf"])
def test_only_known_fonts_are_served(name: str, address: str) -> None:
    assert _get(f"{address}/app/static/fonts/{name}")[2] in (b"Not found.", b"Not Found") or name.startswith("..")
    assert b"[project]" not in _get(f"{address}/app/static/fonts/{name}")[2]


def _upgrade(address: str, **headers: str) -> int:
    """The status of a websocket handshake."""
    host, _, port = address.removeprefix("http://").partition(":")
    wanted = {
        "Host": f"{host}:{port}",
        "Origin": address,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
        "Sec-WebSocket-Version": "13",
    } | headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in wanted.items())
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(f"GET /_stcore/stream HTTP/1.1\r\n{lines}\r\n".encode())
        return int(connection.recv(100).split()[1])


def test_the_page_may_connect_and_a_foreign_name_may_not(address: str) -> None:
    assert _upgrade(address) == 101
    assert _upgrade(address, Host="rebound.example:80") == 403
    assert _upgrade(address, Origin="http://elsewhere.example") == 403


def test_a_taken_port_is_one_sentence(address: str, tmp_path: Path) -> None:
    port = int(address.rpartition(":")[2])
    with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1 port {port}: .*; choose another port"):
        serve(settings_from({"FLASHPOINT_DATA": str(tmp_path)}), port=port)


def test_the_configuration_is_found_from_any_folder(tmp_path: Path) -> None:
    ask = (
        "import os, json; from core.settings import settings_from; from app.server import make_app;"
        "make_app(settings_from(os.environ)); from streamlit import config as c;"
        "names = ['server.address', 'server.headless', 'server.fileWatcherType', 'browser.gatherUsageStats',"
        "'client.toolbarMode', 'server.allowedHosts', 'theme.light.primaryColor', 'client.showErrorDetails'];"
        "print(json.dumps({n: c.get_option(n) for n in names}))"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "FLASHPOINT_DATA": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "server.address": "127.0.0.1",
        "server.headless": True,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "server.allowedHosts": ["localhost", "127.0.0.1"],
        "theme.light.primaryColor": "#0B6259",
        "client.showErrorDetails": "type",
    }


def test_an_error_on_a_page_links_to_nobody_else() -> None:
    given = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text())["client"]
    assert given["showErrorLinks"] is False
    assert all(f"client.{name}" in config.get_config_options() for name in given)
