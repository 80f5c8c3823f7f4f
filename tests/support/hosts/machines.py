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
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.hosts.live import Live, Service, why_no_lab
from vmtune import lab
from vmtune.client.connection.http import Client
from vmtune.errors import LabError
from vmtune.lab.machines import PROGRAMS
from vmtune.lab.namespaces import namespace_inode, processes_in
from vmtune.lab.programs import require_programs

STEP_S = 60
CHECKOUT = Path(__file__).parents[3]


def why_no_machines() -> str:
    """Why no machines can be brought up here; empty when they can."""
    try:
        require_programs(*PROGRAMS)
    except LabError as error:
        return f"machines: {error}"
    return why_no_lab()


def by_its_bus(host: lab.HostStatus) -> lab.HostStatus:
    """*host*, entered by the process of its message bus, which outlives its libvirtd."""
    bus = next(
        pid
        for pid in processes_in(namespace_inode(host.namespace))
        if Path(f"/proc/{pid}/comm").read_text().strip() == "dbus-daemon"
    )
    return replace(host, libvirtd_pid=bus)


def on(
    host: lab.HostStatus, *command: str, within_s: float = STEP_S
) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine; it ends by itself."""
    return subprocess.run(
        [*lab.inside(host), *command],
        capture_output=True,
        text=True,
        timeout=within_s,
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
        name_c=f"vt-{tag}-c",
        address_c=f"10.{second}.{third}.3/24",
        migration_address_c=f"172.16.{third}.3/24",
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


class PackagedService(MachineService):
    """One as the package's unit runs it: by the user of its sysusers.d, in the package's folders,
    without privileges."""

    USER = "vmtune"
    STATE = "/var/lib/vmtune"

    def __init__(self, settings: lab.LabSettings, host: lab.HostStatus) -> None:
        folder = settings.folder / "service"
        sysusers = CHECKOUT / "packaging/sysusers.d/vmtune.conf"
        said(host, "systemd-sysusers", str(sysusers))
        said(host, "sh", "-ec", _FOLDERS)
        said(host, *self._as_user(), "-m", "vmtune", "db", "upgrade", "--quiet")
        super().__init__(folder, host)
        self.client = Client(settings.folder / "a/run/vmtune/vmtune.sock")

    def spawn(self) -> subprocess.Popen[bytes]:
        """The process."""
        return subprocess.Popen(
            [*lab.inside(self._host), *self._as_user(), "-m", "vmtune", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )

    @classmethod
    def _as_user(cls) -> list[str]:
        """The start of a command line of Python, by the unit's user and with no more than it."""
        return [
            *("setpriv", f"--reuid={cls.USER}", f"--regid={cls.USER}", "--init-groups"),
            *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
            *("env", f"HOME={cls.STATE}", sys.executable),
        ]


_FOLDERS = """
install -d -o vmtune -g vmtune -m 750 /var/lib/vmtune
install -d -o vmtune -g vmtune -m 755 /run/vmtune
"""


@contextmanager
def packaged_machines(**changes: Any) -> Iterator[Live]:
    """Two machines, and on the first a service as :class:`PackagedService`.

    :param changes: of the lab's settings.
    """
    with machine_settings(**changes) as settings:
        status = lab.up(settings)
        (settings.folder / "service").mkdir()
        service = PackagedService(settings, status.hosts[0])
        try:
            service.start()
            yield Live(settings, service, status)
        finally:
            service.stop()


def why_not_packaged() -> str:
    """Why no other user than root can run this checkout; empty when one can."""
    nobody = ("setpriv", "--reuid=nobody", "--clear-groups", "--no-new-privs")
    words = (sys.executable, "-c", "import vmtune.api.main")
    ran = subprocess.run(
        [*nobody, *words], capture_output=True, cwd="/", timeout=STEP_S, check=False
    )
    return "this checkout is closed to other users" if ran.returncode else ""


@contextmanager
def live_machines(
    *,
    https: bool = False,
    service_on: str = "a",
    environment: Mapping[str, str] | None = None,
    **changes: Any,
) -> Iterator[Live]:
    """Machines, and a service on one of them that knows no host yet.

    :param https: it listens on the management network, too, with the machine's certificate, and
        lets libvirt's hook write what a destination needs.
    :param service_on: which of them has this machine's own root, and the service.
    :param environment: more settings of the service, as variables.
    :param changes: of the lab's settings.
    """
    with machine_settings(**changes) as settings:
        status = lab.up(settings)
        folder = settings.folder / "service"
        folder.mkdir()
        where = status.hosts["abc".index(service_on)]
        listening = _listening(settings, service_on) if https else {}
        service = MachineService(folder, where, {**listening, **(environment or {})})
        try:
            service.start()
            yield Live(settings, service, status)
        finally:
            service.stop()


def _listening(settings: lab.LabSettings, which: str) -> dict[str, str]:
    pki = "/etc/pki/libvirt"
    return {
        "VMTUNE_LISTEN_ADDRESS": getattr(settings, f"address_{which}").partition("/")[0],
        "VMTUNE_ALLOWED_HOSTS": getattr(settings, f"name_{which}"),
        "VMTUNE_TLS_CERT": f"{pki}/servercert.pem",
        "VMTUNE_TLS_KEY": f"{pki}/private/serverkey.pem",
        "VMTUNE_DESTINATION_COMMAND_LINE": "true",
    }
