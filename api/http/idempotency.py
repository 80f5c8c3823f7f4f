"""Honours ``Idempotency-Key`` (draft-ietf-httpapi-idempotency-key-header): a request that is sent
again with the same key gets the same answer, and is executed once.

A route says so: ``dependencies=[MIGRATE, keyed(Begun.MIGRATION, _again, "/migrations/{id}")]``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from vmtune.api.http.bodies import BoundedRequest
from vmtune.api.wiring.deps import Container
from vmtune.errors import InvalidInput
from vmtune.model.access.scopes import Identity
from vmtune.model.idempotency import HEADER, MAX_LENGTH, Begun, Claim, KeptAnswer, check_key
from vmtune.model.idempotency import fingerprint as fingerprint_of

REPLAYED = "Idempotency-Replayed"
_KEPT_HEADERS = ("content-type", "location", "etag")
_PREFIX = "/api/v1"
View = Callable[[Container, str], Awaitable[BaseModel]]
"""The answer about what a request began, by its id or name."""
_Handle = Callable[[Request], Awaitable[Response]]


class Keyed:
    """Says that a route honours ``Idempotency-Key``.

    :param begins: what it begins; None for what leaves no record of its own: that is executed
        again if the service was killed before it answered.
    :param view: see :data:`View`.
    :param location: what it began, below the prefix; ``{id}`` stands for its id or name.
    """

    def __init__(
        self, begins: Begun | None = None, view: View | None = None, location: str = ""
    ) -> None:
        assert (begins is None) == (view is None)
        self.begins = begins
        self._view = view
        self._location = location

    async def __call__(
        self,
        key: Annotated[
            str | None,
            Header(
                alias=HEADER,
                description="Chosen by the caller, a random UUID for example. A request that is "
                "repeated with the same key is executed once, and answered as the first time. "
                "Another request with the same key is refused.",
                min_length=1,
                max_length=MAX_LENGTH,
            ),
        ] = None,
    ) -> None:
        """Nothing: the route looks at it before it reads the body."""

    async def answer(
        self, request: BoundedRequest, handle: _Handle, route: APIRoute, key: str
    ) -> Response:
        """The answer to a request that has a key."""
        on: Container = request.app.state.container
        claim = await self._claim(request, route.name, key)
        found = await on.idempotency.claim(claim)
        if isinstance(found, KeptAnswer):
            request.state.only_reads = True  # nothing for the audit log: it was logged then
            return _replayed(found.status, found.headers, found.body)
        if found is not None:
            request.state.only_reads = True
            return await self._begun(request, on, found, route.status_code or 200)
        try:
            with on.idempotency.carrying_out(claim):
                response = await handle(request)
        except Exception:
            await on.idempotency.release(claim)
            raise
        if response.status_code < 400:
            await on.idempotency.keep(claim, _kept(response))
        else:
            await on.idempotency.release(claim)
        return response

    async def _claim(self, request: BoundedRequest, action: str, key: str) -> Claim:
        who: Identity = request.state.identity
        target = f"{request.url.path}?{request.url.query}"
        body = await request.bounded_body()
        fingerprint = fingerprint_of(request.method, target, body)
        return Claim(who.kind, who.id, check_key(key), fingerprint, action, self.begins)

    async def _begun(self, request: Request, on: Container, subject: str, status: int) -> Response:
        assert self._view is not None
        shown = await self._view(on, subject)
        where = self._location.format(**{**request.path_params, "id": subject})
        headers = {"content-type": "application/json", "location": _PREFIX + where}
        return _replayed(status, headers, shown.model_dump_json(by_alias=True))


def keyed(begins: Begun | None = None, view: View | None = None, location: str = "") -> Any:
    """A dependency that says that a route honours ``Idempotency-Key``: see :class:`Keyed`."""
    return Depends(Keyed(begins, view, location))


KEYED = keyed()
"""For a request that begins nothing that has a record of its own."""


def keyed_of(route: APIRoute) -> Keyed | None:
    """What a route says; None where it does not honour keys."""
    return next(_said([route.dependant]), None)


def _said(dependants: Iterable[Dependant]) -> Iterator[Keyed]:
    for dependant in dependants:
        if isinstance(dependant.call, Keyed):
            yield dependant.call
        yield from _said(dependant.dependencies)


def refuse_key(action: str) -> InvalidInput:
    """The error for a key at a route that changes something and keeps no answers: to ignore the
    key would let the caller believe that it can repeat the request."""
    return InvalidInput(
        f"{action} honours no key",
        field=HEADER,
        code="idempotency_key_unsupported",
        remedy="leave it out; check the state before you repeat the request",
    )


def _kept(response: Response) -> KeptAnswer:
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return KeptAnswer(response.status_code, headers, bytes(response.body).decode())


def _replayed(status: int, headers: Mapping[str, str], body: str) -> Response:
    return Response(body, status, {**headers, REPLAYED: "true"})
