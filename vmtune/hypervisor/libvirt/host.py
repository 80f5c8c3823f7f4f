"""A libvirt host's facts, and what /proc shows of a daemon that runs on this machine."""

from __future__ import annotations

import re
import socket
import struct
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree.ElementTree import Element

from vmtune.hypervisor.libvirt import domain_xml as libvirt_xml
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.linux.dirty_ring import ask_ring_reset
from vmtune.hypervisor.linux.disk_file import identity_of, look_at_disk
from vmtune.hypervisor.linux.local_host import read_local_host
from vmtune.hypervisor.linux.qemu_process import PROC, QemuProcess, has_capability
from vmtune.model.host import facts
from vmtune.model.host.disks import DiskAtHost
from vmtune.model.host.facts import HostFacts
from vmtune.model.host.ring_reset import resets_end_early

_CAP_SYS_RESOURCE = 24  # linux/capability.h
_SOCKETS = ("/run/libvirt/virtqemud-sock", "/run/libvirt/libvirt-sock")
_PID_FILES = ("run/virtqemud.pid", "run/libvirtd.pid")
_TLS_FOLDER = re.compile(
    r'^[ \t]*(migrate|default)_tls_x509_cert_dir[ \t]*=[ \t]*"([^"\n]*)"', re.MULTILINE
)
_CERTIFICATES = frozenset({"ca-cert.pem", "server-cert.pem", "server-key.pem"})
_OPTMEM = "/proc/sys/net/core/optmem_max"


def derive_peer_uri(uri: str) -> str:
    """How another host reaches the daemon that *uri* names; empty where that cannot be known.

    A URI with a server's name is as good from there as from here, unless it names this
    machine itself. What follows the path (sockets, keys) is of this machine, and left out.
    """
    parts = urlsplit(uri)
    host = (parts.hostname or "").lower()
    if not host or host == "::1" or host.startswith(("localhost", "127.")):
        return ""
    return parts._replace(query="", fragment="").geturl()


