"""The service's events (server-sent events), resumed after a lost connection."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vmtune.client.connection.errors import ClientError, ConnectionLost, Refused, ServiceUnreachable
from vmtune.client.connection.http import Client, Document, Query, with_query

PATH = "/events"
# The service sends a comment at least every 15 s; three missed ones are a dead connection.
_SILENT_FOR_S = 50.0
_GIVE_UP_AFTER_S = 60.0
_REPLAY_PAUSE_S = 1.0
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 2.0
_BUSY = 503


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One message of the stream.

    :param id: what a stream resumes after; empty for passing progress, which is not stored.
    """

    id: str
    name: str
    data: Document


@dataclass(frozen=True, slots=True)
class Connected:
    """The stream has just been connected, or connected again: what was read before may be
    out of date, so look again."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing happened, and the connection lives."""


StreamItem = ServerEvent | Connected | Heartbeat


def parse(lines: Iterable[bytes]) -> Iterator[ServerEvent | Heartbeat]:
    """The messages in the lines of an event stream; comments are heartbeats.

    Follows the HTML standard's event-stream interpretation, but for ``retry``. A message
    that was cut off by the end of the stream is dropped, as the standard has it.
    """
    last_id = name = ""
    data: list[str] = []
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield ServerEvent(last_id, name or "message", _json("\n".join(data)))
            last_id, name, data = "", "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not field:
            yield Heartbeat()
        elif field == "id":
            last_id = value
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)


def _json(text: str) -> Document:
    try:
        document: Any = json.loads(text)  # any: JSON, until it is known to be an object
    except ValueError:
        return {"text": text}
    return document if isinstance(document, dict) else {"value": document}


def stream(
    client: Client,
    last_id: str = "",
    query: Query | None = None,
    silent_for_s: float = _SILENT_FOR_S,
) -> Iterator[StreamItem]:
    """The events of one connection, from after *last_id*; ends only by an error.

    :class:`Connected` comes once the service says that it listens: what happens from then
    on is not missed.

    :param query: ``topic`` and ``subject``, to receive only these.
    :param silent_for_s: silence that counts as a lost connection.
    :raise ClientError: the service cannot be asked, refuses, or the connection ends.
    """
    connection = client.connection(silent_for_s)
    headers = {"Accept": "text/event-stream"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    try:
        response = client.send(connection, "GET", with_query(PATH, query), None, headers)
        if response.status >= 400:
            raise Refused(response.status, _json(response.read().decode("utf-8", "replace")))
        try:
            first = True
            for item in parse(response):
                if first:
                    yield Connected()
                if not (first and isinstance(item, Heartbeat)):
                    yield item
                first = False
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise client.lost("GET", PATH, error) from error
        raise ConnectionLost("the service closed the event stream", remedy="try again")
    finally:
        connection.close()


def stored(client: Client, last_id: str) -> Iterator[ServerEvent]:
    """The events after *last_id* that are stored by now, oldest first.

    The stream sends what is stored at once and then waits, so silence or passing progress
    is the end of it.
    """
    try:
        for item in stream(client, last_id, silent_for_s=_REPLAY_PAUSE_S):
            if isinstance(item, ServerEvent):
                if not item.id:
                    return
                yield item
    except ConnectionLost as error:
        if not isinstance(error.__cause__, TimeoutError):
            raise


class Backoff:
    """Exponential backoff between attempts; gives up after a minute of failures.

    :param give_up_after_s: of failures without a success in between.
    """

    def __init__(
        self,
        give_up_after_s: float = _GIVE_UP_AFTER_S,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._give_up_after_s = give_up_after_s
        self._sleep = sleep
        self._clock = clock
        self._since: float | None = None
        self._wait = _FIRST_WAIT_S

    def succeeded(self) -> None:
        """Reset the backoff."""
        self._since, self._wait = None, _FIRST_WAIT_S

    def failed(self, error: ClientError) -> None:
        """Wait before the next attempt.

        :raise ClientError: *error*, where it is final or there was no success for too long.
        """
        if not transient(error):
            raise error
        now = self._clock()
        self._since = now if self._since is None else self._since
        if now - self._since >= self._give_up_after_s:
            raise error
        self._sleep(self._wait)
        self._wait = min(self._wait * 2, _LONGEST_WAIT_S)


def transient(error: ClientError) -> bool:
    """Whether a retry may help: the service may be restarting."""
    if isinstance(error, Refused):
        return error.status == _BUSY
    return isinstance(error, (ConnectionLost, ServiceUnreachable))


def watch(
    client: Client,
    last_id: str = "",
    query: Query | None = None,
    backoff: Backoff | None = None,
    on_loss: Callable[[ClientError], None] = lambda _error: None,
) -> Iterator[StreamItem]:
    """Events without end; reconnects after each loss and resumes after the last event.

    Each new connection first yields :class:`Connected`.

    :param on_loss: called at each loss, before the wait for the next attempt.
    :raise ClientError: the service refused, or was away for a minute.
    """
    backoff = backoff or Backoff()
    while True:
        try:
            for item in stream(client, last_id, query):
                backoff.succeeded()
                if isinstance(item, ServerEvent) and item.id:
                    last_id = item.id
                yield item
        except ClientError as error:
            on_loss(error)
            backoff.failed(error)
