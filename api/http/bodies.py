"""Bodies of requests: refused before they are parsed where their type, size or number of values is
beyond what the route takes.

A route that takes more than 64 KiB, or less, says so: ``dependencies=[PROFILE, LARGE_BODY]``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.errors import BodyTooLarge, WrongMediaType, problem_response
from vmtune.errors import VmtuneError

_JSON = "application/json"
_DRAIN_WITHIN_S = 2.0
_DRAIN_BYTES = 16 << 20
_USUAL_BYTES = 64 << 10
_BYTES_A_VALUE = 50
"""A body may have one value for so many bytes of its limit. What is parsed and refused costs the
service's time by its values, not by its bytes."""


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The largest body that is taken, and the setting that says so; empty for none."""

    max_bytes: int
    setting: str = ""

    @property
    def max_values(self) -> int:
        """As many values as a JSON body may have."""
        return self.max_bytes // _BYTES_A_VALUE

    def check_length(self, headers: Mapping[str, str]) -> None:
        """:raise BodyTooLarge: a larger body is announced."""
        length = headers.get("content-length", "")
        if length.isdigit() and (len(length) > 18 or int(length) > self.max_bytes):
            raise self.exceeded()

    def check_values(self, body: bytes) -> None:
        """Bound the values of a body before it is parsed. Commas and brackets within texts count
        as well: the bound is far beyond what texts of the API have.

        :raise BodyTooLarge: there are more values.
        """
        values = body.count(b",") + body.count(b"[") + body.count(b"{")
        if values > self.max_values:
            raise BodyTooLarge(
                f"the body has more than {self.max_values:,} values",
                field="body",
                code="too_many_values",
                remedy=self._remedy,
            )

    def exceeded(self) -> BodyTooLarge:
        """The error for a body that is larger."""
        return BodyTooLarge(
            f"the body is larger than {self.max_bytes:,} bytes", field="body", remedy=self._remedy
        )

    @property
    def _remedy(self) -> str:
        return f"send less, or raise the setting {self.setting}" if self.setting else "send less"

    def counting(self, receive: Receive) -> Receive:
        """*receive*, that stops once too much has come: the length need not be announced."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.max_bytes:
                await drain(receive)
                # An error of this class passes through the code that reads the body.
                raise HTTPException(413) from self.exceeded()
            return message

        return counted


class Takes:
    """Says how large a route's body may be.

    :param max_bytes: None for as large as the service takes any (``max_body_bytes``).
    """

    def __init__(self, max_bytes: int | None) -> None:
        self.max_bytes = max_bytes

    async def __call__(self) -> None:
        """Nothing: the route looks at it before it reads the body."""


TINY_BODY = Depends(Takes(4 << 10))
LARGE_BODY = Depends(Takes(None))


def limit_of(route: APIRoute) -> BodyLimit | None:
    """The limit of a route of its own; None where only the service's own applies."""
    said = next(_takes([route.dependant]), None)
    if said is None:
        return BodyLimit(_USUAL_BYTES)
    return None if said.max_bytes is None else BodyLimit(said.max_bytes)


def _takes(dependants: Iterable[Dependant]) -> Iterator[Takes]:
    for dependant in dependants:
        if isinstance(dependant.call, Takes):
            yield dependant.call
        yield from _takes(dependant.dependencies)


class BoundedRequest(Request):
    """A request whose body is bounded in bytes and in values."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: BodyLimit) -> None:
        super().__init__(scope, limit.counting(receive), send)
        self._limit = limit

    async def bounded_body(self) -> bytes:
        """The body as it came.

        :raise BodyTooLarge: it has too many bytes or values.
        """
        body = await self.body()
        self._limit.check_values(body)
        return body

    async def json(self) -> Any:  # any JSON
        """The body's JSON.

        :raise HTTPException: it has too many values; caused by the error that says so.
        """
        try:
            self._limit.check_values(await self.body())
        except BodyTooLarge as error:
            raise HTTPException(413) from error
        return await super().json()


class BodyLimits:
    """Refuses bodies that are not JSON, or larger than any route takes.

    :param limit: of all bodies.
    :param others: other limits, by path.
    :param media_types: what is accepted instead of JSON, by path.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit: BodyLimit,
        others: Mapping[str, BodyLimit] | None = None,
        media_types: Mapping[str, str] | None = None,
    ) -> None:
        self._app = app
        self._limit = limit
        self._others = others or {}
        self._media_types = media_types or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        limit = self._others.get(scope["path"], self._limit)
        try:
            _check_media_type(headers, self._media_types.get(scope["path"], _JSON))
            limit.check_length(headers)
        except VmtuneError as error:
            await refuse(error, scope, receive, send)
            return
        scope["state"]["body_limit"] = limit
        await self._app(scope, limit.counting(receive), send)


def headers_of(scope: Scope) -> Mapping[str, str]:
    """The request's headers; of those sent twice the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def refuse(error: VmtuneError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with *error*, once the body has come: a client that is cut off while it sends
    does not see why."""
    await drain(receive)
    response: Response = problem_response(error, scope["state"]["request_id"])
    await response(scope, receive, send)


async def drain(receive: Receive) -> None:
    """Read a body to its end, within bounds."""
    seen = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_WITHIN_S):
            while seen <= _DRAIN_BYTES:
                message = await receive()
                seen += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


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
