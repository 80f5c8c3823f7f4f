"""Routers that check rights before they read bodies, and are passed over quickly by requests that
are for others."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from vmtune.api.auth.security import check_scope, declared, name_act
from vmtune.api.http.bodies import BodyLimit, BoundedRequest, drain, limit_of
from vmtune.api.http.idempotency import keyed_of, refuse_key
from vmtune.api.http.kept_answers import Keeps, keeps
from vmtune.errors import VmtuneError
from vmtune.model.access.scopes import Scope as Right
from vmtune.model.idempotency import HEADER

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]  # any: FastAPI's


class ScopesFirst(APIRoute):
    """Checks the scope that a route declares, and the size of the body, before the body is read.
    FastAPI by itself parses the body first: a token for the metrics could have it parse 60 MB."""

    @cached_property
    def keeps(self) -> Keeps | None:
        """For how long its answers may be given again; None for not at all."""
        return keeps(self)

    def get_route_handler(self) -> _Handler:
        """What answers a request."""
        handle = super().get_route_handler()
        scopes, own = declared(self), limit_of(self)
        keyed = keyed_of(self)
        refuses_keys = "POST" in (self.methods or ()) and keyed is None and scopes != [Right.READ]

        async def guarded(request: Request) -> Response:
            name_act(request, self.name, scopes)
            limit: BodyLimit = request.state.body_limit
            if own is not None and own.max_bytes < limit.max_bytes:
                limit = own
            try:
                for scope in scopes:
                    if scope is not None:
                        check_scope(request.state.identity, scope)
                limit.check_length(request.headers)
                if refuses_keys and HEADER in request.headers:
                    raise refuse_key(self.name)
            except VmtuneError:
                await drain(request.receive)
                raise
            bounded = BoundedRequest(request.scope, request.receive, request._send, limit)
            key = request.headers.get(HEADER) if keyed is not None else None
            if keyed is None or key is None:
                return await handle(bounded)
            return await keyed.answer(bounded, handle, self, key)

        return guarded


class Router(APIRouter):
    """Tries its patterns only on paths whose first part below the API's prefix is one of its own.
    To try all patterns of all routers on each took 7 % of the service's time under small reads."""

    def __init__(self, **given: Any) -> None:  # any: FastAPI's
        super().__init__(**given, route_class=ScopesFirst)

    @cached_property
    def _first_parts(self) -> frozenset[str]:
        return frozenset(
            each.path.split("/")[1] for each in self.routes if isinstance(each, APIRoute)
        )

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether, and how, a route of it takes the request."""
        parts: list[str] = scope["path"].split("/", 4)  # of /api/v1/hosts/a/vms the fourth
        if len(parts) < 4 or parts[3] not in self._first_parts:
            return Match.NONE, {}
        return super().matches(scope)
