"""HTTP over the service's unix socket, or to its URL, with the standard library alone.

A command is to start in a blink: http.client costs 20 ms, a full HTTP library 200.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from vmtune.client.connection.errors import ConnectionLost, Refused, ServiceUnreachable
from vmtune.errors import InvalidInput

PREFIX = "/api/v1"
_ANSWER_WITHIN_S = 120.0
_CONNECT_WITHIN_S = 5.0
_PAGE = 200
_PIECE = 1 << 16
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

Document = Mapping[str, Any]  # any: JSON from the service
Query = Mapping[str, str | int | Sequence[str] | None]
"""What goes behind the question mark: None is left out, a sequence is repeated."""


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
class Url:
    """Where a service answers over TCP."""

    host: str
    port: int
    tls: bool

    @classmethod
    def read(cls, text: str) -> Url:
        """The service at *text*.

        :raise InvalidInput: it is no https:// URL. The token would cross the network in the
            clear with http://, which only this machine's own addresses may have.
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            parts, host, port = urlsplit(""), "", None
        tls = parts.scheme == "https"
        plain = parts.scheme == "http" and host in _LOOPBACK
        if not host or not (tls or plain) or parts.path not in ("", "/"):
            raise InvalidInput(
                f"{text[:100]!r} is not the URL of a service",
                field="url",
                remedy="write https://NAME:PORT, or http://127.0.0.1:8470 on the same machine",
            )
        return cls(host, port or (443 if tls else 80), tls)

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection that is not opened yet. The certificate has to be one that this
        machine trusts (SSL_CERT_FILE names others)."""
        if not self.tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        import ssl  # noqa: PLC0415 - only where it is used

        context = ssl.create_default_context()
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=context)

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered: the JSON document and what a later If-Match needs."""

    document: Document
    etag: str


def segment(text: str) -> str:
    """*text* as one segment of a path, escaped."""
    return quote(text, safe="")


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
            return self._url.connection(timeout_s)
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
            raise Refused(response.status, _problem(response.status, content))
        return response, content

    def pieces(self, path: str, query: Query | None = None) -> Iterator[bytes]:
        """What is at *path*, piece by piece: a file of any size."""
        connection = self.connection(self._answer_within_s)
        try:
            response = self.send(connection, "GET", with_query(path, query), None, {})
            if response.status >= 400:
                raise Refused(response.status, _problem(response.status, response.read()))
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
        document = _json(content)
        if document is None:
            raise Refused(response.status, _NO_JSON)
        return Answer(document, response.headers.get("ETag", ""))


_NO_JSON: Document = {"detail": "the service's answer is not JSON", "value": None}


def _json(content: bytes) -> Document | None:
    """*content* as an object; a list becomes its ``items``. None where it is no JSON."""
    if not content:
        return {}
    try:
        document: Any = json.loads(content)  # any: JSON, until it is known to be an object
    except ValueError:
        return None
    return document if isinstance(document, dict) else {"items": document}


def _problem(status: int, content: bytes) -> Document:
    """What the service has against a request."""
    document = _json(content)
    return {"status": status, **(_NO_JSON if document is None else document)}


def with_query(path: str, query: Query | None) -> str:
    """*path* with those of *query* that are set."""
    given = {key: value for key, value in (query or {}).items() if value is not None}
    text = urlencode(given, doseq=True)
    return f"{path}?{text}" if text else path


def unreachable(socket_path: Path, error: OSError) -> ServiceUnreachable:
    """The error for a socket at which no service answers."""
    if isinstance(error, PermissionError):
        return ServiceUnreachable(
            f"this user has no permission for the service's socket {socket_path}",
            field="socket",
            remedy="run the command as root, as the service's user or as a member of its "
            "socket_group; or use its URL with a token (VMTUNE_URL, VMTUNE_TOKEN)",
        )
    return ServiceUnreachable(
        f"cannot connect to {socket_path}: {error.strerror or error}",
        field="socket",
        remedy="start the service with `vmtune serve`, or set --socket or VMTUNE_SOCKET",
    )
