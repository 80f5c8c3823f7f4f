"""Request coalescing: identical reads that arrive at the same time share an answer.

Pages of the web UI and polling programs request the same lists, and a list of VMs queries each
QEMU. A read that arrives while the same is being answered gets the next answer, with all others
that arrive meanwhile: never one that was begun before the request, so that clients see their own
changes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.routes.common import PREFIX
from vmtune.model.access.scopes import Identity
from vmtune.services.coalescing import Coalescer

_PATHS = tuple(
    f"{PREFIX}/{what}"
    for what in (
        "applications", "assignments", "campaigns", "drifts", "hosts", "migrations", "profiles",
        "services", "vms",
    )
)  # fmt: skip
"""Reads that have the same answer for all callers with the same rights, and are not streamed."""
_SHARE, _MAX_INTERVAL_S = 0.2, 0.05
"""One read takes at most a fifth of the service's time, but is answered at least 20 times a
second."""


@dataclass(slots=True)
class _Answer:
    """The answer to the request *id*, and what its route has noted."""

    id: str
    messages: list[Message] = field(default_factory=list)
    route: object = None


class CoalescingMiddleware:
    """Answers equal reads of callers with the same rights by one call."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._answers = Coalescer[_Answer](_SHARE, _MAX_INTERVAL_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_shareable(scope):
            await self._app(scope, receive, send)
            return
        who: Identity = scope["state"]["identity"]
        key = (who.rights, scope["path"], scope["query_string"])
        answer = await self._answers.run(key, lambda: self._ask(scope))
        of_another = answer.id != scope["state"]["request_id"]
        if of_another and answer.messages[0]["status"] != 200:
            # A problem names the request that met it.
            await self._app(scope, receive, send)
            return
        scope["route"] = answer.route
        for message in answer.messages:
            await send(message)

    async def _ask(self, scope: Scope) -> _Answer:
        answer = _Answer(scope["state"]["request_id"])

        async def keep(message: Message) -> None:
            answer.messages.append(message)

        await self._app(scope, _no_body(), keep)
        answer.route = scope.get("route")
        return answer


def _is_shareable(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "GET" and path.startswith(_PATHS)


def _no_body() -> Receive:
    """The ``receive`` of a shared read. It does not report a disconnected client: others wait as
    well."""
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive
