"""The service's event stream (server-sent events), and how long to wait before another attempt."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .documents import Document
from .errors import ClientError, ConnectionLost, Refused, ServiceUnreachable

PATH = "/events"
SILENT_FOR_S = 50.0
"""The service sends a comment at least every 15 s; three missed ones are a dead connection."""
_GIVE_UP_AFTER_S = 60.0
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


class Parser:
    """Reads an event stream line by line; comments are heartbeats.

    Follows the HTML standard's event-stream interpretation, but for ``retry``. A message
    that was cut off by the end of the stream is dropped, as the standard has it.
    """

    def __init__(self) -> None:
        self._id = self._name = ""
        self._data: list[str] = []

    def feed(self, line: str) -> ServerEvent | Heartbeat | None:
        """What *line*, without its end, completes."""
        if not line:
            data, name, last_id = self._data, self._name, self._id
            self._id, self._name, self._data = "", "", []
            return ServerEvent(last_id, name or "message", _json("\n".join(data))) if data else None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not field:
            return Heartbeat()
        if field == "id":
            self._id = value
        elif field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None


def parse(lines: Iterable[bytes]) -> Iterator[ServerEvent | Heartbeat]:
    """The messages in the lines of an event stream."""
    parser = Parser()
    for raw in lines:
        found = parser.feed(raw.decode("utf-8", "replace").rstrip("\r\n"))
        if found is not None:
            yield found


def _json(text: str) -> Document:
    try:
        document: Any = json.loads(text)  # any: JSON, until it is known to be an object
    except ValueError:
        return {"text": text}
    return document if isinstance(document, dict) else {"value": document}


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
        self._sleep(self.wait_s(error))

    def wait_s(self, error: ClientError) -> float:
        """How long to wait after *error*, after which a repetition may help.

        :raise ClientError: *error*, where there was no success for too long.
        """
        now = self._clock()
        self._since = now if self._since is None else self._since
        if now - self._since >= self._give_up_after_s:
            raise error
        wait_s, self._wait = self._wait, min(self._wait * 2, _LONGEST_WAIT_S)
        return wait_s


def transient(error: ClientError) -> bool:
    """Whether a retry may help: the service may be restarting."""
    if isinstance(error, Refused):
        return error.status == _BUSY
    return isinstance(error, (ConnectionLost, ServiceUnreachable))