@dataclass(frozen=True, slots=True)
class LocalDaemon:
    """A libvirt daemon on this machine, by its process.

    It may live in namespaces of its own, as a container's does: then its files are reached
    through its process, and settings that belong to a network are read in its network.
    """

    pid: int

    @property
    def _folder(self) -> Path:
        return PROC / str(self.pid)

    def can_lock_beyond_limits(self) -> bool | None:
        """Whether it may give QEMU a higher locked-memory limit (CAP_SYS_RESOURCE)."""
        try:
            return has_capability((self._folder / "status").read_text(), _CAP_SYS_RESOURCE)
        except OSError:
            return None

    def qemu(self, name: str, uuid: str) -> QemuProcess | None:
        """The process of a VM, by the file where the daemon keeps its number."""
        try:
            text = (self._folder / "root/run/libvirt/qemu" / f"{name}.pid").read_text()
            process = QemuProcess(int(text))
        except (OSError, ValueError):
            return None
        # The file outlives a QEMU that crashed, whose number may be another's by now.
        arguments = process.arguments()
        return process if arguments and uuid in arguments else None

    def no_certificates_in(self) -> str:
        """The folder of its certificates for migrations, if there are none; empty where there
        are. As virQEMUDriverConfigSetDefaults of libvirt's qemu_conf.c chooses it."""
        root = self._folder / "root"
        try:
            text = (root / "etc/libvirt/qemu.conf").read_text()
            said = dict(_TLS_FOLDER.findall(text))
            own = (root / "etc/pki/libvirt-migrate").is_dir()
            default = said.get("default", "/etc/pki/qemu")
            folder = said.get("migrate") or ("/etc/pki/libvirt-migrate" if own else default)
            here = root / folder.lstrip("/")
            files = {path.name for path in here.iterdir()} if here.is_dir() else set()
        except OSError:
            return ""  # it may not be looked into
        return "" if files >= _CERTIFICATES else folder

    def look_at(self, path: str, user: tuple[int, int] | None = None) -> DiskAtHost:
        """What it sees at the path of a disk; nothing is known where this process may not look.

        :param user: that its QEMUs run as, with the group.
        """
        return look_at_disk(self._folder / "root", path, user)

    def identity_at(self, path: str) -> str:
        """Which file or device it sees there; empty where that cannot be seen."""
        try:
            return identity_of((self._folder / "root" / path.lstrip("/")).stat())
        except OSError:
            return ""

    def optmem_max_bytes(self) -> int | None:
        """net.core.optmem_max of its network: since Linux 6.8 each has its own."""
        try:
            namespace = self._folder / "ns/net"
            if namespace.readlink() == (PROC / "self/ns/net").readlink():
                return int(Path(_OPTMEM).read_text())
            done = subprocess.run(
                ["nsenter", f"--net={namespace}", "cat", _OPTMEM],
                capture_output=True, check=True, timeout=5,
            )  # fmt: skip
            return int(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            return None


def find_local_daemon(uri: str) -> LocalDaemon | None:
    """The daemon behind a URI without a server, by its socket; None where it is remote or
    its process cannot be seen."""
    parts = urlsplit(uri)
    if parts.hostname or parts.path != "/system":
        return None
    given = parse_qs(parts.query).get("socket", [])
    path = next((p for p in (*given, *_SOCKETS) if Path(p).exists()), None)
    pid = _listener(path) if path else None
    if pid == 1:
        # systemd listens for a daemon that it starts on demand.
        pid = next((found for file in _PID_FILES if (found := _read_pid(file))), None)
    return LocalDaemon(pid) if pid and (PROC / str(pid)).exists() else None


def _listener(path: str) -> int | None:
    """The process that listens on a unix socket, as far as it can be seen from here."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(2)
            client.connect(path)
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    except OSError:
        return None
    pid: int = struct.unpack("3i", credentials)[0]
    return pid or None


def _read_pid(file: str) -> int | None:
    try:
        return int((Path("/") / file).read_text())
    except (OSError, ValueError):
        return None


def read_host(connection: Connection, daemon: LocalDaemon | None, peer_uri: str) -> HostFacts:
    """Probe a host. Blocks.

    :param daemon: its process, where it runs on this machine.
    :raise VmtuneError: as the connection's calls do.
    """
    cpus, memory_bytes = connection.cpus_and_memory()
    capabilities = libvirt_xml.parse(connection.capabilities())
    available = connection.available_memory()  # in a container, that of the machine around it
    host = HostFacts(
        connection=facts.Connection.LIBVIRT,
        hostname=connection.hostname(),
        uuid=capabilities.findtext("host/uuid") or "",
        qemu=connection.qemu_version(),
        libvirt=connection.libvirt_version(),
        peer_uri=peer_uri,
        kvm=_has_kvm(connection),
        cpus=cpus,
        memory_bytes=memory_bytes,
        memory_available_bytes=None if available is None else min(available, memory_bytes),
        local=False,
        cpu_idle_s=connection.idle_cpu_s(),
        confined_by=_confined_by(capabilities),
    )
    if daemon is None:
        return host
    here = read_local_host()
    sysctls = dict(here.sysctls)
    optmem = daemon.optmem_max_bytes()
    sysctls.pop("net_core_optmem_max_bytes", None)
    if optmem is not None:
        sysctls["net_core_optmem_max_bytes"] = optmem
    return replace(
        host,
        kernel=here.kernel,
        sysctls=sysctls,
        can_lock_beyond_limits=daemon.can_lock_beyond_limits(),
        ring_reset_ends_early=resets_end_early(ask_ring_reset().ends_early, here.kernel),
        no_certificates_in=daemon.no_certificates_in(),
        local=True,
    )


def _confined_by(capabilities: Element) -> str:
    """By the security models that libvirt has loaded; dac, users and groups, is in all of them."""
    models = {model.text for model in capabilities.iterfind("host/secmodel/model")}
    return next((name for name in ("apparmor", "selinux") if name in models), "")


def _has_kvm(connection: Connection) -> bool:
    try:
        connection.domain_capabilities("kvm")
    except LibvirtRefused:
        return False
    return True
