"""A service of the demo's own: started, waited for, ended."""

from __future__ import annotations

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
def running_service(folder: Path) -> Iterator[Service]:
    """A service with its database and socket in *folder*, for as long as the block runs.

    :raise SetupError: it does not start; its last words are in the message.
    """
    port = _PORT if _is_free(_PORT) else _free_port()
    address = folder / "vmtune.sock"
    log = folder / "service.log"
    places = ["--state-dir", str(folder)]
    vmtune = [sys.executable, "-m", "vmtune"]
    subprocess.run([*vmtune, "db", "upgrade", *places, "--quiet"], check=True, timeout=60)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*vmtune, "serve", *places, "--socket", str(address), "--listen-port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "VMTUNE_BENCH_DIR": str(folder / "bench")},
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - no threads run yet
        )
    try:
        client = Client(address)
        _wait_until_ready(process, client, log)
        yield Service(client, f"http://127.0.0.1:{port}", address, process.pid)
    finally:
        _stop(process)


def _end_with_parent() -> None:
    """Also a demo that is killed with -9 leaves no service behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_until_ready(process: subprocess.Popen[bytes], client: Client, log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        try:
            client.get("/health")
        except ClientError:
            if process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            tail = log.read_text(errors="replace").strip().splitlines()[-3:]
            why = " / ".join(tail) or "it printed no output"
            raise SetupError(f"the service did not start: {why}", code="no_service") from None
        else:
            return


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
