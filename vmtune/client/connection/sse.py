"""The service's events (server-sent events), resumed after a lost connection."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator

from vmtune.client.connection.http import Client, Query, with_query
from vmtune.remote.documents import problem_of
from vmtune.remote.errors import ClientError, ConnectionLost, Refused
from vmtune.remote.events import (
    PATH,
    SILENT_FOR_S,
    Backoff,
    Connected,
    Heartbeat,
    ServerEvent,
    StreamItem,
    parse,
    transient,
)

__all__ = [
    "Backoff",
    "Connected",
    "Heartbeat",
    "ServerEvent",
    "StreamItem",
    "parse",
    "stored",
    "stream",
    "transient",
    "watch",
]

_REPLAY_PAUSE_S = 1.0


def stream(
    client: Client,
    last_id: str = "",
    query: Query | None = None,
    silent_for_s: float = SILENT_FOR_S,
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
            raise Refused(response.status, problem_of(response.status, response.read()))
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
