"""What happens around every request: its id, its body's limits, and checks of its origin."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.errors import (
    BodyTooLarge,
    ForeignHost,
    ForeignOrigin,
    WrongMediaType,
    internal_error,
    method_not_allowed,
    problem_response,
)
from vmtune.errors import VmtuneError

log = structlog.get_logger(__name__)

_JSON = "application/json"
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
_DRAIN_WITHIN_S = 2.0
_DRAIN_BYTES = 16 << 20


def _headers(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


class RequestContext:
    """Gives each request an id, which its answer and log lines contain, and answers unexpected
    errors without a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(6)
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


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The largest body that is taken, and the setting that says so."""

    most_bytes: int
    setting: str


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
            headers = _headers(scope)
            try:
                _check_host(headers, self._names)
                _check_origin(scope["method"], headers)
            except VmtuneError as error:
                await refuse(error, scope, receive, send)
                return
        await self._app(scope, receive, send)


class BodyLimits:
    """Refuses bodies that are not JSON, or too large.

    :param max_body_bytes: the largest body that is accepted.
    :param others: other limits, by path.
    :param media_types: what is accepted instead of JSON, by path.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        others: Mapping[str, BodyLimit] | None = None,
        media_types: Mapping[str, str] | None = None,
    ) -> None:
        self._app = app
        self._limit = BodyLimit(max_body_bytes, "max_body_bytes")
        self._others = others or {}
        self._media_types = media_types or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        limit = self._others.get(scope["path"], self._limit)
        try:
            _check_media_type(headers, self._media_types.get(scope["path"], _JSON))
            _check_length(headers, limit)
        except VmtuneError as error:
            await refuse(error, scope, receive, send)
            return
        await self._app(scope, self._counting(receive, limit), send)

    def _counting(self, receive: Receive, limit: BodyLimit) -> Receive:
        """*receive*, that stops once too much has come: the length need not be announced."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit.most_bytes:
                await _drain(receive)
                # An error of this class passes through the code that reads the body.
                raise HTTPException(413) from _too_large(limit)
            return message

        return counted


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
        await _drain(receive)
        response = problem_response(error, scope["state"]["request_id"], headers)
        await response(scope, receive, send)


async def refuse(error: VmtuneError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with *error*, once the body has come: a client that is cut off while it sends
    does not see why."""
    await _drain(receive)
    response: Response = problem_response(error, scope["state"]["request_id"])
    await response(scope, receive, send)


async def _drain(receive: Receive) -> None:
    """Read a body to its end, within bounds."""
    seen = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_WITHIN_S):
            while seen <= _DRAIN_BYTES:
                message = await receive()
                seen += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _check_length(headers: Mapping[str, str], limit: BodyLimit) -> None:
    length = headers.get("content-length", "")
    if length.isdigit() and (len(length) > 18 or int(length) > limit.most_bytes):
        raise _too_large(limit)


def _too_large(limit: BodyLimit) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is larger than {limit.most_bytes:,} bytes",
        field="body",
        remedy=f"send less, or raise the setting {limit.setting}",
    )


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


def _check_media_type(headers: Mapping[str, str], wanted: str) -> None:
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if not has_body:
        return
    sent = headers.get("content-type", "")
    if sent.partition(";")[0].strip().lower() != wanted:
        raise WrongMediaType(
            f"the Content-Type is {sent[:60]!r}" if sent else "the Content-Type is missing",
            field="Content-Type",
            remedy=f"send {wanted}",
        )
