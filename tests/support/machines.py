"""Lab hosts that are machines, each with a root of its own, and a service on one of them."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.live import Live, Service, why_no_lab
from vmtune import lab
from vmtune.errors import LabError
from vmtune.lab.machines import PROGRAMS
from vmtune.lab.programs import require_programs

STEP_S = 60


def why_no_machines() -> str:
    """Why no machines can be brought up here; empty when they can."""
    try:
        require_programs(*PROGRAMS)
    except LabError as error:
        return f"machines: {error}"
    return why_no_lab()


def on(host: lab.HostStatus, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine; it ends by itself."""
    return subprocess.run(
        [*lab.inside(host), *command],
        capture_output=True,
        text=True,
        timeout=STEP_S,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "HOME": "/root", "LC_ALL": "C"},
    )


def said(host: lab.HostStatus, *command: str) -> str:
    """What a command on a machine prints; it succeeds."""
    done = on(host, *command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refused(host: lab.HostStatus, *command: str) -> str:
    """What a command on a machine says when it fails, as it has to."""
    done = on(host, *command)
    assert done.returncode != 0, done.stdout
    return done.stderr


@contextmanager
def machine_settings(**changes: Any) -> Iterator[lab.LabSettings]:
    """Of machines that are not up yet; they are taken down afterwards.

    :param changes: of the lab's settings: another libvirt, say.
    """
    tag = secrets.token_hex(3)
    second, third = secrets.randbelow(50) + 180, secrets.randbelow(256)
    parent = Path(tempfile.mkdtemp(prefix="vmtune-test-", dir="/run"))
    made = lab.LabSettings(
        name_a=f"vt-{tag}-a",
        name_b=f"vt-{tag}-b",
        address_a=f"10.{second}.{third}.1/24",
        address_b=f"10.{second}.{third}.2/24",
        migration_address_a=f"172.16.{third}.1/24",
        migration_address_b=f"172.16.{third}.2/24",
        folder=parent / "lab",
        machines=True,
        **changes,
    )
    try:
        yield made
    finally:
        try:
            lab.down(made)
        finally:
            shutil.rmtree(parent, ignore_errors=True)


class MachineService(Service):
    """A service that runs on a machine, with its keys, certificates, names and networks.

    :param folder: below the lab's, which all machines and the tests see.
    :param environment: its settings, as variables.
    """

    def __init__(
        self, folder: Path, host: lab.HostStatus, environment: Mapping[str, str] | None = None
    ) -> None:
        self._host = host
        self._environment = environment or {}
        super().__init__(folder)

    def spawn(self) -> subprocess.Popen[bytes]:
        """The process."""
        serve = [sys.executable, "-m", "vmtune", "serve", "--state-dir", str(self.folder)]
        return subprocess.Popen(
            [*lab.inside(self._host), *serve, "--socket", str(self.client.socket_path)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "HOME": "/root", **self._environment},
        )


@contextmanager
def live_machines(*, https: bool = False, **changes: Any) -> Iterator[Live]:
    """Two machines, and a service on the first that knows no host yet.

    :param https: it listens on the management network, too, with the machine's certificate, and
        lets libvirt's hook write what a destination needs.
    :param changes: of the lab's settings.
    """
    with machine_settings(**changes) as settings:
        status = lab.up(settings)
        folder = settings.folder / "service"
        folder.mkdir()
        service = MachineService(folder, status.hosts[0], _listening(settings) if https else {})
        try:
            service.start()
            yield Live(settings, service, status)
        finally:
            service.stop()


def _listening(settings: lab.LabSettings) -> dict[str, str]:
    pki = "/etc/pki/libvirt"
    return {
        "VMTUNE_LISTEN_ADDRESS": settings.address_a.partition("/")[0],
        "VMTUNE_ALLOWED_HOSTS": settings.name_a,
        "VMTUNE_TLS_CERT": f"{pki}/servercert.pem",
        "VMTUNE_TLS_KEY": f"{pki}/private/serverkey.pem",
        "VMTUNE_DESTINATION_COMMAND_LINE": "true",
    }
