"""One host of the lab: its configuration, its daemon, its URIs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from vmtune.errors import LabError
from vmtune.lab.namespaces import namespace_inode, processes_in
from vmtune.lab.programs import run
from vmtune.lab.settings import LabSettings

_START_SCRIPT = Path(__file__).parent / "start_host.sh"
_START_TIMEOUT_S = 60.0
_DAEMONS = {"libvirtd": "libvirtd", "virtqemud": "libvirtd", "virtproxyd": "virtproxyd"}
"""Of one or of several daemons: the log of each."""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What is fixed about a host once the settings are.

    :param which: ``a``, ``b`` or ``c``, also its folder's name in the lab's.
    :param address: without prefix length.
    :param migration_address: where migrations arrive; ``address`` but for machines.
    :param machine: whether it has a root of its own, SSH and TLS.
    :param base: of a machine: what its root is an overlay of.
    """

    which: str
    name: str
    address: str
    folder: Path
    migration_address: str
    machine: bool = False
    base: Path = Path("/")

    @property
    def upper(self) -> Path:
        """What a machine's root has that this machine's has not."""
        return self.folder / "upper"

    @property
    def uri(self) -> str:
        """For clients of this machine: a socket, reachable from any namespace."""
        return f"qemu+unix:///system?socket={self.folder}/run/libvirt/libvirt-sock"

    @property
    def peer_uri(self) -> str:
        """For the other host."""
        if self.machine:
            return f"qemu+tls://{self.name}/system"
        return f"qemu+tcp://{self.address}/system"

    @property
    def log(self) -> Path:
        """What libvirtd writes."""
        return self.folder / "log" / "libvirtd.log"

    def libvirtd_pid(self) -> int | None:
        """The process of the running daemon that runs QEMU; None when there is none."""
        for daemon in ("libvirtd", "virtqemud"):
            try:
                pid = int((self.folder / "run" / f"{daemon}.pid").read_text())
            except (OSError, ValueError):
                continue
            # The file outlives its process, whose number may be another's by now.
            return pid if pid in processes_in(namespace_inode(self.name)) else None
        return None


def plan_hosts(settings: LabSettings) -> tuple[HostPlan, ...]:
    """The hosts of a lab, two or three."""
    addresses = settings.each("address")
    arrivals = settings.each("migration_address") if settings.machines else addresses
    return tuple(
        HostPlan(
            which,
            name,
            address.split("/")[0],
            settings.folder / which,
            arrival.split("/")[0],
            settings.machines,
            Path(base),
        )
        for which, name, address, arrival, base in zip(
            "abc"[: settings.hosts],
            settings.each("name"),
            addresses,
            arrivals,
            settings.each("root"),
            strict=True,
        )
    )


def libvirtd_conf(host: HostPlan, host_uuid: uuid.UUID, daemon: str = "libvirtd") -> str:
    """A daemon's settings. An own UUID is what lets libvirt migrate to it.

    A machine's local users are let in by polkit, as Debian has it, and those who come by TCP
    by SASL.
    """
    return f"""\
listen_tls = {int(host.machine)}
listen_tcp = 1
listen_addr = "{host.address}"
auth_tcp = "{"sasl" if host.machine else "none"}"
auth_unix_ro = "none"
auth_unix_rw = "{"polkit" if host.machine else "none"}"
unix_sock_dir = "/run/libvirt"
unix_sock_rw_perms = "{"0777" if host.machine else "0700"}"
unix_sock_ro_perms = "{"0777" if host.machine else "0700"}"
host_uuid = "{host_uuid}"
log_outputs = "2:file:/var/log/libvirt/{daemon}.log"
"""


def qemu_conf(host: HostPlan, lab_folder: Path) -> str:
    """How QEMU is run: by root, with nothing that outlives its process."""
    return f"""\
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
migration_host = "{host.migration_address}"
shared_filesystems = [ "{lab_folder}" ]
"""


def hosts_file(hosts: tuple[HostPlan, ...]) -> str:
    """All hosts by name, for libvirt looks itself and its peers up."""
    lines = ["127.0.0.1 localhost", *(f"{host.address} {host.name}" for host in hosts)]
    return "\n".join(lines) + "\n"


def prepare_host(host: HostPlan, hosts: tuple[HostPlan, ...]) -> None:
    """Write what the daemon reads. Nothing of the machine's own libvirt is taken
    over: with its VMs' definitions, those set to autostart would start twice."""
    for part in ("run", "etc", "lib", "cache", "log"):
        (host.folder / part).mkdir(parents=True)
    (host.folder / "run" / "lock").mkdir()
    (host.folder / "hosts").write_text(hosts_file(hosts))
    own = uuid.uuid4()
    for daemon, log in _DAEMONS.items():
        (host.folder / "etc" / f"{daemon}.conf").write_text(libvirtd_conf(host, own, log))
    (host.folder / "etc" / "qemu.conf").write_text(qemu_conf(host, host.folder.parent))


def start_host(host: HostPlan, settings: LabSettings) -> None:
    """Start the daemon and wait until it takes connections.

    :raise LabError: it did not start; with the last of what it logged.
    """
    command = [
        *("ip", "netns", "exec", host.name, "unshare", "--mount", "--uts", "--"),
        *("sh", str(_START_SCRIPT), host.name, str(host.folder), str(settings.folder)),
        str(settings.daemon),
    ]
    if settings.libvirt_root is not None:
        command.append(str(settings.libvirt_root))
    try:
        run(
            command,
            doing=f"start libvirtd on {host.name}",
            timeout_s=_START_TIMEOUT_S,
            env={
                **dict(settings.env),
                "VMTUNE_LAB_MACHINE": "yes" if host.machine else "",
                "VMTUNE_LAB_BASE": str(host.base),
            },
        )
    except LabError as error:
        errors = [line for line in _tail(host.log) if " error : " in line]
        if not errors:
            raise
        raise LabError(f"{error.message}; its log says: {errors[-1]}") from error


def probe_emulator(host: HostPlan, settings: LabSettings) -> None:
    """Have libvirt ask the emulator what it can do, which takes it seconds.

    It remembers the answer. Without this the first VM to start or to arrive
    would wait for it, and that migration's times would be wrong.

    :raise LabError: the emulator does not run.
    """
    run(
        ["virsh", "-c", host.uri, "domcapabilities", "--emulatorbin", str(settings.qemu)],
        doing=f"probe {settings.qemu} on {host.name}",
        timeout_s=_START_TIMEOUT_S,
    )


def _tail(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()[-50:]
    except OSError:
        return []
