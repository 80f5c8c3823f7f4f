"""The synchronous client."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from . import models as m
from .operations import Operations
from .remote.credentials import find_token
from .remote.errors import ClientError, ConnectionLost
from .remote.events import (
    PATH,
    SILENT_FOR_S,
    Connected,
    Heartbeat,
    Parser,
    ServerEvent,
    StreamItem,
    transient,
)
from .request import Request, Target, segment
from .waiting import Late, Watched

SOCKET = "/run/vmtune/vmtune.sock"


class Client(Operations):
    """Asks a service: a method for each operation, events, and waits.

    GET, PUT and DELETE, and POST with an idempotency key, which is made where none is given, are
    repeated while the service does not answer.

    :param url: ``https://NAME:PORT``; empty for the unix socket.
    :param token: needed with a URL.
    :param socket: the service's unix socket.
    :param transport: httpx's, instead of one for the address.
    :raise InvalidInput: the URL is none.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        socket: str = SOCKET,
        *,
        reason: str = "",
        timeout_s: float = 120.0,
        retry_for_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._target = Target(url, token, socket, reason, timeout_s, retry_for_s)
        self._http = httpx.Client(
            base_url=self._target.base,
            headers=self._target.headers,
            timeout=self._target.timeout,
            transport=transport or httpx.HTTPTransport(uds=None if url else socket),
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, **given: Any) -> Self:
        """As the command finds its service: VMTUNE_URL with VMTUNE_TOKEN, VMTUNE_TOKEN_FILE or
        ~/.config/vmtune/token; else VMTUNE_SOCKET, else the usual socket.

        :raise InvalidInput: the URL or the token file cannot be used.
        """
        url = environ.get("VMTUNE_URL", "")
        file = environ.get("VMTUNE_TOKEN_FILE")
        token = find_token(environ, Path(file) if file else None, remote=bool(url))
        return cls(url, token, environ.get("VMTUNE_SOCKET") or SOCKET, **given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _ask(self, request: Request) -> Any:  # any: as the operation says
        request, backoff = request.ready(), self._target.backoff()
        while True:
            try:
                return self._once(request)
            except ClientError as error:
                if not request.may_be_repeated(error):
                    raise
                time.sleep(backoff.wait_s(error))

    def _once(self, request: Request) -> Any:  # any: as the operation says
        try:
            response = self._http.request(
                request.method, request.target, headers=request.headers, json=request.body
            )
        except httpx.TransportError as error:
            raise request.failed(error, self._target.where) from error
        return request.answer(response)

    def items(self, of: Callable[..., Any], *given: Any, **query: Any) -> Iterator[Any]:
        """Every item of a list, page after page: ``items(client.list_vms, host="a")``."""
        after: str | None = None
        while True:
            page = of(*given, **query, after=after)
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def events(
        self, topic: str | None = None, subject: str | None = None, after: str = ""
    ) -> Iterator[StreamItem]:
        """Events without end: after each loss it connects again, and resumes after the last event.

        Each new connection first yields :class:`Connected`: what was read before may be out of
        date. :class:`Heartbeat` says that nothing happened.

        :param after: the id of an event: those stored since come first.
        :raise ClientError: the service refused, or did not answer for longer than *retry_for_s*.
        """
        backoff = self._target.backoff()
        while True:
            try:
                for item in self._stream({"topic": topic, "subject": subject}, after):
                    backoff.succeeded()
                    if isinstance(item, ServerEvent) and item.id:
                        after = item.id
                    yield item
            except ClientError as error:
                if not transient(error):
                    raise
                time.sleep(backoff.wait_s(error))

    def _stream(self, query: Mapping[str, Any], after: str) -> Iterator[StreamItem]:
        request = Request("GET", PATH, query)
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
        parser = Parser()
        try:
            with self._http.stream(
                "GET",
                request.target,
                headers=headers,
                timeout=httpx.Timeout(SILENT_FOR_S, connect=5.0),
            ) as response:
                if response.status_code >= 400:
                    response.read()
                    request.answer(response)
                first = True
                for line in response.iter_lines():
                    item = parser.feed(line)
                    if item is None:
                        continue
                    if first:
                        yield Connected()
                    if not (first and isinstance(item, Heartbeat)):
                        yield item
                    first = False
        except httpx.TransportError as error:
            raise request.failed(error, self._target.where) from error
        raise ConnectionLost("the service closed the event stream", remedy="try again")

    def wait(
        self, watched: Watched, id: str, within_s: float | None = None, **more: str
    ) -> dict[str, Any]:  # any: a record
        """The record once it has ended. It is read again at each of its events, at each heartbeat
        (15 s at most), and after each reconnection: no end is missed.

        :raise Late: it has not ended within *within_s*, which is looked at when something comes.
        :raise ClientError: see :meth:`events`.
        """
        late = Late.after(within_s, id)
        for item in self.events(watched.topic, id):
            if not watched.is_progress(item):
                path = watched.path.format(id=segment(id), **more)
                record: dict[str, Any] = self._ask(Request("GET", path))
                if record["ended"]:
                    return record
            late.check()
        raise AssertionError("the stream of events never ends")

    def wait_migration(self, id: str, within_s: float | None = None) -> m.MigrationView:
        """See :meth:`wait`."""
        found: Any = self.wait(Watched.MIGRATION, id, within_s)
        record: m.MigrationView = found
        return record

    def wait_run(self, id: str, within_s: float | None = None) -> m.RunDetail:
        """See :meth:`wait`."""
        found: Any = self.wait(Watched.RUN, id, within_s)
        record: m.RunDetail = found
        return record

    def wait_campaign(self, id: str, within_s: float | None = None) -> m.CampaignDetail:
        """See :meth:`wait`."""
        found: Any = self.wait(Watched.CAMPAIGN, id, within_s)
        record: m.CampaignDetail = found
        return record

    def wait_study(self, id: str, within_s: float | None = None) -> m.StudyDetail:
        """See :meth:`wait`."""
        found: Any = self.wait(Watched.STUDY, id, within_s)
        record: m.StudyDetail = found
        return record

    def wait_evacuation(
        self, host: str, id: str, within_s: float | None = None
    ) -> m.EvacuationView:
        """See :meth:`wait`."""
        found: Any = self.wait(Watched.EVACUATION, id, within_s, host=segment(host))
        record: m.EvacuationView = found
        return record
