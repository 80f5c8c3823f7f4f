"""Times each request by the template of its route, and knows /metrics by its usual name."""

from __future__ import annotations

import time

import structlog
from fastapi.routing import APIRoute
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.routes.common import PREFIX
from vmtune.services.metrics import telemetry

log = structlog.get_logger(__name__)

METRICS_PATH = "/metrics"
"""Prometheus's default path: the same as /api/v1/metrics."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Counts an answer when it begins: a stream of events ends only with its reader."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == METRICS_PATH:
            path = PREFIX + METRICS_PATH
            scope = {**scope, "path": path, "raw_path": path.encode()}
        began_s = time.perf_counter()

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                took_s = time.perf_counter() - began_s
                method = scope["method"] if scope["method"] in _METHODS else "other"
                route = template(scope)
                telemetry.request_answered(method, route, message["status"], took_s)
            await send(message)

        await self._app(scope, receive, noting)


def template(scope: Scope) -> str:
    """The template of the route that a request has reached; ``web`` for the web UI, ``none`` where
    it has reached none. Never the requested path: there is no limit to their number."""
    route = scope.get("route")
    if isinstance(route, Mount):
        return "web"
    if not isinstance(route, Route):
        return "none"
    path = route.path_format
    # An included route does not know the prefix that it is included under.
    return PREFIX + path if isinstance(route, APIRoute) and not path.startswith(PREFIX) else path
