"""Answers that are kept, as bytes, for as long as what they show has not changed.

A route says how long at most: ``dependencies=[READ, STORED]`` where all that it shows is in the
database, ``LIVE`` where it asks hosts, ``FOLLOWED`` where it shows samples or events. Before a kept
answer is given again, the caller is authenticated as ever, and nothing may have been written to the
database since the answer was begun (:class:`~vmtune.services.freshness.Freshness`), but what such
routes alone show. One answer is computed at a time: those who ask the same meanwhile wait for it,
and then, if something was written before they came, for one more. One that becomes too old soon and
is asked for is computed ahead, so that nobody waits for it. Callers that are restricted to some
hosts or VMs are never answered from here: what they may see can depend on where a VM is at that
moment.

Kept answers have an ETag; a request that names it is answered 304.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from cachetools import LRUCache
from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.wiring.deps import Container
from vmtune.model.access.scopes import Identity
from vmtune.storage.changes import Mark

_MAX_BYTES = 32 << 20
_MAX_ANSWER_BYTES = 1 << 20
_MAX_PATHS = 10_000
_AHEAD = 2.0
"""How long ahead an answer is computed again, in parts of the time that it took the last time."""
_IF_NONE_MATCH = b"if-none-match"
_OF_THE_BODY = frozenset({b"content-length", b"content-type"})


class Keeps:
    """Says that a route's answer may be given again.

    :param max_age_s: for how long at most, if nothing is written meanwhile.
    :param progress: it shows samples or events, which are written all the time.
    """

    def __init__(self, max_age_s: float, progress: bool = False) -> None:
        self.max_age_s = max_age_s
        self.progress = progress

    async def __call__(self) -> None:
        """Nothing: the middleware looks at it."""


STORED = Depends(Keeps(1.0))
LIVE = Depends(Keeps(0.2))
FOLLOWED = Depends(Keeps(1.0, progress=True))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    :param begun_at: the loop's time; *mark* the database's then.
    :param took_s: for how long it was computed.
    :param keeps: for how long it may be given again.
    """

    begun_at: float
    took_s: float
    keeps: Keeps
    mark: Mark | None
    route: object
    start: Message
    body: bytes
    etag: bytes

    def holds(self, now: float, mark: Mark | None) -> bool:
        """Whether it may be given to who came at *now*, when the database's mark was *mark*.

        One that was begun later shows all that was written until then.
        """
        if now <= self.begun_at:
            return True
        if mark is None or self.mark is None or now - self.begun_at >= self.keeps.max_age_s:
            return False
        if self.keeps.progress:
            return self.mark.whole == mark.whole
        return self.mark.settled == mark.settled

    def is_due(self, now: float) -> bool:
        """Whether it is to be computed again, so that the next is there before this is too old. Not
        in the first half of its age: what takes long would be computed all the time."""
        max_age_s = self.keeps.max_age_s
        ahead_s = min(max_age_s / 2, _AHEAD * self.took_s)
        return now - self.begun_at >= max_age_s - ahead_s


