"""One request, and when it may be repeated: what both clients share."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import httpx

from .refusals import refused
from .remote.address import Url
from .remote.documents import PREFIX, as_object, problem_of, with_query
from .remote.errors import ClientError, ConnectionLost, Refused, ServiceUnreachable
from .remote.events import Backoff, transient

_REPEATABLE = ("GET", "PUT", "DELETE")
_IN_PROGRESS = "request_in_progress"


def segment(value: object) -> str:
    """*value* as one segment of a path, escaped."""
    return quote(str(value), safe="")


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    :param path: below ``/api/v1``.
    :param key: its idempotency key; None for a new one where the route honours keys (*keyed*).
    :param raw: the answer is a file, and no JSON.
    """

    method: str
    path: str
    query: Mapping[str, Any] | None = None  # any: a value, or several
    body: Any = None  # any: JSON
    if_match: str = ""
    key: str | None = None
    keyed: bool = False
    raw: bool = False

    def ready(self) -> Request:
        """With a key: all its attempts have the same."""
        return replace(self, key=self.key or str(uuid.uuid4())) if self.keyed else self

    @property
    def target(self) -> str:
        """Path and query."""
        query = {name: _plain(value) for name, value in (self.query or {}).items()}
        return PREFIX + with_query(self.path, query)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of its own."""
        found = {"Accept": "*/*" if self.raw else "application/json"}
        if self.if_match:
            found["If-Match"] = self.if_match
        if self.key is not None:
            found["Idempotency-Key"] = self.key
        return found

    def may_be_repeated(self, error: ClientError) -> bool:
        """Whether a repetition after *error* may help, and does no harm."""
        if isinstance(error, Refused) and error.problem_code == _IN_PROGRESS:
            return True
        if isinstance(error, ServiceUnreachable):
            return True  # nothing was sent
        return transient(error) and (self.method in _REPEATABLE or self.key is not None)

    def answer(self, response: httpx.Response) -> Any:  # any: JSON, or bytes
        """What the service answered.

        :raise Refused: it is a problem.
        """
        if response.status_code >= 400:
            raise refused(response.status_code, problem_of(response.status_code, response.content))
        if self.raw:
            return response.content
        document = as_object(response.content)
        if document is None:
            raise refused(response.status_code, problem_of(response.status_code, b"<"))
        return document

    def failed(self, error: httpx.TransportError, where: str) -> ClientError:
        """What went wrong between here and the service."""
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
            return ServiceUnreachable(
                f"cannot connect to {where}: {error}",
                field="url",
                remedy="check the address, and whether the service listens there",
            )
        again = self.method in _REPEATABLE
        return ConnectionLost(
            f"no whole answer to {self.method} {self.path}: {str(error) or type(error).__name__}",
            remedy="try again" if again else "check the state before you repeat it",
        )


def _plain(value: Any) -> Any:  # any: what a query has
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as whom to ask.

    :param url: ``https://NAME:PORT``; plain http:// of this machine's own addresses alone.
    :param socket: the service's unix socket, instead.
    :param reason: why something is changed, for the audit log.
    :param retry_for_s: for how long to repeat what may be repeated while the service does not
        answer; 0 for never.
    """

    url: str = ""
    token: str = ""
    socket: str = ""
    reason: str = ""
    timeout_s: float = 120.0
    retry_for_s: float = 60.0

    @property
    def base(self) -> str:
        """The URL that requests begin with.

        :raise InvalidInput: it is none.
        """
        return str(Url.read(self.url)) if self.url else "http://localhost"

    @property
    def where(self) -> str:
        """In words."""
        return self.url or self.socket

    @property
    def timeout(self) -> httpx.Timeout:
        """How long to wait."""
        return httpx.Timeout(self.timeout_s, connect=5.0)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        found = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {**found, "X-Vmtune-Reason": quote(self.reason)} if self.reason else found

    def backoff(self) -> Backoff:
        """How long to wait between attempts."""
        return Backoff(give_up_after_s=self.retry_for_s)
