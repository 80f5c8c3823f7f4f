"""HTTP over the service's unix socket, or to its URL, with the standard library alone.

A command is to start in a blink: http.client costs 20 ms, a full HTTP library 200.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from vmtune.remote.address import Url
from vmtune.remote.documents import (
    NO_JSON,
    PREFIX,
    Document,
    Query,
    as_object,
    problem_of,
    segment,
    with_query,
)
from vmtune.remote.errors import ConnectionLost, Refused, ServiceUnreachable, unreachable

__all__ = ["Answer", "Client", "Document", "Query", "Url", "segment", "with_query"]

_ANSWER_WITHIN_S = 120.0
_CONNECT_WITHIN_S = 5.0
_PAGE = 200
_PIECE = 1 << 16


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path
        self._timeout_s = timeout_s

    def connect(self) -> None:
        """Connect to the socket, quickly or not at all."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(min(_CONNECT_WITHIN_S, self._timeout_s))
        try:
            self.sock.connect(str(self._path))
        except BaseException:
            self.sock.close()
            raise
        self.sock.settimeout(self._timeout_s)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered: the JSON document and what a later If-Match needs."""

    document: Document
    etag: str


def _over_tcp(url: Url, timeout_s: float) -> http.client.HTTPConnection:
    """A connection that is not opened yet. The certificate has to be one that this
    machine trusts (SSL_CERT_FILE names others)."""
    if not url.tls:
        return http.client.HTTPConnection(url.host, url.port, timeout=timeout_s)
    import ssl  # noqa: PLC0415 - only where it is used

    context = ssl.create_default_context()
    return http.client.HTTPSConnection(url.host, url.port, timeout=timeout_s, context=context)


class Client:
    """Asks the service at *socket_path*. One connection a request; none is kept.

    Every method raises :class:`~vmtune.client.connection.errors.ServiceUnreachable`,
    :class:`~vmtune.client.connection.errors.ConnectionLost` or
    :class:`~vmtune.client.connection.errors.Refused`.

    :param answer_within_s: how long the service may be silent.
    :param url: the service's, instead of its socket.
    :param token: what identifies the caller; empty at the socket, where the kernel does.
    :param reason: why something is changed, for the audit log.
    """

    def __init__(
        self,
        socket_path: Path,
        answer_within_s: float = _ANSWER_WITHIN_S,
        *,
        url: Url | None = None,
        token: str = "",
        reason: str = "",
    ) -> None:
        self.socket_path = socket_path
        self._answer_within_s = answer_within_s
        self._url = url
        self._token = token
        self._reason = reason

    @property
    def where(self) -> str:
        """Where the service is asked."""
        return str(self._url or self.socket_path)

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection that is not opened yet."""
        if self._url is not None:
            return _over_tcp(self._url, timeout_s)
        return UnixConnection(self.socket_path, timeout_s)

    def get(self, path: str, query: Query | None = None) -> Document:
        """The JSON at *path*, below ``/api/v1``."""
        return self.request("GET", path, query).document

    def post(self, path: str, body: Document | None = None) -> Document:
        """Create, or order what takes effect."""
        return self.request("POST", path, body={} if body is None else body).document

    def put(self, path: str, body: Document, if_match: str = "") -> Document:
        """Replace."""
        return self.request("PUT", path, body=body, if_match=if_match).document

    def patch(self, path: str, body: Document, if_match: str = "") -> Document:
        """Change parts."""
        return self.request("PATCH", path, body=body, if_match=if_match).document

    def delete(self, path: str) -> Document:
        """Delete, or abort."""
        return self.request("DELETE", path).document

    def items(self, path: str, query: Query | None = None) -> Iterator[Document]:
        """Every item of a list, page after page."""
        for page in self.pages(path, query):
            yield from page["items"]

    def pages(self, path: str, query: Query | None = None) -> Iterator[Document]:
        """Every page of a list."""
        after: str | None = None
        while True:
            page = self.get(path, {**(query or {}), "limit": _PAGE, "after": after})
            yield page
            after = page["next"]
            if after is None:
                return

    def download(self, path: str, query: Query | None = None) -> bytes:
        """The file at *path*, of any type."""
        return self._exchange("GET", path, query, None, {"Accept": "*/*"})[1]

    def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Document | None = None,
        if_match: str = "",
    ) -> Answer:
        """Send one request and read its whole answer."""
        headers = {"Accept": "application/json"}
        if if_match:
            headers["If-Match"] = if_match
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        response, content = self._exchange(method, path, query, payload, headers)
        return self._answer(response, content)

    def _exchange(
        self,
        method: str,
        path: str,
        query: Query | None,
        payload: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Send one request and read its whole answer, as it comes.

        :raise Refused: it is a problem.
        """
        connection = self.connection(self._answer_within_s)
        try:
            response = self.send(connection, method, with_query(path, query), payload, headers)
            try:
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise self.lost(method, path, error) from error
        finally:
            connection.close()
        if response.status >= 400:
            raise Refused(response.status, problem_of(response.status, content))
        return response, content

    def pieces(self, path: str, query: Query | None = None) -> Iterator[bytes]:
        """What is at *path*, piece by piece: a file of any size."""
        connection = self.connection(self._answer_within_s)
        try:
            response = self.send(connection, "GET", with_query(path, query), None, {})
            if response.status >= 400:
                raise Refused(response.status, problem_of(response.status, response.read()))
            try:
                while piece := response.read(_PIECE):
                    yield piece
            except (OSError, http.client.HTTPException) as error:
                raise self.lost("GET", path, error) from error
        finally:
            connection.close()

    def send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        payload: bytes | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        """Connect, send, and read the answer's head."""
        try:
            connection.connect()
        except OSError as error:
            raise self._unreachable(error) from error
        try:
            connection.request(method, PREFIX + target, payload, {**headers, **self._who()})
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self.lost(method, target, error) from error

    def _who(self) -> dict[str, str]:
        who = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return {**who, "X-Vmtune-Reason": quote(self._reason)} if self._reason else who

    def _unreachable(self, error: OSError) -> ServiceUnreachable:
        if self._url is None:
            return unreachable(self.socket_path, error)
        return ServiceUnreachable(
            f"cannot connect to {self._url}: {error.strerror or error}",
            field="url",
            remedy="check VMTUNE_URL, whether the service listens there, and its certificate",
        )

    def lost(self, method: str, path: str, error: Exception) -> ConnectionLost:
        """The error for an answer that did not come."""
        silent = isinstance(error, TimeoutError)
        why = f"no answer within {self._answer_within_s:g} s" if silent else "connection lost"
        if method == "GET":
            return ConnectionLost(f"{why} while reading {path}", remedy="try again")
        return ConnectionLost(
            f"{why} during {method} {path}: the outcome is unknown",
            remedy="check the state before you repeat it",
        )

    def _answer(self, response: http.client.HTTPResponse, content: bytes) -> Answer:
        document = as_object(content)
        if document is None:
            raise Refused(response.status, NO_JSON)
        return Answer(document, response.headers.get("ETag", ""))
