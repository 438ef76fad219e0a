"""The dashboard as an ASGI application: Streamlit, the font route, health routes, security headers.

Everything a page needs comes from this process; no answer names another host.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import re
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit
import uvicorn
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.starlette import App

from app import bootstrap
from core.errors import FlashpointError, UserError
from core.exports.figure import font_folder
from core.settings import Settings

MAIN = Path(__file__).with_name("main.py")

#: Font route: the name in ``.streamlit/config.toml`` -> package and file.
FONTS: dict[str, tuple[str, str]] = {
    "sans.ttf": ("fontpkg_ibm_plex_sans", "IBMPlexSans[wdth,wght].ttf"),
    "condensed.ttf": ("fontpkg_ibm_plex_sans_condensed", "IBMPlexSansCondensed-Regular.ttf"),
    "condensed-semibold.ttf": ("fontpkg_ibm_plex_sans_condensed", "IBMPlexSansCondensed-SemiBold.ttf"),
    "mono.ttf": ("fontpkg_ibm_plex_mono", "IBMPlexMono-Regular.ttf"),
}
#: Streamlit routes that answer anybody and that nothing here needs.
BLOCKED = ("/_stcore/metrics", "/_stcore/agent", "/_stcore/script-health-check")


@cache
def content_policy() -> str:
    """The Content-Security-Policy that Streamlit works with: everything from this host alone.

    Streamlit makes its styles in the browser ('unsafe-inline' for styles only); its one inline script is allowed by
    its hash; it draws Vega with the interpreter that needs no 'unsafe-eval'.
    """
    index = Path(streamlit.__file__).parent / "static" / "index.html"
    inline = re.findall(r"<script>(.*?)</script>", index.read_text("utf-8"), re.DOTALL)
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in inline)
    return (
        f"default-src 'self'; script-src 'self' {hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
        "frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )


class Guard:
    """Middleware: security headers on every answer, no answer at all from the blocked routes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_headers()]
            await send(message)

        path = re.sub("/+", "/", scope["path"])
        if any(path == b or path.startswith(b + "/") for b in BLOCKED):
            await PlainTextResponse("Not found.", 404)(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)


@cache
def _headers() -> tuple[tuple[bytes, bytes], ...]:
    pairs = {
        "content-security-policy": content_policy(),
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }
    return tuple((k.encode(), v.encode()) for k, v in pairs.items())


async def _font(request: Request) -> Response:
    try:
        package, file = FONTS[request.path_params["name"]]
    except KeyError:
        return PlainTextResponse("Not found.", 404)
    return FileResponse(
        font_folder(package) / file, media_type="font/ttf", headers={"cache-control": "public, max-age=604800"}
    )


async def _healthz(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _readyz(_request: Request) -> Response:
    try:
        await asyncio.to_thread(bootstrap.check_database)
    except FlashpointError as error:
        return JSONResponse({"status": "unavailable", "reason": str(error)}, 503)
    return JSONResponse({"status": "ok"})


def make_app(settings: Settings, hosts: tuple[str, ...] = ()) -> App:
    """The dashboard for these settings, one a process; ``hosts`` are further names under which a browser may reach
    it."""
    bootstrap.configure(settings)
    app = App(
        MAIN,
        routes=[
            Route("/app/static/fonts/{name}", _font),
            Route("/healthz", _healthz),
            Route("/readyz", _readyz),
        ],
        middleware=[Middleware(Guard)],
    )
    if hosts:
        config.set_option("server.allowedHosts", [*config.get_option("server.allowedHosts"), *hosts])
    return app


def _names(host: str) -> tuple[str, ...]:
    """The names a browser may use for an address that the server listens on, beyond the loopback names."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return (host,)
    if address.is_loopback:
        return ()
    return tuple(dict.fromkeys((socket.gethostname(), socket.getfqdn()))) if address.is_unspecified else (host,)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; what connects before the server runs waits in its queue."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UserError(
            f"The dashboard cannot listen on {host} port {port}: {error.strerror}; choose another port with --port."
        ) from error


def serve(
    settings: Settings,
    host: str = "127.0.0.1",
    port: int | None = None,
    started: Callable[[str], Any] | None = None,
) -> None:
    """Serve the dashboard until SIGINT or SIGTERM; ``port`` defaults to the setting, 0 takes a free one.

    ``started`` gets the address once it is open. Raises UserError when the port is taken.
    """
    with _listening(host, settings.port if port is None else port) as listening:
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(settings, _names(host)),
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="websockets-sansio",
            )
        )
        if started is not None:
            shown = f"[{host}]" if ":" in host else host
            started(f"http://{shown}:{listening.getsockname()[1]}")
        server.run(sockets=[listening])
