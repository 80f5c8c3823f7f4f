"""Finds out who asks, before any route sees the request."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from vmtune.api.deps import Container
from vmtune.api.errors import problem_response
from vmtune.domain.access import FULL, Identity, Kind
from vmtune.errors import VmtuneError

# Until there are tokens, who may log in to the machine may use the loopback port.
_LOOPBACK = Identity(Kind.USER, "", "over TCP", FULL)


class Authenticate:
    """Notes in ``scope["state"]["identity"]`` who asks: at the unix socket the user whose
    process connected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope["state"]  # any: Starlette's
        container: Container | None = scope["app"].state.container
        peer = state.get("peer")
        try:
            state["identity"] = container.users.identify(peer) if container and peer else _LOOPBACK
        except VmtuneError as error:
            await problem_response(error, state["request_id"])(scope, receive, send)
            return
        await self._app(scope, receive, send)
