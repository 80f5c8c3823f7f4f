"""Settings of the lab and of its VM: frozen, checked when made."""

from __future__ import annotations

import ipaddress
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from vmtune.errors import InvalidInput, Problem
from vmtune.model.workload import Workload
from vmtune.units import PAGE_BYTES

MIB = 1 << 20
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# A socket's path has to fit into sockaddr_un's 108 bytes.
_SOCKET_LONGEST = 107
_FOLDER_LONGEST = _SOCKET_LONGEST - len("/a/run/libvirt/libvirt-admin-sock")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


def _installed_qemu() -> Path:
    name = "qemu-system-x86_64"
    return Path(shutil.which(name) or f"/usr/bin/{name}")


@dataclass(frozen=True, slots=True)
class LabSettings:
    """Where the lab is and what it runs.

    :param name_a: the first host's name, and of its network namespace.
    :param name_b: the second host's.
    :param address_a: the first host's address with its prefix length.
    :param address_b: the second host's, in the same network.
    :param folder: everything the lab keeps; made by ``up``, removed by ``down``.
        Absolute, and short enough for the sockets in it.
    :param libvirtd: the daemon to run on both hosts: libvirtd, or virtqemud with virtproxyd in the
        same folder.
    :param libvirt_root: a folder with Debian's libvirt packages unpacked
        (``dpkg -x``), run instead of the installed libvirt; ``libvirtd`` is
        then ignored.
    :param qemu: the emulator of the VMs; unless it is named, the one on the PATH.
    :param env: additional environment of both daemons, as pairs.
    :param machines: give each host a root of its own, sshd, and libvirt by TLS instead of TCP.
    :param migration_address_a: of machines: where the first host's migrations arrive.
    :param migration_address_b: the second host's, in the same network, apart from ``address_a``'s.
    :param root_a: of machines: the root that the first host's is an overlay of; this machine's own,
        or that of another release, with libvirt, QEMU, sshd, D-Bus and polkit in it.
    :param root_b: the second host's, and *root_c* the third's.
    :param device_a: the network device of this machine that becomes the first host's link, such as
        a port of a card that is wired to ``device_b``'s; empty for both: a veth pair. It must have
        no address. The kernel gives a card's port back when the lab is down.
    :param device_b: the second host's.
    :param hosts: 2, or of machines 3: then the third has ``name_c``, ``address_c`` and
        ``migration_address_c``.
    :raise InvalidInput: naming the field.
    """

    name_a: str = "vmtune-a"
    name_b: str = "vmtune-b"
    address_a: str = "10.99.0.1/24"
    address_b: str = "10.99.0.2/24"
    folder: Path = Path("/run/vmtune-lab")
    libvirtd: Path = Path("/usr/sbin/libvirtd")
    libvirt_root: Path | None = None
    qemu: Path = field(default_factory=_installed_qemu)
    env: tuple[tuple[str, str], ...] = ()
    machines: bool = False
    migration_address_a: str = "10.98.0.1/24"
    migration_address_b: str = "10.98.0.2/24"
    root_a: Path = Path("/")
    root_b: Path = Path("/")
    root_c: Path = Path("/")
    device_a: str = ""
    device_b: str = ""
    hosts: int = 2
    name_c: str = "vmtune-c"
    address_c: str = "10.99.0.3/24"
    migration_address_c: str = "10.98.0.3/24"

    def __post_init__(self) -> None:
        problems = [
            *self._name_problems(),
            *self._address_problems(),
            *self._path_problems(),
            *self._device_problems(),
        ]
        if self.hosts not in ((2, 3) if self.machines else (2,)):
            problems.append(
                Problem(
                    "hosts",
                    "out_of_range",
                    f"a lab of {self.hosts} hosts cannot be made",
                    "use 2, or with machines 3",
                )
            )
        if problems:
            raise InvalidInput("the lab's settings are not usable", problems=problems)

    @classmethod
    def from_variables(cls, environ: Mapping[str, str]) -> LabSettings:
        """The defaults, but for what VMTUNE_LAB_* variables say, such as VMTUNE_LAB_FOLDER.

        :raise InvalidInput: naming the field.
        """
        given: dict[str, Any] = {}  # any: a path, a text or a switch, by the field
        if environ.get("VMTUNE_LAB_MACHINES"):
            given["machines"] = environ["VMTUNE_LAB_MACHINES"].lower() in ("1", "true", "yes", "on")
        for each in fields(cls):
            text = environ.get(f"VMTUNE_LAB_{each.name.upper()}")
            if text and each.name == "hosts":
                given["hosts"] = int(text) if text.isdecimal() else 0
            elif text and each.name not in ("env", "machines"):
                given[each.name] = Path(text) if "Path" in str(each.type) else text
        return cls(**given)

    def named(self, what: str) -> tuple[str, ...]:
        """The fields of all hosts for one thing: ``address`` gives ``address_a`` and so on."""
        return tuple(f"{what}_{which}" for which in "abc"[: self.hosts])

    def each(self, what: str) -> tuple[str, ...]:
        """What :meth:`named` names: the ``name``, ``address`` or ``migration_address`` of each."""
        return tuple(str(getattr(self, field)) for field in self.named(what))

    @property
    def daemon(self) -> Path:
        """The libvirtd that runs on both hosts."""
        if self.libvirt_root is None:
            return self.libvirtd
        return self.libvirt_root / "usr/sbin/libvirtd"

    def _name_problems(self) -> list[Problem]:
        problems = []
        for which in self.named("name"):
            name = getattr(self, which)
            if not _NAME.fullmatch(name) or name == "localhost":
                problems.append(
                    Problem(
                        which,
                        "bad_name",
                        f"{name!r} cannot be a host's name",
                        "use 1 to 32 lower-case letters, digits and hyphens, not 'localhost'",
                    )
                )
        names = self.each("name")
        problems += [
            Problem(which, "same_name", f"is the same as {self.named('name')[names.index(name)]}")
            for i, (which, name) in enumerate(zip(self.named("name"), names, strict=True))
            if name in names[:i]
        ]
        return problems

    def _device_problems(self) -> list[Problem]:
        devices = {"device_a": self.device_a, "device_b": self.device_b}
        if not any(devices.values()):
            return []
        problems = [
            Problem(
                which,
                "bad_device",
                f"{name!r} cannot be a network device's name" if name else "the other host has one",
                "name a device for each of the two hosts, as `ip link` lists them",
            )
            for which, name in devices.items()
            if not _DEVICE.fullmatch(name)
        ]
        if not problems and self.device_a == self.device_b:
            problems.append(Problem("device_b", "same_device", "is the same as device_a"))
        if self.hosts > 2:
            problems.append(
                Problem("device_a", "out_of_range", "joins two hosts only", "make a lab of 2 hosts")
            )
        return problems

    def _address_problems(self) -> list[Problem]:
        problems, managed = self._network_problems(self.named("address"))
        if self.machines:
            more, migrated = self._network_problems(self.named("migration_address"))
            problems += more
            if managed and migrated and managed.overlaps(migrated):
                problems.append(
                    Problem(
                        "migration_address_a",
                        "same_network",
                        f"{migrated} is not apart from address_a's {managed}",
                        "choose a network of its own for migrations, such as 10.98.0.1/24",
                    )
                )
        return problems

    def _network_problems(
        self, which_all: tuple[str, ...]
    ) -> tuple[list[Problem], _Network | None]:
        """What is wrong with the hosts' addresses, and the network that they share."""
        problems = []
        interfaces = []
        for which in which_all:
            text = getattr(self, which)
            try:
                if "/" not in text:
                    raise ValueError("has no prefix length")
                interfaces.append(ipaddress.ip_interface(text))
            except ValueError as error:
                problems.append(
                    Problem(which, "bad_address", f"{text!r}: {error}", "for example 10.99.0.1/24")
                )
        if problems:
            return problems, None
        first = interfaces[0]
        taken = {first.ip: which_all[0]}
        for which, each in zip(which_all[1:], interfaces[1:], strict=True):
            if each.ip in taken:
                problems.append(Problem(which, "same_address", f"is the same as {taken[each.ip]}"))
            elif each.network != first.network:
                problems.append(
                    Problem(which, "other_network", f"is not in {which_all[0]}'s {first.network}")
                )
            taken[each.ip] = which
        return problems, None if problems else first.network

    def _path_problems(self) -> list[Problem]:
        problems = []
        paths = {"folder": self.folder, "libvirtd": self.libvirtd, "qemu": self.qemu}
        if self.libvirt_root is not None:
            paths["libvirt_root"] = self.libvirt_root
        if self.machines:
            paths |= {which: getattr(self, which) for which in self.named("root")}
        for which, path in paths.items():
            if not path.is_absolute():
                problems.append(Problem(which, "not_absolute", f"{path} is not an absolute path"))
        if len(str(self.folder)) > _FOLDER_LONGEST:
            problems.append(
                Problem(
                    "folder",
                    "too_long",
                    f"{self.folder} has more than {_FOLDER_LONGEST} characters",
                    "sockets below it need a short path",
                )
            )
        if any(c in str(self.folder) for c in "\"'\n&?#% \\"):
            problems.append(Problem("folder", "bad_character", "has a character URIs escape"))
        return problems


