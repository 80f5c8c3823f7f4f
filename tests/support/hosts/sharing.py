"""Several real services on one real PostgreSQL, and a lab whose hosts they share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.hosts.live import (
    STARTS_WITHIN_S,
    Live,
    Service,
    add_hosts,
    lab_settings,
    wait_for,
)
from tests.support.stores.postgres import new_database, running_postgres
from vmtune import lab
from vmtune.client.connection.http import Client

TAKEN_OVER_WITHIN_S = 30
"""How soon a dead service's work is another's (issue: within 30 s)."""


class SharingService(Service):
    """A service on PostgreSQL, known by a name.

    :param port: where it also listens by TCP; 0 for nowhere.
    """

    def __init__(self, folder: Path, name: str, database_url: str, port: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.folder = folder
        self.port = port
        self.client = Client(folder / "vmtune.sock")
        self.process: subprocess.Popen[bytes] | None = None
        self._log = (folder / "service.log").open("ab")
        self.environment = os.environ | {
            "VMTUNE_DATABASE_URL": database_url,
            "VMTUNE_SERVICE_NAME": name,
            "VMTUNE_BENCH_DIR": str(folder / "bench"),
        }
        command = [sys.executable, "-m", "vmtune", "db", "upgrade", "--quiet"]
        command += ["--state-dir", str(folder)]
        subprocess.run(command, check=True, timeout=STARTS_WITHIN_S, env=self.environment)

    def spawn(self) -> subprocess.Popen[bytes]:
        """The process."""
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "vmtune", "serve", "--state-dir", str(self.folder)),
                *("--socket", str(self.client.socket_path), "--listen-port", str(self.port)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=self.environment,
        )

    def pause(self) -> None:
        """Let it seem dead."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it wake."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def drives(self) -> set[str]:
        """The hosts that it drives, as it says itself."""
        hosts = self.client.items("/hosts")
        return {host["name"] for host in hosts if host["owner"] == self.name}


class LiveFleet(Live):
    """A lab, and two services that share its hosts a and b: at first the first drives both."""

    def __init__(
        self, settings: lab.LabSettings, services: list[SharingService], status: lab.LabStatus
    ) -> None:
        super().__init__(settings, services[0], status)
        self.services = services

    def give(self, host: str, to: SharingService) -> None:
        """Let a service drive a host, once it lives and nothing is open there."""
        self.client.put(f"/hosts/{host}/owner", {"service": to.name})
        wait_for(lambda: host in to.drives(), f"{to.name} to drive {host}")


@contextmanager
def live_fleet(folder: Path, number: int, ports: tuple[int, int] = (0, 0)) -> Iterator[LiveFleet]:
    """A lab with addresses 10.*number*.0.0/24, and two services on a PostgreSQL of their own.

    :param ports: where the services also listen by TCP; 0 for nowhere.
    """
    settings = lab_settings(number)
    with ExitStack() as stack:
        url = stack.enter_context(new_database(stack.enter_context(running_postgres())))
        services = [
            SharingService(folder / name, name, url, port)
            for name, port in zip(("one", "two"), ports, strict=True)
        ]
        stack.callback(lab.down, settings)
        status = lab.up(settings)
        for service in services:
            stack.callback(service.stop)
            service.start()
        add_hosts(services[0].client, status)
        yield LiveFleet(settings, services, status)