class KeptAnswers:
    """Gives kept answers, and keeps those of routes that say so.

    :param max_bytes: of all bodies together; the ones used longest ago go first.
    """

    def __init__(self, app: ASGIApp, max_bytes: int = _MAX_BYTES) -> None:
        self._app = app
        self._answers: LRUCache[Hashable, Answer] = LRUCache(
            max_bytes, getsizeof=lambda answer: len(answer.body)
        )
        self._renewals: dict[Hashable, asyncio.Future[None]] = {}
        # Of which answers were kept: who asks a route that keeps none must not wait for others.
        self._paths: LRUCache[str, None] = LRUCache(_MAX_PATHS)
        self._ahead: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        who: Identity = scope["state"]["identity"]
        container: Container | None = scope["app"].state.container
        if container is None or not who.rights.reach.is_everything:
            await self._app(scope, receive, send)
            return
        key = (who.rights, scope["path"], scope["query_string"])
        loop = asyncio.get_running_loop()
        now = loop.time()
        mark = await container.freshness.mark()

        def good() -> Answer | None:
            kept = self._answers.get(key)
            return kept if kept is not None and kept.holds(now, mark) else None

        while (kept := good()) is None and key in self._renewals:
            await asyncio.shield(self._renewals[key])
        if kept is not None:
            scope["route"] = kept.route
            if kept.is_due(now) and key not in self._renewals:
                self._renew_ahead(key, container, scope)
            await _give(kept, scope, send)
        elif scope["path"] in self._paths:
            await self._renew(key, container, scope, receive, send)
        else:
            await self._app(scope, receive, _Capture(self, key, now, mark, scope, send).send)

    async def _renew(
        self, key: Hashable, container: Container, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Compute an answer, for which others wait."""
        loop = asyncio.get_running_loop()
        begun_at = loop.time()
        done = self._renewals.setdefault(key, loop.create_future())
        try:
            mark = await container.freshness.mark()
            await self._app(scope, receive, _Capture(self, key, begun_at, mark, scope, send).send)
        finally:
            self._renewed(key, done)

    def _renew_ahead(self, key: Hashable, container: Container, scope: Scope) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            """Nobody waits for it."""

        async def renew() -> None:
            # Who asks next is told why it fails.
            with suppress(Exception):
                own = {**scope, "state": dict(scope["state"])}
                await self._renew(key, container, own, receive, send)

        self._renewals[key] = asyncio.get_running_loop().create_future()  # before it begins
        task = asyncio.create_task(renew(), name=f"renew {scope['path']}")
        self._ahead.add(task)
        task.add_done_callback(self._ahead.discard)

    def _renewed(self, key: Hashable, done: asyncio.Future[None]) -> None:
        if self._renewals.get(key) is done:
            del self._renewals[key]
        if not done.done():
            done.set_result(None)

    def keep(self, key: Hashable, path: str, answer: Answer) -> None:
        """Give this answer to equal requests, and let those go on who wait for it."""
        self._answers.pop(key, None)
        largest = min(_MAX_ANSWER_BYTES, self._answers.maxsize)
        if answer.mark is not None and len(answer.body) <= largest:
            self._answers[key] = answer
            self._paths[path] = None
        renewal = self._renewals.get(key)
        if renewal is not None:
            self._renewed(key, renewal)


class _Capture:
    """Passes an answer on, and keeps it if its route says so."""

    def __init__(
        self,
        kept: KeptAnswers,
        key: Hashable,
        begun_at: float,
        mark: Mark | None,
        scope: Scope,
        send: Send,
    ) -> None:
        self._kept = kept
        self._key = key
        self._begun_at = begun_at
        self._mark = mark
        self._scope = scope
        self._send = send
        self._start: Message | None = None
        self._keeps: Keeps | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """What the application sends."""
        if message["type"] == "http.response.start":
            keeps: Keeps | None = getattr(self._scope.get("route"), "keeps", None)
            if message["status"] != 200 or keeps is None or _has_etag(message):
                await self._send(message)
            else:
                self._start, self._keeps = message, keeps
            return
        if self._start is None or self._keeps is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        route = self._scope["route"]
        etag = b'"%s"' % hashlib.blake2b(self._body, digest_size=12).hexdigest().encode()
        headers = [*self._start["headers"], (b"etag", etag)]
        start = {**self._start, "headers": headers}
        took_s = asyncio.get_running_loop().time() - self._begun_at
        answer = Answer(
            self._begun_at, took_s, self._keeps, self._mark, route, start, self._body, etag
        )
        self._kept.keep(self._key, self._scope["path"], answer)
        await _give(answer, self._scope, self._send)


async def _give(answer: Answer, scope: Scope, send: Send) -> None:
    if _knows(scope, answer.etag):
        headers = [each for each in answer.start["headers"] if each[0] not in _OF_THE_BODY]
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    await send(answer.start)
    await send({"type": "http.response.body", "body": answer.body})


def _knows(scope: Scope, etag: bytes) -> bool:
    """Whether the request names the answer's ETag."""
    named = [value for name, value in scope["headers"] if name == _IF_NONE_MATCH]
    return any(
        each.strip().removeprefix(b"W/") in (etag, b"*")
        for value in named
        for each in value.split(b",")
    )


def _has_etag(start: Message) -> bool:
    return any(name == b"etag" for name, _ in start["headers"])


def keeps(route: APIRoute) -> Keeps | None:
    """Whether, and for how long, a route's answers may be given again."""
    return next(_said([route.dependant]), None)


def _said(dependants: Iterable[Dependant]) -> Iterator[Keeps]:
    for dependant in dependants:
        if isinstance(dependant.call, Keeps):
            yield dependant.call
        yield from _said(dependant.dependencies)
