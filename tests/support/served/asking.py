"""HTTP by hand at a served instance: also what no client library would send."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

PREFIX = "/api/v1"
Headers = Sequence[tuple[str, str]]
_ANSWERS_WITHIN_S = 120
"""However slow the machine is."""


@dataclass(frozen=True)
class Reply:
    """An answer; status 0 where the connection was ended without one."""

    status: int
    headers: Headers = ()
    content: bytes = b""

    @property
    def document(self) -> Any:
        """The JSON of it."""
        return json.loads(self.content)

    @property
    def codes(self) -> list[str]:
        """Of the problems."""
        return [problem["code"] for problem in self.document["errors"]]

    def header(self, name: str) -> str:
        """One header; empty where there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def cookies(self) -> dict[str, str]:
        """Those that it sets."""
        return {
            name: morsel.value
            for key, value in self.headers
            if key.lower() == "set-cookie"
            for name, morsel in SimpleCookie(value).items()
        }


@dataclass(frozen=True)
class Door:
    """A socket of the service."""

    address: Path | int
    tls: ssl.SSLContext | None = None

    def connect(self) -> socket.socket:
        """A connection to it."""
        if isinstance(self.address, int):
            one = socket.create_connection(("127.0.0.1", self.address), timeout=_ANSWERS_WITHIN_S)
            return self.tls.wrap_socket(one, server_hostname="localhost") if self.tls else one
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(_ANSWERS_WITHIN_S)
        one.connect(str(self.address))
        return one

    def send(self, raw: bytes, method: str = "GET") -> Reply:
        """Bytes as they are, and the answer to them."""
        with self.connect() as one:
            try:
                one.sendall(raw)
                response = http.client.HTTPResponse(one, method=method)
                response.begin()
                content = response.read()
            except (OSError, http.client.HTTPException):
                return Reply(0)
            return Reply(response.status, response.getheaders(), content)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str = "",
        headers: Headers = (),
        host: str = "localhost",
    ) -> Reply:
        """One request; *path* below the API unless it begins with ``//``, which is cut to ``/``."""
        target = path[1:] if path.startswith("//") else PREFIX + path
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
        content = b""
        if body is not None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            if not any(name.lower() == "content-type" for name, _ in headers):
                lines.append("Content-Type: application/json")
            lines.append(f"Content-Length: {len(content)}")
        if token:
            lines.append(f"Authorization: Bearer {token}")
        lines += [f"{name}: {value}" for name, value in headers]
        return self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content, method)
