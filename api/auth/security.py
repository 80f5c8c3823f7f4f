"""Who may call a route: each route declares its scope; a route without one is closed.

@router.get("", responses=problems(), dependencies=[READ])
async def list_things(on: Services, who: Who) -> ThingPage: ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from vmtune.errors import Forbidden, Unauthenticated
from vmtune.model.access.scopes import Identity, Kind, Scope, with_implied


async def who(request: Request) -> Identity:
    """The caller, as authenticated by the middleware."""
    return cast(Identity, request.state.identity)


Who = Annotated[Identity, Depends(who)]


class Needs:
    """Admits callers that have a scope.

    :param scope: None for everybody, also without credentials.
    """

    def __init__(self, scope: Scope | None) -> None:
        self.scope = scope

    async def __call__(self, identity: Who) -> None:
        """:raise Unauthenticated: the caller is not authenticated.
        :raise Forbidden: the caller lacks the scope.
        """
        if self.scope is not None:
            check_scope(identity, self.scope)


def check_scope(identity: Identity, scope: Scope) -> None:
    """Admit a caller that has *scope*.

    :raise Unauthenticated: the caller is not authenticated.
    :raise Forbidden: the caller lacks it.
    """
    if identity.rights.allow(scope):
        return
    if identity.kind is Kind.NOBODY:
        raise unknown()
    has = ", ".join(s for s in Scope if s in with_implied(identity.rights.scopes)) or "none"
    raise Forbidden(
        f"{identity} has no permission: this needs the scope {scope}, granted: {has}",
        field="Authorization",
        code="scope_missing",
        remedy=f"use a token with the scope {scope}",
    )


def unknown() -> Unauthenticated:
    """The error for a caller without credentials."""
    return Unauthenticated(
        "a request over TCP needs credentials",
        field="Authorization",
        code="token_missing",
        remedy="send `Authorization: Bearer TOKEN` with a token of `vmtune token create`, "
        "or sign in",
    )


READ, PROFILE, APPLY, MIGRATE, BENCH, HOST, METRICS, HOOK, ADMIN = (
    Depends(Needs(s)) for s in Scope
)
PUBLIC = Depends(Needs(None))
SIGN_IN = ("POST", "/api/v1/session")
OPEN = frozenset(
    {
        ("GET", "/api/v1/live"),
        SIGN_IN,
        ("GET", "/api/v1/session/oidc"),
        ("GET", "/api/v1/session/oidc/callback"),
    }
)
"""Methods and paths that are answered without credentials."""
assert tuple(Scope) == (
    *("read", "profile", "apply", "migrate", "bench", "host", "metrics", "hook", "admin"),
)


def declared(route: APIRoute) -> list[Scope | None]:
    """The scopes that a route declares, None for everybody; empty where it declares none."""
    return [found.scope for found in _needs([route.dependant])]


def _needs(dependants: Iterable[Dependant]) -> Iterable[Needs]:
    for dependant in dependants:
        if isinstance(dependant.call, Needs):
            yield dependant.call
        yield from _needs(dependant.dependencies)


async def closed_unless_declared(request: Request, identity: Who) -> None:
    """A route without a declared scope is for administrators alone.

    Also names the request for the audit log.
    """
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    scopes = declared(route)
    name_act(request, route.name, scopes)
    if not scopes:
        check_scope(identity, Scope.ADMIN)


def name_act(request: Request, action: str, scopes: Sequence[Scope | None]) -> None:
    """Name the request for the audit log.

    :param scopes: those that its route declares.
    """
    request.state.act.action = action
    request.state.only_reads = list(scopes) == [Scope.READ]
