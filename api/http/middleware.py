"""What happens around every request: its id, and checks of its origin."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlsplit

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.errors import (
    ForeignHost,
    ForeignOrigin,
    internal_error,
    method_not_allowed,
    problem_response,
)
from vmtune.api.http.bodies import drain, headers_of, refuse
from vmtune.errors import VmtuneError
from vmtune.services.lanes import FOR_OPERATOR

log = structlog.get_logger(__name__)

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
READS = ("GET", "HEAD", "OPTIONS")
_ALWAYS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    # No script in an answer, whatever its content, runs as a page of the service.
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
        b"base-uri 'none'; form-action 'none'",
    ),
)
"""Headers of every answer that does not have its own."""


class RequestContext:
    """Gives each request an id, which its answer and log lines contain, and answers unexpected
    errors without a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # A name, not a secret; and unlike the system's, this generator never lets go of
        # Python's lock, for which the request would then wait behind busy threads.
        request_id = f"{random.getrandbits(48):012x}"
        FOR_OPERATOR.set(scope["method"] not in READS)  # each request is a task of its own
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                given = {name for name, _ in message["headers"]}
                extra = [(name, value) for name, value in _ALWAYS if name not in given]
                extra.append((b"x-request-id", request_id.encode()))
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            except Exception:
                log.exception("internal error", method=scope["method"], path=scope["path"])
                if started:
                    raise  # the server then cuts the answer short, which the client notices
                await internal_error(request_id)(scope, receive, send_with_id)


class OriginCheck:
    """Refuses requests that a web page was tricked into sending.

    The loopback address does not protect from browsers: a name that an attacker owns may
    resolve to it (DNS rebinding), and a page of any origin may post to it. So over TCP the
    Host header has to name this service, and a change must not come from a page of another
    origin. The unix socket is out of a browser's reach.

    :param names: under which the service is reached, beside the loopback's.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        self._app = app
        self._names = (*_LOOPBACK, *(name.lower() for name in names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _over_tcp(scope):
            headers = headers_of(scope)
            try:
                _check_host(headers, self._names)
                _check_origin(scope["method"], headers)
            except VmtuneError as error:
                await refuse(error, scope, receive, send)
                return
        await self._app(scope, receive, send)


class ExactPaths:
    """Refuses a method that a literal path does not support, before a pattern takes its last part
    for an id or the web UI for a page.

    :param named: the methods of such a path; empty for any other.
    """

    def __init__(self, app: ASGIApp, named: Callable[[str], frozenset[str]]) -> None:
        self._app = app
        self._named = named

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            methods = self._named(scope["path"])
            if methods and scope["method"] not in methods:
                await self._refuse(sorted(methods), scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _refuse(self, methods: list[str], scope: Scope, receive: Receive, send: Send) -> None:
        error, headers = method_not_allowed(scope["path"], scope["method"], methods)
        await drain(receive)
        response = problem_response(error, scope["state"]["request_id"], headers)
        await response(scope, receive, send)


def _over_tcp(scope: Scope) -> bool:
    server = scope.get("server")
    return not (server and server[1] is None)


def _name_of(authority: str) -> str:
    try:
        return (urlsplit(f"//{authority}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _check_host(headers: Mapping[str, str], names: Collection[str]) -> None:
    host = headers.get("host", "")
    # Any port: it may be reached through a forwarded one.
    if _name_of(host) not in names:
        raise ForeignHost(
            f"the Host header names {host[:60]!r}, which is not a name of this service",
            field="Host",
            remedy=f"use {' or '.join(names)} or the unix socket, or add the name to the "
            "setting allowed_hosts",
        )


def _check_origin(method: str, headers: Mapping[str, str]) -> None:
    origin = headers.get("origin")
    if method in READS or origin is None:
        return
    if origin.partition("://")[2] != headers.get("host"):
        raise ForeignOrigin(
            f"requests from pages of {origin[:60]!r} are not allowed",
            field="Origin",
            remedy="use a page of this service, or a program",
        )
