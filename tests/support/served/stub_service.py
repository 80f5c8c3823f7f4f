"""A stand-in for the service: answers at a real unix socket what a test told it to."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Asked:
    """A request as it came; *query* with every value of a name."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """An answer: JSON, or an event stream of *chunks*. *cut* closes before any answer."""

    document: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Iterable[bytes] | None = None
    raw: bytes | None = None
    cut: bool = False


def refusal(status: int, *errors: Mapping[str, str], detail: str = "refused") -> Reply:
    """A problem document."""
    rows = [{"field": "", "code": "", "message": "", "remedy": "", **row} for row in errors]
    return Reply({"status": status, "detail": detail, "errors": rows}, status)


class StubService:
    """Replies by method and path; the last of several replies is given for ever."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.asked: list[Asked] = []
        self._replies: dict[tuple[str, str], list[Reply]] = {}
        self._lock = threading.Lock()

    def on(self, method: str, path: str, *replies: Reply | Mapping[str, Any]) -> None:
        """What to answer, one after the other."""
        listed = [r if isinstance(r, Reply) else Reply(r) for r in replies]
        self._replies[method, path] = listed

    def reply_to(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            replies = self._replies.get((asked.method, asked.path))
            if replies is None:
                row = {"code": "unknown_route", "message": f"no {asked.method} {asked.path}"}
                return refusal(404, row)
            return replies.pop(0) if len(replies) > 1 else replies[0]

    def only(self, method: str, path: str) -> Asked:
        """The one request of that kind."""
        (found,) = (a for a in self.asked if (a.method, a.path) == (method, path))
        return found

    @contextmanager
    def listening(self) -> Iterator[StubService]:
        """Answer for as long as the block runs."""
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                path = parts.path.removeprefix(PREFIX)
                headers = dict(self.headers.items())
                asked = Asked(self.command, path, parse_qs(parts.query), headers, body)
                self._send(stub.reply_to(asked))
                self.close_connection = True

            def _send(self, reply: Reply) -> None:
                if reply.cut:
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.chunks is not None:
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for chunk in reply.chunks:
                        self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                        self.wfile.flush()
                    return
                content = b"" if reply.document is None else json.dumps(reply.document).encode()
                content = content if reply.raw is None else reply.raw
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - what http.server calls

            def log_message(self, *_: object) -> None:
                pass

            def address_string(self) -> str:
                return "unix"

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass  # a command that has gone away

        server = Server(str(self.socket), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            self.socket.unlink(missing_ok=True)


def page(*items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A list's only page."""
    return {"items": list(items), "next": None, **more}


def event(data: Mapping[str, Any], topic: str = "migration", id: int | None = None) -> bytes:
    """A message of the event stream, as the service sends it."""
    number = f"id: {id}\n" if id is not None else ""
    return f"event: {topic}\ndata: {json.dumps(data)}\n{number}\n".encode()
