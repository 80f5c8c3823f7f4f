"""The application: routes, errors and middleware."""

from __future__ import annotations

import functools
import re
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute

from vmtune import __version__
from vmtune.api.auth.authentication import Authenticate
from vmtune.api.auth.security import closed_unless_declared
from vmtune.api.auth.sign_in_throttle import SignInThrottle
from vmtune.api.document import as_3_0, openapi_of
from vmtune.api.errors import add_handlers
from vmtune.api.http.audit import AuditMiddleware
from vmtune.api.http.bodies import BodyLimit, BodyLimits
from vmtune.api.http.coalescing import CoalescingMiddleware
from vmtune.api.http.kept_answers import KeptAnswers
from vmtune.api.http.metrics import RequestMetrics
from vmtune.api.http.middleware import ExactPaths, OriginCheck, RequestContext
from vmtune.api.pages.web import BUILT, WebUi
from vmtune.api.routes import (
    applications,
    assignments,
    audit,
    drift,
    evacuations,
    events,
    findings,
    forecasts,
    health,
    hooks,
    hosts,
    metrics,
    migrations,
    oidc,
    overview,
    pools,
    profile_templates,
    profiles,
    session,
    tokens,
    tunables,
    vms,
    webhooks,
)
from vmtune.api.routes import cluster as services
from vmtune.api.routes.bench import (
    campaigns,
    comparisons,
    reference,
    runs,
    scenarios,
    studies,
    trends,
)
from vmtune.api.routes.common import PREFIX
from vmtune.api.schemas.common import ProblemDocument
from vmtune.api.schemas.events import EventView
from vmtune.api.serving.traces import traced
from vmtune.api.validation import check_query
from vmtune.api.wiring.deps import Container
from vmtune.config.settings import Settings
from vmtune.rendering import render

ROUTERS: tuple[APIRouter, ...] = tuple(
    module.router
    for module in (
        health,
        metrics,
        session,
        oidc,
        tokens,
        audit,
        tunables,
        overview,
        hosts,
        services,
        findings,
        vms,
        drift,
        pools,
        profile_templates,
        profiles,
        assignments,
        applications,
        migrations,
        evacuations,
        forecasts,
        hooks,
        webhooks,
        scenarios,
        runs,
        campaigns,
        studies,
        comparisons,
        trends,
        reference,
        events,
    )
)


def create_app(settings: Settings, container: Container | None = None) -> FastAPI:
    """The application.

    :param container: the services; None for an application that only describes itself.
    """
    app = FastAPI(
        title="vmtune",
        summary="Tuning profiles for libvirt and QEMU VMs: applied, verified, measured",
        version=__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # FastAPI's own page needs scripts from the internet
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        dependencies=[Depends(closed_unless_declared), Depends(check_query)],
        telemetry=traced(),
    )
    app.state.container = container
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX)
    app.add_route(f"{PREFIX}/docs", _docs, include_in_schema=False)
    app.add_route(f"{PREFIX}/docs/plain", _plain_docs, include_in_schema=False)
    app.add_route(f"{PREFIX}/openapi-3.0.json", _openapi_3_0, include_in_schema=False)
    app.mount("/", WebUi())
    add_handlers(app, methods_at)
    # The last is the first that a request meets.
    app.add_middleware(CoalescingMiddleware)
    app.add_middleware(ExactPaths, named=_by_name)
    imports = BodyLimit(settings.max_import_bytes, "max_import_bytes")
    app.add_middleware(
        BodyLimits,
        limit=BodyLimit(settings.max_body_bytes, "max_body_bytes"),
        others={f"{PREFIX}/runs/import": imports},
        media_types={f"{PREFIX}{hooks.ARRIVING}": hooks.MEDIA_TYPE},
    )
    app.add_middleware(KeptAnswers)
    app.add_middleware(Authenticate)
    app.add_middleware(OriginCheck, names=settings.host_names)
    app.add_middleware(SignInThrottle)
    app.add_middleware(AuditMiddleware)
    app.add_middleware(RequestContext)
    app.add_middleware(RequestMetrics)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


async def _docs(request: Request) -> Response:
    """With search, and requests to try. All of it comes from this service."""
    if not (BUILT / "api-docs/swagger-ui-bundle.js").is_file():
        return await _plain_docs(request)
    return HTMLResponse(
        render("swagger.html"),
        headers={
            "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
            "img-src 'self' data:; style-src 'self' 'unsafe-inline'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        },
    )


async def _plain_docs(request: Request) -> Response:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return HTMLResponse(
        render("api.html", document=request.app.openapi()),
        headers={"Content-Security-Policy": policy},
    )


async def _openapi_3_0(request: Request) -> Response:
    return JSONResponse(as_3_0(request.app.openapi()))


def methods_at(path: str) -> list[str]:
    """The methods that *path* takes: by its own name if it has one, else by its pattern."""
    named = _by_name(path)
    if named:
        return sorted(named)
    below = path.removeprefix(PREFIX)
    fitting = [each for each in _routes() if each.path_regex.match(below)]
    return sorted({method for each in fitting for method in each.methods or ()} or {"GET"})


def _routes() -> list[APIRoute]:
    return [each for router in ROUTERS for each in router.routes if isinstance(each, APIRoute)]


@functools.cache
def _exact_paths() -> dict[str, frozenset[str]]:
    """The methods of each literal path, such as /runs/import, that a pattern such as /runs/{run}
    matches as well."""
    paths: dict[str, frozenset[str]] = {}
    for each in _routes():
        if not each.param_convertors:
            path = PREFIX + each.path
            paths[path] = paths.get(path, frozenset()) | (each.methods or set())
    return paths


@functools.cache
def _named_patterns() -> tuple[tuple[re.Pattern[str], frozenset[str]], ...]:
    """Likewise of each pattern such as /hosts/{name}/evacuations/plan, which one with more
    variables fits as well."""
    routes = _routes()
    own = {
        each.path: each
        for each in routes
        if each.param_convertors
        and any(
            other.path_regex.match(each.path)
            for other in routes
            if len(other.param_convertors) > len(each.param_convertors)
        )
    }
    return tuple(
        (found.path_regex, frozenset(m for r in routes if r.path == path for m in r.methods or ()))
        for path, found in own.items()
    )


def _by_name(path: str) -> frozenset[str]:
    """The methods of *path* if it is a literal one; else none."""
    exact = _exact_paths().get(path)
    if exact or not path.startswith(PREFIX):
        return exact or frozenset()
    below = path.removeprefix(PREFIX)
    fitting = (methods for pattern, methods in _named_patterns() if pattern.match(below))
    return next(fitting, frozenset())


def _operation_id(route: APIRoute) -> str:
    return route.name


def _openapi(app: FastAPI) -> dict[str, Any]:  # any: OpenAPI
    if app.openapi_schema is None:
        app.openapi_schema = openapi_of(app, ProblemDocument, EventView)
    return app.openapi_schema
