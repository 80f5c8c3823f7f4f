"""Strangers that open all the connections there are, at a real served instance. Those
with tokens are served."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from tests.support.served.asking import Door
from tests.support.served.served_api import served_api
from tests.unit.api.attacks.conftest import free_port
from tests.unit.api.test_tls import certificate
from vmtune.api.serving import connections
from vmtune.api.serving.connections import Connection, Connections, TlsAcceptor

pytestmark = pytest.mark.integration

SLOW = b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
IDLE = b"GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def opened() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def _open(opened: contextlib.ExitStack, port: int, count: int, sends: bytes = b"") -> None:
    for _ in range(count):
        one = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        with contextlib.suppress(OSError):
            one.sendall(sends)


def _ask(one: socket.socket, token: str) -> int:
    one.sendall(
        b"GET /api/v1/vms HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        + token.encode() + b"\r\n\r\n"
    )  # fmt: skip
    response = http.client.HTTPResponse(one)
    response.begin()
    response.read()
    return response.status


@pytest.mark.parametrize("sends", [b"", IDLE, SLOW], ids=["silent", "idle", "slow"])
def test_who_has_a_token_is_served_whatever_strangers_hold(
    tmp_path: Path, opened: contextlib.ExitStack, sends: bytes
) -> None:
    port = free_port()
    with served_api(tmp_path, tmp_path / "s", {"listen_port": port}):
        unix, tcp = Door(tmp_path / "s"), Door(port)
        token = unix.ask("POST", "/tokens", {"name": "ci", "scopes": ["read"]}).document["token"]
        kept = opened.enter_context(tcp.connect())
        assert _ask(kept, token) == 200
        follows = opened.enter_context(tcp.connect())
        follows.sendall(
            b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
            + token.encode() + b"\r\n\r\n"
        )  # fmt: skip
        assert follows.recv(12) == b"HTTP/1.1 200"
        _open(opened, port, connections.MAX_CONNECTIONS + 100, sends)
        assert tcp.ask("GET", "/vms", token=token).status == 200
        assert _ask(kept, token) == 200  # and nobody's connection who has one was ended
        follows.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert follows.recv(100_000) != b""
        assert unix.ask("GET", "/health").status == 200


def test_handshakes_that_never_end_are_counted(
    tmp_path: Path, opened: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path)
    port = free_port()
    options = {"listen_port": port, "tls_cert": cert, "tls_key": key}
    monkeypatch.setattr(Connections.__init__, "__defaults__", (20,))
    with served_api(tmp_path, tmp_path / "s", options):
        unix = Door(tmp_path / "s")
        token = unix.ask("POST", "/tokens", {"name": "ci", "scopes": ["read"]}).document["token"]
        door = Door(port, ssl.create_default_context(cafile=str(cert)))
        kept = opened.enter_context(door.connect())
        assert _ask(kept, token) == 200
        silent = []
        for _ in range(60):
            one = socket.create_connection(("127.0.0.1", port), timeout=20)
            silent.append(opened.enter_context(one))
        assert door.ask("GET", "/vms", token=token).status == 200
        assert _ask(kept, token) == 200
        ended = 0
        for one in silent[:30]:
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
            ended += 1
        assert ended == 30


def test_tls_on_the_services_own_loop(tmp_path: Path) -> None:
    """The service runs on uvloop, whose transports are other ones."""
    cert, key = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    trusts = ssl.create_default_context(cafile=str(cert))

    class Echo(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

        def data_received(self, data: bytes) -> None:
            self.transport.write(data)

    async def talk() -> tuple[bytes, int]:
        tcp_connections = Connections()

        def made(connection: Connection) -> asyncio.Protocol:
            return Echo()

        listener = socket.create_server(("127.0.0.1", 0))
        acceptor = TlsAcceptor(listener, tcp_connections, context, made)
        port = listener.getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusts, server_hostname="localhost"
        )
        writer.write(b"hello")
        told = await reader.readexactly(5)
        plain_reader, plain = await asyncio.open_connection("127.0.0.1", port)
        plain.write(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            await plain_reader.read()
        count = len(tcp_connections)
        writer.close()
        plain.close()
        await acceptor.close()
        listener.close()
        return told, count

    told, count = uvloop.run(asyncio.wait_for(talk(), 20))
    assert told == b"hello"
    assert count == 1  # who spoke no TLS has left


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=60))
def test_who_has_rights_goes_last(arrivals: list[tuple[int, bool, bool]]) -> None:
    ended: list[int] = []
    tcp_connections = Connections(8)
    held: dict[int, Connection] = {}
    for number, (host, is_known, is_busy) in enumerate(arrivals):
        connection, gone = tcp_connections.enter(
            f"192.0.2.{host}", lambda number=number: ended.append(number)
        )
        if gone is not None:
            strangers = [p for p in held.values() if p.caller is None]
            assert gone.caller is None or not strangers
            if gone.caller is None:
                most = {p.address: sum(q.address == p.address for q in strangers)
                        for p in strangers}  # fmt: skip
                assert most[gone.address] == max(most.values())
            held = {n: p for n, p in held.items() if p is not gone}
        held[number] = connection
        connection.caller = ("token", host) if is_known else None
        connection.is_busy = is_busy
        assert len(tcp_connections) == len(held) <= 8
    assert len(ended) == max(0, len(arrivals) - 8)
