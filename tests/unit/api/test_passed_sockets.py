"""Sockets that systemd passes to the service."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from vmtune.api.serving.sockets import check_passed, listening, passed_sockets
from vmtune.config.settings import Settings
from vmtune.errors import SetupError
from vmtune.storage import upgrade

pytestmark = pytest.mark.integration

PROGRAM = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())  # as systemd does between fork and exec
from vmtune.api.serving.server import serve
from vmtune.config.settings import Settings
serve(Settings.load(None, os.environ))
"""


def test_a_passed_socket_is_served_and_left_in_place(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, runtime_dir=tmp_path)
    upgrade(settings.database_url)
    with socket.socket(socket.AF_UNIX) as unit, (tmp_path / "log").open("wb") as log:
        unit.bind(str(tmp_path / "unit.sock"))
        unit.listen()
        clean = {k: v for k, v in os.environ.items() if not k.startswith("VMTUNE_")}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(unit.fileno())],
            env={**clean, "LISTEN_FDS": "1", "VMTUNE_STATE_DIR": str(tmp_path),
                 "VMTUNE_LISTEN_PORT": "0", "VMTUNE_RUNTIME_DIR": str(tmp_path)},
            pass_fds=[unit.fileno()],
            stderr=log,
        )  # fmt: skip
        try:
            # Who connects before it is ready waits in the socket's queue.
            connection = http.client.HTTPConnection("localhost", timeout=60)
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(60)
            connection.sock.connect(str(tmp_path / "unit.sock"))
            connection.request("GET", "/api/v1/health")
            assert json.loads(connection.getresponse().read())["status"] == "ok"
            connection.close()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, (tmp_path / "log").read_text()
        assert (tmp_path / "unit.sock").exists()
        assert not (tmp_path / "vmtune.sock").exists()


def test_what_is_passed_to_another_process_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_FDS", "1")
    monkeypatch.setenv("LISTEN_PID", "1")
    assert passed_sockets() == []
    monkeypatch.delenv("LISTEN_PID")
    assert passed_sockets() == []


@pytest.mark.parametrize("kind", ["a pipe", "not listening"])
def test_what_is_no_listening_socket_is_refused(kind: str) -> None:
    program = (
        "import os, socket\n"
        "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))\n"
        + (
            "r, w = os.pipe(); os.dup2(r, 3)\n"
            if kind == "a pipe"
            else "s = socket.socket(); os.dup2(s.fileno(), 3)\n"
        )
        + "from vmtune.api.serving.sockets import passed_sockets\n"
        "from vmtune.errors import SetupError\n"
        "try:\n    passed_sockets()\n"
        "except SetupError as error:\n    print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "descriptor 3" in said.stdout


def test_a_passed_socket_lets_no_token_cross_a_network_in_the_clear(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere, socket.socket(socket.AF_UNIX) as unix:
        with pytest.raises(SetupError) as caught:
            check_passed([unix, everywhere], Settings())
        assert caught.value.problems[0].code == "insecure_listener"
        check_passed([unix, everywhere], Settings(insecure_listen=True))
        check_passed([everywhere], Settings(tls_cert=tmp_path, tls_key=tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as mine:
        check_passed([mine], Settings())


def test_beside_a_passed_unix_socket_the_port_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    passed = socket.socket(socket.AF_UNIX)
    monkeypatch.setattr("vmtune.api.serving.sockets.passed_sockets", lambda: [passed])
    settings = Settings(runtime_dir=tmp_path, listen_port=port)
    with listening(settings) as sockets:
        assert [one.family for one in sockets] == [socket.AF_UNIX, socket.AF_INET]
        assert sockets[0] is passed
        assert not settings.socket_path.exists()
    assert passed.fileno() == -1
