"""Where a service answers."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import InvalidInput

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


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

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{name}:{self.port}"
