"""A service of the demo's own: started, waited for, ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client
from vmtune.errors import SetupError

_PORT = 8470
_READY_WITHIN_S = 120.0
_STOPS_WITHIN_S = 10.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    :param url: where it also listens by TCP, for a browser.
    :param socket: where the command line reaches it.
    """

    client: Client
    url: str
    socket: Path
    pid: int

    @property
    def docs(self) -> str:
        """Where the API's documentation is served."""
        return f"{self.url}/api/v1/docs"

    def sign_in_token(self) -> str:
        """A token that allows everything, for the browser of the demo's user."""
        made = self.client.post("/tokens", {"name": "demo", "scopes": ["admin"]})
        return str(made["token"])


@contextmanager
def running_service(folder: Path, holds: int | None = None) -> Iterator[Service]:
    """A service with its database and socket in *folder*, for as long as the block runs.

    :param holds: a lock's descriptor that the service keeps until it ends, which it may do later
        than a parent that is killed.
    :raise SetupError: it does not start; its last words are in the message.
    """
    address = folder / "vmtune.sock"
    log = folder / "service.log"
    places = ["--state-dir", str(folder)]
    vmtune = [sys.executable, "-m", "vmtune"]
    subprocess.run([*vmtune, "db", "upgrade", *places, "--quiet"], check=True, timeout=60)
    command = [*vmtune, "serve", *places, "--socket", str(address)]
    client = Client(address)
    port = _PORT if _is_free(_PORT) else _free_port()
    process = _start(command, port, folder, log, holds)
    try:
        if not _is_ready(process, client):
            if "is taken by another program" not in log.read_text(errors="replace"):
                raise _not_started(log)
            port = _free_port()  # somebody was faster
            process = _start(command, port, folder, log, holds)
            if not _is_ready(process, client):
                raise _not_started(log)
        yield Service(client, f"http://127.0.0.1:{port}", address, process.pid)
    finally:
        _stop(process)


def _start(
    command: list[str], port: int, folder: Path, log: Path, holds: int | None
) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [*command, "--listen-port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=() if holds is None else (holds,),
            env={**os.environ, "VMTUNE_BENCH_DIR": str(folder / "bench")},
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - no threads run yet
        )


def _end_with_parent() -> None:
    """Also a demo that is killed with -9 leaves no service behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _is_ready(process: subprocess.Popen[bytes], client: Client) -> bool:
    """Wait until it answers; false when it has ended or takes too long."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(ClientError):
            client.get("/health")
            return True
        time.sleep(0.05)
    return False


def _not_started(log: Path) -> SetupError:
    tail = log.read_text(errors="replace").strip().splitlines()[-3:]
    why = " / ".join(tail) or "it printed no output"
    return SetupError(f"the service did not start: {why}", code="no_service")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
