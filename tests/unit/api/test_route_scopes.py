"""Every route says who may call it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount, Route

from tests.support.served.api import ROOT, Api, as_peer
from vmtune.api.auth.authentication import OPEN
from vmtune.api.auth.security import READ, declared
from vmtune.api.main import create_app
from vmtune.api.pages.web import WebUi
from vmtune.config.settings import Settings
from vmtune.model.access.scopes import FULL, Identity, Kind, Rights, Scope
from vmtune.services.access.users import LocalUsers

READING_POSTS = {
    ("POST", "/api/v1/campaigns/forecast"),
    ("POST", "/api/v1/drift-scans"),
    ("POST", "/api/v1/studies/plan"),
    ("POST", "/api/v1/hosts/{name}/evacuations/plan"),
    ("POST", "/api/v1/profiles/check"),
    ("POST", "/api/v1/vms/{vm}/plan"),
    ("POST", "/api/v1/vms/{vm}/forecasts"),
    ("POST", "/api/v1/vms/{vm}/verify"),
    ("DELETE", "/api/v1/session"),  # of one's own
}
"""What changes nothing although it is no GET."""
FOR_EVERYBODY = OPEN
PLAIN = {
    "/api/v1/openapi.json",
    "/api/v1/openapi-3.0.json",
    "/api/v1/docs",
    "/api/v1/docs/plain",
}
"""Routes that are none of FastAPI's; the middleware lets only those in who may read."""


def _flat(routes: list[BaseRoute], prefix: str = "") -> Iterator[tuple[str, BaseRoute]]:
    """Each route of an application with its whole path, however deep it was included."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if isinstance(inner, APIRouter):
            context = route.include_context  # type: ignore[attr-defined] # FastAPI's own
            yield from _flat(inner.routes, prefix + context.prefix)
        else:
            yield prefix + getattr(route, "path", "?"), route


ROUTES = list(_flat(create_app(Settings()).routes))
API_ROUTES = [
    pytest.param(path, route, id=f"{'/'.join(sorted(route.methods or ()))} {path}")
    for path, route in ROUTES
    if isinstance(route, APIRoute)
]


def test_the_walk_sees_every_route() -> None:
    document = create_app(Settings()).openapi()
    walked = {
        (method.lower(), path)
        for path, route in ROUTES
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }
    listed = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert walked == listed
    assert len(walked) > 30


def test_nothing_is_mounted_past_the_scopes() -> None:
    others = [(path, route) for path, route in ROUTES if not isinstance(route, APIRoute)]
    mounts = [(path, type(route.app)) for path, route in others if isinstance(route, Mount)]
    assert mounts == [("", WebUi)]  # whose files hold nothing of the service
    assert {path for path, route in others if isinstance(route, Route)} == PLAIN


@pytest.mark.parametrize(("path", "route"), API_ROUTES)
def test_a_route_declares_one_scope(path: str, route: APIRoute) -> None:
    found = declared(route)
    assert len(found) == 1, (
        f"{path}: say dependencies=[READ] or another of vmtune.api.auth.security"
    )
    (scope,) = found
    for method in route.methods or ():
        known = (method, path)
        assert (scope is None) == (known in FOR_EVERYBODY)
        if method != "GET" and scope is Scope.READ:
            assert known in READING_POSTS, f"{known} changes something: it needs another scope"


async def test_a_route_that_declares_nothing_is_for_administrators(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is what a forgotten declaration comes to, until the test above finds it."""
    app = create_app(api.container.settings, api.container)
    router = APIRouter()

    @router.get("/forgotten")
    async def forgotten() -> str:
        return "it"

    @router.get("/declared", dependencies=[READ])
    async def also() -> str:
        return "it"

    app.include_router(router, prefix="/api/v1")
    app.router.routes.insert(0, app.router.routes.pop())  # the web UI takes what is left over
    reader = Identity(Kind.USER, "7", "reader", Rights(frozenset({Scope.READ})))
    for scopes, status in ((FULL, 200), (reader.rights, 403)):
        asks = replace(reader, rights=scopes)

        async def identify(*_: object, asks: Identity = asks) -> Identity:
            return asks

        monkeypatch.setattr(LocalUsers, "identify", identify)
        transport = httpx.ASGITransport(as_peer(app, ROOT))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.get("/api/v1/declared")).status_code == 200
            answer = await client.get("/api/v1/forgotten")
            assert answer.status_code == status
    (refused,) = answer.json()["errors"]
    assert refused["code"] == "scope_missing"
    assert "this needs the scope admin, granted: read" in refused["message"]
