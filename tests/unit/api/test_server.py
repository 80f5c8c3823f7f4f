"""The real service in a process of its own: sockets, locks, streams, and how it stops."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.stores.databases import empty_database
from vmtune.api.serving.systemd import notify, watchdog_s
from vmtune.config.settings import Settings

pytestmark = pytest.mark.integration

PROGRAM = """
import json, os, sys
from vmtune.api.serving.server import serve
from vmtune.errors import VmtuneError
from vmtune.config.settings import Settings
try:
    serve(Settings.load(None, os.environ))
except VmtuneError as error:
    print(json.dumps([p.code for p in error.problems]), error, file=sys.stderr)
    sys.exit(1)
"""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the service's unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(str(self.path))


@dataclass
class Service:
    """A service that runs."""

    settings: Settings
    process: subprocess.Popen[str]
    opened: list[http.client.HTTPConnection] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)

    def connection(self) -> http.client.HTTPConnection:
        self.opened.append(UnixConnection(self.settings.socket_path))
        return self.opened[-1]

    def tcp(self) -> http.client.HTTPConnection:
        port = self.settings.listen_port
        self.opened.append(http.client.HTTPConnection("127.0.0.1", port, timeout=30))
        return self.opened[-1]

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = self.connection()
        sent = {} if body is None else {"Content-Type": "application/json"}
        content = None if body is None else json.dumps(body)
        connection.request(method, f"/api/v1{path}", content, sent)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def stream(self, query: str = "", **headers: str) -> Stream:
        connection = self.connection()
        connection.request("GET", f"/api/v1/events{query}", headers=headers)
        self.streams.append(Stream(connection.getresponse()))
        return self.streams[-1]

    def hang_up(self) -> None:
        """Close all connections."""
        for stream in self.streams:
            stream.response.close()
        for connection in self.opened:
            connection.close()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        """Send the signal; what it logged until its end."""
        self.process.send_signal(number)
        _, logged = self.process.communicate(timeout=30)
        return logged


@dataclass
class Stream:
    """An open event stream."""

    response: http.client.HTTPResponse

    def block(self) -> dict[str, str]:
        """The next message or comment; empty at the end of the stream."""
        fields: dict[str, str] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        return fields

    def message(self) -> dict[str, str]:
        """The next message."""
        while True:
            found = self.block()
            if "data" in found or not found:
                return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return with_database(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests that leave it running: each start takes a second."""
    with service(
        with_database(tmp_path_factory.mktemp("shared")), VMTUNE_MAX_BODY_BYTES="65536"
    ) as it:
        yield it


def with_database(tmp_path: Path) -> Settings:
    """Settings of a service that has nothing yet but its database."""
    made = Settings(state_dir=tmp_path / "s", runtime_dir=tmp_path / "r", listen_port=free_port())
    made.state_dir.mkdir()
    empty_database(made.state_dir / "vmtune.db")
    return made