@dataclass(frozen=True, slots=True)
class DiskSettings:
    """A disk of the VM: a sparse file that both hosts see.

    libvirt 9 has no setting for that, and refuses to migrate a VM with such
    a disk as unsafe unless the disk is read-only or shareable.

    :param size_bytes: a multiple of 512, from 1 MiB.
    :param queues: virtqueues, 1 to 1024; None leaves it to QEMU.
    :param queue_size: entries of each, a power of two, 2 to 1024; None: QEMU's.
    :param iothread: number of the iothread, from 1; None: the main loop.
    :param ide: the guest finds it at IDE, not at virtio-blk, and writes to the first of those
        while it rests, where its workload checks its memory.
    :param shareable: several VMs may write to it.
    :param stops: an I/O error stops the VM, and the guest is not told.
    """

    size_bytes: int = 16 * MIB
    queues: int | None = None
    queue_size: int | None = None
    iothread: int | None = None
    read_only: bool = False
    ide: bool = False
    shareable: bool = False
    stops: bool = False


@dataclass(frozen=True, slots=True)
class VmSettings:
    """The lab's VM and the load in it.

    :param memory_bytes: the VM's memory, a multiple of 1 MiB, from 16 MiB.
    :param workload: what its guest does to it.
    :param listener: a folder with two unix sockets, on which a program listens before the VM
        starts: QEMU connects its serial port to the one named ``serial``, and the debug console
        with the heartbeat to ``beat``, on each host that the VM runs or arrives on. The lines go
        to the VM's serial log as well. None: only there. Not in /run, which each host has for
        itself, unless in the lab's own folder.
    :param kvm: whether to use KVM; None: if this machine has a usable one.
    :param dirty_ring_entries: size of the KVM dirty ring per vCPU, a power of
        two, 1024 to 65536; None: the dirty bitmap. KVM only.
    :param iothreads: how many iothreads the VM has.
    :raise InvalidInput: naming the field.
    """

    name: str = "vmtune-demo"
    memory_bytes: int = 512 * MIB
    vcpus: int = 1
    workload: Workload = field(default_factory=Workload)
    listener: Path | None = None
    kvm: bool | None = None
    dirty_ring_entries: int | None = None
    iothreads: int = 0
    disks: tuple[DiskSettings, ...] = field(default=())

    def __post_init__(self) -> None:
        problems = []

        def check(holds: bool, which: str, message: str) -> None:
            if not holds:
                problems.append(Problem(which, "out_of_range", message))

        check(bool(_NAME.fullmatch(self.name)), "name", "only a-z, 0-9 and hyphens, 32 at most")
        memory = self.memory_bytes
        check(memory >= 16 * MIB and memory % MIB == 0, "memory_bytes", "whole MiB, from 16")
        check(1 <= self.vcpus <= 255, "vcpus", "from 1 to 255")
        check(
            (self.vcpus - 1) * PAGE_BYTES < self.workload.region_bytes < memory,
            "workload.region_bytes",
            "at least a page for each vCPU, less than the VM's memory",
        )
        listener = self.listener
        if listener is not None:
            longest = len(str(listener)) + len("/serial")
            fits = listener.is_absolute() and longest <= _SOCKET_LONGEST
            check(fits, "listener", f"an absolute path that ends before {_SOCKET_LONGEST} bytes")
        ring = self.dirty_ring_entries
        if ring is not None:
            ring_fits = 1024 <= ring <= 65536 and ring & (ring - 1) == 0
            check(ring_fits, "dirty_ring_entries", "a power of two from 1024 to 65536")
            check(self.kvm is not False, "dirty_ring_entries", "needs KVM, which is switched off")
        check(0 <= self.iothreads <= 64, "iothreads", "from 0 to 64")
        check(len(self.disks) <= 16, "disks", "at most 16")
        for i, disk in enumerate(self.disks):
            self._check_disk(f"disks[{i}]", disk, problems)
        if problems:
            raise InvalidInput("the VM's settings are not usable", problems=problems)

    def _check_disk(self, where: str, disk: DiskSettings, problems: list[Problem]) -> None:
        size = disk.queue_size
        rules = {
            "size_bytes": (disk.size_bytes >= MIB and disk.size_bytes % 512 == 0, "from 1 MiB"),
            "queues": (disk.queues is None or 1 <= disk.queues <= 1024, "from 1 to 1024"),
            "queue_size": (
                size is None or (2 <= size <= 1024 and size & (size - 1) == 0),
                "a power of two from 2 to 1024",
            ),
            "ide": (
                not disk.ide or (disk.queues, size, disk.iothread) == (None,) * 3,
                "without virtqueues and iothread, which only virtio-blk has",
            ),
            "iothread": (
                disk.iothread is None or 1 <= disk.iothread <= self.iothreads,
                f"from 1 to the VM's {self.iothreads} iothreads",
            ),
        }
        problems.extend(
            Problem(f"{where}.{which}", "out_of_range", message)
            for which, (holds, message) in rules.items()
            if not holds
        )
