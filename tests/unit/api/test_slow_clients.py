"""Clients that send too slowly, or are too many, at a real served instance."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served.served_api import served_api
from vmtune.api.serving import protocol

pytestmark = pytest.mark.integration

HEAD = b"POST /api/v1/profiles HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(protocol, "_HEAD_WITHIN_S", 0.3)
    monkeypatch.setattr(protocol, "_BODY_WITHIN_S", 0.3)
    with served_api(tmp_path, tmp_path / "s"):
        yield tmp_path / "s"


def connected(address: Path) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(20)
    one.connect(str(address))
    return one


def healthy(one: socket.socket) -> bool:
    """Whether a request is answered; the connection stays open."""
    one.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    response = http.client.HTTPResponse(one)
    response.begin()
    response.read()
    return response.status == 200


def is_cut_off(one: socket.socket, drip: bytes) -> bool:
    """Whether the service ends the connection although one byte comes after the other."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            one.sendall(drip)
        except OSError:
            return True
        one.settimeout(0.05)
        try:
            if one.recv(1000) == b"":
                return True
        except TimeoutError:
            continue
        except ConnectionResetError:
            return True
    return False


@pytest.mark.parametrize(
    ("begun", "drip"),
    [
        (b"", b""),
        (b"GET /api/v1/health HTTP/1.1\r\nX-Slow: ", b"x"),
        (HEAD + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n", b" "),
    ],
    ids=["nothing", "head", "body"],
)
def test_who_sends_too_slowly_is_cut_off(address: Path, begun: bytes, drip: bytes) -> None:
    with connected(address) as one:
        one.sendall(begun)
        assert is_cut_off(one, drip)


def test_who_waits_between_requests_or_follows_events_is_not(address: Path) -> None:
    with connected(address) as kept, connected(address) as follows:
        follows.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(2):
            assert healthy(kept)
            time.sleep(0.5)  # longer than a head may take
        told = b""
        while b"following" not in told:
            piece = follows.recv(10_000)
            assert piece, told
            told += piece
        assert told.startswith(b"HTTP/1.1 200")
        follows.setblocking(False)
        with pytest.raises(BlockingIOError):  # open, and silent
            follows.recv(1)


def test_a_head_that_never_ends_is_refused(address: Path) -> None:
    with connected(address) as one:
        one.sendall(b"GET /api/v1/health HTTP/1.1\r\nX-Long: " + b"x" * 70_000)
        assert one.recv(1000).startswith(b"HTTP/1.1 400")