@contextmanager
def started(settings: Settings, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A service's process, ended with the block."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VMTUNE_")}
    given = {
        "VMTUNE_STATE_DIR": str(settings.state_dir),
        "VMTUNE_RUNTIME_DIR": str(settings.runtime_dir),
        "VMTUNE_LISTEN_PORT": str(settings.listen_port),
        "VMTUNE_LOG_FORMAT": "json",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**clean, **given, **environ},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


@contextmanager
def service(settings: Settings, **environ: str) -> Iterator[Service]:
    """A service that is ready."""
    with started(settings, **environ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert json.loads(first)["event"] == "ready", first + process.stderr.read()
        made = Service(settings, process)
        try:
            yield made
        finally:
            made.hang_up()


def refused(settings: Settings, **environ: str) -> str:
    """What a service says that does not start."""
    with started(settings, **environ) as process:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1, said
        assert "Traceback" not in said
        return said


def test_it_listens_on_both(shared: Service) -> None:
    mode = shared.settings.socket_path.stat().st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert shared.ask("GET", "/health")[1]["status"] == "ok"
    for host, path, status in (
        ("localhost", "live", 204),
        ("localhost", "health", 401),
        ("evil.example", "live", 421),
    ):
        tcp = shared.tcp()
        tcp.request("GET", f"/api/v1/{path}", headers={"Host": host})
        assert tcp.getresponse().status == status


def test_no_tcp_where_the_port_is_0(settings: Settings) -> None:
    port = settings.listen_port
    with service(settings, VMTUNE_LISTEN_PORT="0") as it:
        assert it.ask("GET", "/health")[0] == 200
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)


def test_who_connects_early_is_served_when_it_is_ready(settings: Settings) -> None:
    with started(settings) as process:
        while not settings.socket_path.exists():
            assert process.poll() is None
        it = Service(settings, process)
        while True:
            try:
                status, _ = it.ask("GET", "/health")
                break
            except ConnectionRefusedError:  # it is there, and not listened at yet
                assert process.poll() is None
        assert status == 200
        it.hang_up()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_open_streams_end_when_it_stops(settings: Settings, number: signal.Signals) -> None:
    with service(settings) as it:
        streams = [it.stream() for _ in range(3)]
        for stream in streams:
            assert stream.block() == {"": "following"}
        logged = it.stop(number)
        assert it.process.returncode == 0
        for stream in streams:
            assert stream.block() == {}
        assert list(settings.runtime_dir.iterdir()) == []
        # uvicorn says so where it has to cancel what did not end by itself.
        assert "Cancel" not in logged
        assert '"stopped"' in logged


def test_a_stream_tells_filters_and_resumes(shared: Service) -> None:
    live = shared.stream("?topic=profile&subject=b")
    assert live.block() == {"": "following"}
    for name in ("a", "b"):
        shared.ask("POST", "/profiles", {"name": name, "values": {"multifd": True}})
    shared.ask("POST", "/assignments", {"target": "default", "profile": "a"})
    told = live.message()
    event = json.loads(told["data"])
    assert (told["event"], event["subject"], event["id"]) == ("profile", "b", int(told["id"]))
    assert event["data"] == {"change": "created", "revision": 1}
    first = shared.stream("?after=0").message()["id"]
    by_header = shared.stream("?after=0", **{"Last-Event-ID": first})
    assert int(by_header.message()["id"]) == int(told["id"])
    assert json.loads(by_header.message()["data"])["topic"] == "assignment"


def test_a_stream_resumes_across_a_restart(settings: Settings) -> None:
    with service(settings) as it:
        it.ask("POST", "/profiles", {"name": "a", "values": {}})
        last = it.stream("?after=0").message()["id"]
        it.ask("POST", "/profiles", {"name": "b", "values": {}})
        it.stop()
    with service(settings) as it:
        missed = it.stream(**{"Last-Event-ID": last}).message()
        assert json.loads(missed["data"])["subject"] == "b"


def test_a_bad_stream_is_refused(shared: Service) -> None:
    for query in ("?after=x", "?after=-1", "?topic=nope", "?topics=vm"):
        assert shared.ask("GET", f"/events{query}")[0] == 422, query


@pytest.mark.parametrize("chunked", [True, False])
def test_a_large_body_is_answered_also_while_it_is_sent(shared: Service, chunked: bool) -> None:
    """Also where the connection ends with the answer, as proxies have it."""
    connection = shared.connection()
    size = 900_000
    content = (b"x" * 10_000 for _ in range(size // 10_000))
    announced = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(size)}
    headers = {"Content-Type": "application/json", "Connection": "close", **announced}
    connection.request("POST", "/api/v1/profiles", content, headers, encode_chunked=chunked)
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["code"] == "body_too_large"


def test_a_second_service_on_the_same_state_is_refused(shared: Service, tmp_path: Path) -> None:
    said = refused(shared.settings)
    assert "already_running" in said
    assert str(shared.process.pid) in said
    other = Settings(state_dir=tmp_path / "other", listen_port=0)
    said = refused(other, VMTUNE_SOCKET_PATH=str(shared.settings.socket_path))
    assert "already_running" in said
    assert shared.ask("GET", "/health")[0] == 200


def test_a_stale_socket_is_replaced_after_kill_9(settings: Settings) -> None:
    with service(settings) as it:
        it.process.kill()
        it.process.wait()
    assert settings.socket_path.exists()
    with service(settings) as it:
        assert it.ask("GET", "/health")[0] == 200


def test_a_file_that_is_no_socket_is_left_alone(settings: Settings) -> None:
    settings.runtime_dir.mkdir()
    settings.socket_path.write_text("mine")
    assert "is not a socket" in refused(settings)
    assert settings.socket_path.read_text() == "mine"


def test_a_taken_port_is_told(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", settings.listen_port)):
        said = refused(settings)
    assert "port_taken" in said
    assert str(settings.listen_port) in said
    assert list(settings.runtime_dir.iterdir()) == []


def test_a_missing_schema_names_the_command_that_mends_it(tmp_path: Path) -> None:
    fresh = Settings(state_dir=tmp_path / "s", runtime_dir=tmp_path / "r", listen_port=0)
    said = refused(fresh)
    assert "vmtune db upgrade" in said
    assert list(fresh.runtime_dir.iterdir()) == []


def test_it_can_be_stopped_while_it_starts(settings: Settings) -> None:
    with started(settings) as process:
        while not settings.socket_path.exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert list(settings.runtime_dir.iterdir()) == []


def told(systemd: socket.socket, without: bytes = b"WATCHDOG=1") -> bytes:
    """The next message that is not *without*."""
    while True:
        found = systemd.recv(100)
        if found != without:
            return found


def test_systemd_is_told(settings: Settings, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        with service(settings, NOTIFY_SOCKET=str(tmp_path / "notify")) as it:
            assert systemd.recv(100) == b"READY=1"
            before = time.monotonic_ns() // 1000
            it.process.send_signal(signal.SIGHUP)
            name, _, at = systemd.recv(100).partition(b"\nMONOTONIC_USEC=")
            assert name == b"RELOADING=1"
            assert before <= int(at) <= time.monotonic_ns() // 1000
            assert systemd.recv(100) == b"READY=1"
            it.stop()
            assert systemd.recv(100) == b"STOPPING=1"


def test_systemd_is_given_signs_of_life(settings: Settings, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        watched = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
        with service(settings, **watched) as it:
            assert told(systemd) == b"READY=1"
            for _ in range(3):
                assert systemd.recv(100) == b"WATCHDOG=1"
            it.stop()
            assert told(systemd) == b"STOPPING=1"


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "60000000"}, 60),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"}, 60),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_signs_of_life_are_for_whom_systemd_asks(
    environ: dict[str, str], seconds: float | None
) -> None:
    assert watchdog_s(environ, pid=7) == seconds


def test_nobody_is_told_where_systemd_did_not_start_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
